//! Links as state machines: queue and rate, then a policer, then delay, then loss.
//!
//! A [`Link`] is driven in virtual time by the simulator and in real time by the emulator: the
//! same code. It is generic over the packet type ([`LinkPacket`]) and reports what happens to a [`Meter`].
//!
//! To add a loss process: a file here and its entry in [`loss::LOSSES`]. To add a queue: a file
//! in `queue/` and its entry in [`queue::QUEUES`].

pub mod check;
pub mod config;
pub mod link;
pub mod loss;
pub mod queue;
pub mod trace;

mod policer;

pub use check::MAX_TIME;
pub use config::{Change, Impairments, LinkConfig, QueueConfig, QueueLimit};
pub use link::Link;
pub use loss::{LOSSES, LossSpec};
pub use policer::PolicerConfig;
pub use queue::QUEUES;
pub use trace::Trace;

use narrows_base::{Packet, Time};

/// What a link carries.
pub trait LinkPacket {
    /// Bytes on the wire.
    fn size(&self) -> u32;
    /// Random bits of this packet for losses drawn per packet: a function of its flow and its
    /// number, so that no flow's losses depend on the others.
    fn random_key(&self) -> u64;
    /// Whether listed and periodic losses count it: data, not acknowledgements.
    fn is_data(&self) -> bool;
    /// Corrupts it.
    fn corrupt(&mut self);
    /// Which flow and direction it belongs to, for queues that tell flows apart.
    fn flow(&self) -> u64 {
        0
    }
    /// Whether its sender understands ECN, so that it may be marked (RFC 3168: ECT).
    fn is_ect(&self) -> bool {
        false
    }
    /// Whether its sender is scalable, so that a low-delay queue may have it (RFC 9331: ECT(1), or CE already).
    fn is_l4s(&self) -> bool {
        false
    }
    /// Marks it: congestion experienced (RFC 3168: CE).
    fn mark(&mut self) {}
    /// Whether it has been marked.
    fn is_marked(&self) -> bool {
        false
    }
}

impl LinkPacket for Packet {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }
    #[inline]
    fn random_key(&self) -> u64 {
        u64::from(self.random_key)
    }
    #[inline]
    fn is_data(&self) -> bool {
        !self.has(Packet::ACK)
    }
    fn corrupt(&mut self) {
        self.flags |= Packet::CORRUPT;
    }
    fn flow(&self) -> u64 {
        u64::from(self.flow) << 1 | u64::from(self.has(Packet::ACK))
    }
    fn is_ect(&self) -> bool {
        self.has(Packet::ECT)
    }
    fn is_l4s(&self) -> bool {
        !self.has(Packet::ACK) && self.has(Packet::ECT1)
    }
    fn mark(&mut self) {
        self.flags |= Packet::CE;
    }
    fn is_marked(&self) -> bool {
        self.has(Packet::CE)
    }
}

/// Observes a link. Every method has an empty default, so `()` is a meter.
///
/// Times may lie in the future of the caller: a link of constant rate knows at arrival when a
/// packet will leave.
pub trait Meter<P> {
    /// A packet arrived at the queue.
    #[inline]
    fn offered(&mut self, _now: Time, _packet: &P) {}
    /// The queue dropped it.
    #[inline]
    fn dropped(&mut self, _now: Time, _packet: &P) {}
    /// The queue marked it; it goes on.
    #[inline]
    fn marked(&mut self, _now: Time, _packet: &P) {}
    /// A packet arrived at a queue that keeps an average, which is this many packets now.
    #[inline]
    fn averaged(&mut self, _now: Time, _packets: f64) {}
    /// It was let in, and `waiting` packets now wait, it included if it must.
    #[inline]
    fn queued(&mut self, _now: Time, _waiting: usize) {}
    /// From now on so many wait. Only links that serve packet by packet say so: packets that
    /// their queue drops after a while, or that still wait at the end, have waited too.
    #[inline]
    fn waiting(&mut self, _now: Time, _packets: usize) {}
    /// Its transmission began and ended; it had waited since `arrived`.
    #[inline]
    fn served(&mut self, _packet: &P, _arrived: Time, _start: Time, _end: Time) {}
    /// It was lost after it had been sent.
    #[inline]
    fn lost(&mut self, _at: Time, _packet: &P) {}
}

impl<P> Meter<P> for () {}
