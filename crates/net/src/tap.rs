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
use std::sync::Arc;

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

/// One tap for several observers, in their order; none without any.
pub fn joined(taps: impl IntoIterator<Item = Arc<dyn Tap>>) -> Option<Arc<dyn Tap>> {
    let mut taps: Vec<_> = taps.into_iter().collect();
    if taps.len() < 2 { taps.pop() } else { Some(Arc::new(Taps(taps))) }
}

#[derive(Debug)]
struct Taps(Vec<Arc<dyn Tap>>);

impl Tap for Taps {
    fn bound(&self, observer: Observer) {
        self.0.iter().for_each(|tap| tap.bound(observer.clone()));
    }
    fn sent(&self, now: Time, transmit: &Transmit, bytes: &[u8]) {
        self.0.iter().for_each(|tap| tap.sent(now, transmit, bytes));
    }
    fn received(&self, came: &Arrival<'_>) {
        self.0.iter().for_each(|tap| tap.received(came));
    }
    fn opened(&self, now: Time, opened: &ConnectionOpened) {
        self.0.iter().for_each(|tap| tap.opened(now, opened));
    }
    fn closed(&self, now: Time, handle: Handle, stats: Option<&Stats>, why: &Closed) {
        self.0.iter().for_each(|tap| tap.closed(now, handle, stats, why));
    }
}
