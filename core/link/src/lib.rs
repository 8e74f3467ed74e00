//! Links as state machines: queue and rate, then a policer, then delay, then loss.
//!
//! The simulator drives a [`Link`] in virtual time, the emulator drives the same code in real time. It is generic over
//! the packet type ([`LinkPacket`]) and reports drops, marks and departures to a [`Meter`].
//!
//! To add a loss process: a file here and its entry in [`loss::LOSSES`]. To add a queue: a file in `queue/` and its
//! entry in [`queue::QUEUES`].

pub mod cellular;
pub mod check;
pub mod config;
pub mod link;
pub mod loss;
pub mod queue;
pub mod trace;

mod correlated;
mod jitter;
mod policer;

pub use check::MAX_TIME;
pub use config::{EarlyConfig, Impairments, LinkChange, LinkConfig, QueueConfig, QueueLimit};
pub use jitter::{Distribution, JitterForm};
pub use link::Link;
pub use loss::{LOSSES, LossSpec};
pub use policer::PolicerConfig;
pub use queue::QUEUES;
pub use trace::Trace;

use narrows_base::{Packet, Time};

/// A packet that a link carries.
pub trait LinkPacket {
    /// Bytes on the wire.
    fn size(&self) -> u32;
    /// Random bits of this packet, for losses that are drawn per packet. They are a function of its flow and number, so
    /// that one flow's losses do not depend on other flows.
    fn random_key(&self) -> u64;
    /// Whether loss processes that count packets (lists, periods) count it: true for data, false
    /// for ACKs.
    fn is_data(&self) -> bool;
    /// Marks the payload as corrupted.
    fn corrupt(&mut self);
    /// Identifies its flow and direction, for queues that treat flows separately.
    fn flow(&self) -> u64 {
        0
    }
    /// Whether its sender is ECN-capable, so that it may be marked (RFC 3168: ECT).
    fn is_ect(&self) -> bool {
        false
    }
    /// Whether it belongs in a low-latency queue (RFC 9331: ECT(1), or CE already).
    fn is_l4s(&self) -> bool {
        false
    }
    /// Sets congestion experienced (RFC 3168: CE).
    fn mark(&mut self) {}
    /// Whether CE is set.
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

/// Observes a link. Every method has an empty default, and `()` is a meter that ignores everything.
///
/// Times may be later than the caller's present: a link of constant rate computes a packet's departure when the packet
/// arrives.
///
/// ```
/// use narrows_base::Time;
/// use narrows_link::Meter;
///
/// #[derive(Default)]
/// struct Drops(u64);
///
/// impl<P> Meter<P> for Drops {
///     fn dropped(&mut self, _now: Time, _packet: &P) {
///         self.0 += 1;
///     }
/// }
/// ```
pub trait Meter<P> {
    /// A packet arrived at the queue.
    #[inline]
    fn offered(&mut self, _now: Time, _packet: &P) {}
    /// The queue dropped it.
    #[inline]
    fn dropped(&mut self, _now: Time, _packet: &P) {}
    /// It was dropped because it has more bytes than the link's MTU.
    fn too_large(&mut self, now: Time, packet: &P) {
        self.dropped(now, packet);
    }
    /// The queue marked it (CE); it stays in the queue.
    #[inline]
    fn marked(&mut self, _now: Time, _packet: &P) {}
    /// A packet arrived at a queue that keeps an average; the average is now this many packets.
    #[inline]
    fn averaged(&mut self, _now: Time, _packets: f64) {}
    /// The packet was admitted; now `waiting` packets wait, including this one unless its
    /// transmission has begun.
    #[inline]
    fn queued(&mut self, _now: Time, _waiting: usize) {}
    /// The number of waiting packets is now `packets`. Only links that serve packet by packet
    /// report it; it includes packets that the queue drops later and those that wait at the end of
    /// the run.
    #[inline]
    fn waiting(&mut self, _now: Time, _packets: usize) {}
    /// The packet's transmission began and ended; it arrived at `arrived`.
    #[inline]
    fn served(&mut self, _packet: &P, _arrived: Time, _start: Time, _end: Time) {}
    /// The packet was transmitted and then lost.
    #[inline]
    fn lost(&mut self, _at: Time, _packet: &P) {}
}

impl<P> Meter<P> for () {}
