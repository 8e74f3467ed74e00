//! Observing an endpoint: every datagram that passes its socket, and every connection's beginning and end.
//!
//! A [`Tap`] is called by the endpoint's thread, mostly while the endpoint is locked: it should copy what it needs and
//! return, and must not call the endpoint. Without a tap there is no cost.

use crate::endpoint::Observer;
use crate::socket::Arrival;
use narrows_base::Time;
use narrows_transport::connection::{Closed, Stats, Transmit};
use narrows_transport::endpoint::Handle;
use narrows_wire::ConnectionId;
use std::fmt;
use std::net::SocketAddr;

/// A connection whose handshake has completed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionOpened {
    /// Its handle at this endpoint, which is never reused.
    pub handle: Handle,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Whether this end opened it.
    pub dialled: bool,
    /// The id in packets to this end.
    pub id: ConnectionId,
    /// The id in packets to the peer.
    pub peer_id: ConnectionId,
}

/// An observer of an endpoint ([`Options::tapped`](crate::Options::tapped)). All times are by the
/// endpoint's clock.
pub trait Tap: Send + Sync + fmt::Debug {
    /// The endpoint exists; no other call comes before this one has returned.
    fn bound(&self, observer: Observer);
    /// The system has taken this from the endpoint, cut into datagrams as `transmit` says; it may
    /// have refused it, as a network loses what it cannot carry.
    fn sent(&self, now: Time, transmit: &Transmit, bytes: &[u8]);
    /// A datagram came, still sealed.
    fn received(&self, came: &Arrival<'_>);
    /// A handshake is over.
    fn opened(&self, now: Time, opened: &ConnectionOpened);
    /// A connection, or an attempt at one (without figures), is over.
    fn closed(&self, now: Time, handle: Handle, stats: Option<&Stats>, why: &Closed);
}
