//! Observing an endpoint: every datagram that passes its socket, and every connection's beginning and end.
//!
//! A [`Tap`] is called by the endpoint's thread, mostly while the endpoint is locked: it should copy what it needs and
//! return, and must not call the endpoint. Without a tap there is no cost.

use crate::endpoint::Observer;
use crate::socket::ReceivedDatagram;
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
    /// The system accepted these bytes, as datagrams per `transmit`. It may also have refused them permanently, which
    /// counts as a loss in the network.
    fn sent(&self, now: Time, transmit: &Transmit, bytes: &[u8]);
    /// A datagram arrived, still encrypted.
    fn received(&self, datagram: &ReceivedDatagram<'_>);
    /// A handshake has completed.
    fn opened(&self, now: Time, opened: &ConnectionOpened);
    /// A connection ended, or an attempt at one (then without statistics).
    fn closed(&self, now: Time, handle: Handle, stats: Option<&Stats>, why: &Closed);
}

/// Combines several taps, called in this order; `None` for an empty iterator.
pub fn joined(taps: impl IntoIterator<Item = Arc<dyn Tap>>) -> Option<Arc<dyn Tap>> {
    let mut taps: Vec<_> = taps.into_iter().collect();
    if taps.len() < 2 { taps.pop() } else { Some(Arc::new(EndpointTaps(taps))) }
}

#[derive(Debug)]
struct EndpointTaps(Vec<Arc<dyn Tap>>);

impl Tap for EndpointTaps {
    fn bound(&self, observer: Observer) {
        self.0.iter().for_each(|tap| tap.bound(observer.clone()));
    }
    fn sent(&self, now: Time, transmit: &Transmit, bytes: &[u8]) {
        self.0.iter().for_each(|tap| tap.sent(now, transmit, bytes));
    }
    fn received(&self, datagram: &ReceivedDatagram<'_>) {
        self.0.iter().for_each(|tap| tap.received(datagram));
    }
    fn opened(&self, now: Time, opened: &ConnectionOpened) {
        self.0.iter().for_each(|tap| tap.opened(now, opened));
    }
    fn closed(&self, now: Time, handle: Handle, stats: Option<&Stats>, why: &Closed) {
        self.0.iter().for_each(|tap| tap.closed(now, handle, stats, why));
    }
}
