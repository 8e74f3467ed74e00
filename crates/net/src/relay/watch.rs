//! Watching a relay: every datagram that passes its sockets, and what its links hold.
//!
//! A [`RelayTap`] is called by the relay's thread, which holds what it counted meanwhile: it copies what it
//! wants and returns, and does not look. Without one nothing is paid for.

use super::shared::{Shared, lock};
use super::stats::RelayStats;
use crate::clock::Clock;
use narrows_base::Time;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Which of a relay's two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelaySide {
    /// Where clients send to.
    Clients,
    /// Towards B.
    Server,
}

/// A datagram at one of the relay's sockets.
#[derive(Clone, Copy, Debug)]
pub struct RelayedDatagram<'a> {
    /// When the kernel took it, or the relay handed it over, by the relay's clock.
    pub at: Time,
    /// Where.
    pub side: RelaySide,
    /// Handed over by the relay; else it came.
    pub sent: bool,
    /// The relay's own address there.
    pub local: SocketAddr,
    /// The client's address, or B's.
    pub peer: SocketAddr,
    /// The two bits of its IP header.
    pub ecn: u8,
    /// Its payload.
    pub bytes: &'a [u8],
}

/// Somebody who watches a relay ([`Relay::watched`](super::Relay::watched)).
pub trait RelayTap: Send + Sync + fmt::Debug {
    /// The relay exists; no other call comes before this one has returned.
    fn bound(&self, observer: RelayObserver);
    /// A datagram came, or was handed over.
    fn passed(&self, datagram: &RelayedDatagram<'_>);
}

/// What is seen at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RelaySnapshot {
    /// When, by the relay's clock.
    pub at: Time,
    /// All that it counted.
    pub stats: RelayStats,
    /// Datagrams that wait in the queues, towards B and from B, as of the relay's last turn.
    pub waiting: [usize; 2],
    /// The most of them since somebody looked last.
    pub most: [usize; 2],
}

/// Looks at a relay as often as it likes, and does not keep it running.
#[derive(Debug)]
pub struct RelayObserver {
    shared: Arc<Shared>,
    clock: Clock,
    local: SocketAddr,
    to: SocketAddr,
}

impl RelayObserver {
    pub(super) fn new(
        shared: &Arc<Shared>,
        clock: Clock,
        local: SocketAddr,
        to: SocketAddr,
    ) -> RelayObserver {
        RelayObserver { shared: shared.clone(), clock, local, to }
    }

    /// The relay's clock: the one of every time that a watch is told.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }
    /// Where it goes on to.
    pub fn to(&self) -> SocketAddr {
        self.to
    }
    /// Whether the relay has stopped: what is seen from then on stays.
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }
    /// What is seen now.
    pub fn look(&self) -> RelaySnapshot {
        let counts = &mut *lock(&self.shared.counts);
        let most = std::mem::replace(&mut counts.most, counts.waiting);
        let stats = RelayStats { lateness: counts.late.read(), ..counts.stats };
        RelaySnapshot { at: self.clock.now(), stats, waiting: counts.waiting, most }
    }
}
