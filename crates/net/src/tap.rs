//! Watching an endpoint: every datagram that passes its socket, every connection's beginning and end.
//!
//! A [`Tap`] is called by the endpoint's thread, mostly while the endpoint is locked: it copies what
//! it wants and returns. It must not call the endpoint. Without one nothing is paid for.

use crate::endpoint::Observer;
use crate::socket::Arrival;
use narrows_base::Time;
use narrows_transport::connection::{Closed, Stats, Transmit};
use narrows_transport::endpoint::Handle;
use narrows_wire::ConnectionId;
use std::fmt;
use std::net::SocketAddr;

/// A connection that has its keys.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionOpened {
    /// Its name at this endpoint; never used again.
    pub handle: Handle,
    /// Where the peer is.
    pub remote: SocketAddr,
    /// Whether this end began it.
    pub dialled: bool,
    /// The id in the packets that come for it.
    pub id: ConnectionId,
    /// The id in the packets that it sends.
    pub peer_id: ConnectionId,
}

/// Somebody who watches an endpoint ([`Options::tapped`](crate::Options::tapped)). All times are by
/// the endpoint's clock.
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
