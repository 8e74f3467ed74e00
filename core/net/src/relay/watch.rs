//! Observing a relay: every datagram that passes its sockets, and the contents of its links.
//!
//! A [`RelayTap`] is called by the relay's thread, which holds the lock on its counters: it should copy what it needs
//! and return, and must not use a [`RelayObserver`]. Without a tap there is no cost.

use super::shared::{RelayShared, lock};
use super::stats::RelayStats;
use crate::clock::Clock;
use narrows_base::Time;
use narrows_link::LinkChange;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One of a relay's two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelaySide {
    /// Towards the clients.
    Clients,
    /// Towards the server, B.
    Server,
}

/// A datagram at one of the relay's sockets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RelayedDatagram<'a> {
    /// When the kernel received it or the relay sent it, by the relay's clock.
    pub at: Time,
    /// The socket.
    pub side: RelaySide,
    /// Whether the relay sent it; otherwise it was received.
    pub sent: bool,
    /// The relay's own address there.
    pub local: SocketAddr,
    /// The client's address, or B's.
    pub peer: SocketAddr,
    /// Number of the client, in the order of their first datagrams.
    pub client: u32,
    /// The two ECN bits.
    pub ecn: u8,
    /// Its payload.
    pub bytes: &'a [u8],
}

/// An observer of a relay ([`Relay::watched`](super::Relay::watched)).
pub trait RelayTap: Send + Sync + fmt::Debug {
    /// The relay exists; no other call comes before this one has returned.
    fn bound(&self, observer: RelayObserver);
    /// A datagram was received, or sent by the relay.
    fn passed(&self, datagram: &RelayedDatagram<'_>);
    /// A link dropped or lost a datagram.
    fn missed(&self, _datagram: &MissedDatagram) {}
}

/// A datagram that a relay's link did not deliver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MissedDatagram {
    /// When, by the relay's clock; a loss may be known before it happens.
    pub at: Time,
    /// The link's direction: 0 towards B, 1 from B.
    pub direction: usize,
    /// Number of the client, in the order of their first datagrams.
    pub client: u32,
    /// Whether the queue dropped it; otherwise it was lost after its transmission.
    pub dropped: bool,
}

/// The state of a relay at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RelaySnapshot {
    /// The time, by the relay's clock.
    pub at: Time,
    /// The counters.
    pub stats: RelayStats,
    /// Datagrams in the queues, towards B and from B, as of the relay's last turn.
    pub waiting: [usize; 2],
    /// The largest numbers since the last snapshot.
    pub max: [usize; 2],
}

/// Reads a relay's state repeatedly, without keeping the relay running.
#[derive(Clone, Debug)]
pub struct RelayObserver {
    shared: Arc<RelayShared>,
    clock: Clock,
    local: SocketAddr,
    to: SocketAddr,
}

impl RelayObserver {
    pub(super) fn new(
        shared: &Arc<RelayShared>,
        clock: Clock,
        local: SocketAddr,
        to: SocketAddr,
    ) -> RelayObserver {
        RelayObserver { shared: shared.clone(), clock, local, to }
    }

    /// The relay's clock, on which the times passed to a tap are based.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// The address that clients send to.
    pub fn local(&self) -> SocketAddr {
        self.local
    }
    /// The address to which datagrams are relayed.
    pub fn to(&self) -> SocketAddr {
        self.to
    }
    /// Whether the relay has stopped; its state no longer changes then.
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }
    /// Schedules a change of a direction's link, 0 towards B or 1 from B, at this time of the relay's clock, or at once
    /// if it has passed. The link must be configured with `changes`.
    pub fn change(&self, at: Time, direction: usize, change: LinkChange) {
        lock(&self.shared.changes).push((at, direction, change));
        self.shared.waker.wake();
    }
    /// Counters, and the datagrams in the queues towards B and from B.
    pub fn counters(&self) -> (RelayStats, [usize; 2]) {
        let counts = lock(&self.shared.counts);
        (RelayStats { lateness: counts.late.read(), ..counts.stats }, counts.waiting)
    }
    /// The current state; resets [`RelaySnapshot::max`].
    pub fn look(&self) -> RelaySnapshot {
        let counts = &mut *lock(&self.shared.counts);
        let max = std::mem::replace(&mut counts.max, counts.waiting);
        let stats = RelayStats { lateness: counts.late.read(), ..counts.stats };
        RelaySnapshot { at: self.clock.now(), stats, waiting: counts.waiting, max }
    }
}
