//! The contract of a queue discipline, and its entry in the list.

use super::packet::QueuedPacket;
use crate::config::{LinkConfig, QueueLimit};
use narrows_base::descriptor::ParamKind;
use narrows_base::list::Listed;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, Rate, Settings, SpecError, Time};

/// A queue discipline in front of a transmitter.
///
/// Last in, first out, ten packets at most:
///
/// ```
/// use narrows_base::Time;
/// use narrows_link::queue::{Discipline, QueueObserver, QueuedPacket};
///
/// #[derive(Default)]
/// struct Stack(Vec<(Time, QueuedPacket)>);
///
/// impl Discipline for Stack {
///     fn enqueue(&mut self, now: Time, packet: QueuedPacket, idle: bool, observer: &mut dyn QueueObserver) -> bool {
///         let fits = idle || self.0.len() < 10;
///         if fits { self.0.push((now, packet)) } else { observer.dropped(&packet) }
///         fits
///     }
///     fn dequeue(&mut self, _: Time, _: &mut dyn QueueObserver) -> Option<(Time, QueuedPacket)> {
///         self.0.pop()
///     }
///     fn waiting(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// let (mut stack, packet) = (Stack::default(), QueuedPacket::new(0, 1500, 0));
/// assert!(stack.enqueue(Time::ZERO, packet, false, &mut ()) && stack.waiting() == 1);
/// ```
pub trait Discipline: Send {
    /// Enqueues a packet; returns whether it now waits. Reports to `observer` the packets that are marked or dropped,
    /// including the arriving one. If `idle`, the transmitter takes it at once, regardless of the limit.
    fn enqueue(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool;
    /// Takes out the packet to transmit next, with its arrival time. Reports to `observer` the packets that are dropped
    /// or marked on the way. `None` only if the queue is empty.
    fn dequeue(
        &mut self,
        now: Time,
        observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)>;
    /// Handles an arrival at an idle transmitter with an empty queue: returns the packet to transmit at once.
    fn pass(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        observer: &mut dyn QueueObserver,
    ) -> Option<QueuedPacket> {
        self.enqueue(now, packet, true, observer);
        self.dequeue(now, observer).map(|(_, packet)| packet)
    }
    /// Number of waiting packets.
    fn waiting(&self) -> usize;
    /// The transmitter's rate changes to `rate`.
    fn change_rate(&mut self, _now: Time, _rate: Rate) {}
    /// The average queue in packets, if the discipline keeps one. Whether it does never changes.
    fn average(&self) -> Option<f64> {
        None
    }
}

/// Receives a discipline's marks and drops.
pub trait QueueObserver {
    /// The packet was dropped.
    fn dropped(&mut self, packet: &QueuedPacket);
    /// The packet was marked (CE); it stays in the queue.
    fn marked(&mut self, packet: &QueuedPacket);
}

impl QueueObserver for () {
    fn dropped(&mut self, _packet: &QueuedPacket) {}
    fn marked(&mut self, _packet: &QueuedPacket) {}
}

/// An entry of the list: a descriptor and a constructor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct QueueEntry {
    /// Name, parameters and source.
    pub descriptor: &'static Descriptor,
    /// Builds the discipline for a link.
    pub build: fn(&Setup<'_>) -> Box<dyn Discipline>,
    /// Checks that the parameters fit together; each alone is already within its descriptor's
    /// range.
    pub check: fn(&Settings) -> Result<(), SpecError>,
}

impl QueueEntry {
    /// An entry without constraints between its parameters.
    pub const fn new(
        descriptor: &'static Descriptor,
        build: fn(&Setup<'_>) -> Box<dyn Discipline>,
    ) -> QueueEntry {
        QueueEntry { descriptor, build, check: |_| Ok(()) }
    }
}

impl Listed for QueueEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

/// Inputs of a discipline's constructor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setup<'a> {
    /// Its parameters.
    pub settings: &'a Settings,
    /// Limit on the waiting packets.
    pub limit: QueueLimit,
    /// The link behind the queue.
    pub link: LinkAhead,
    /// The key of its random draws.
    pub random_key: RandomKey,
}

/// The parameter `ecn` of the disciplines that can mark.
pub const ECN: Param = Param {
    name: "ecn",
    help: "on: marks packets of ECN-capable senders where it would drop, and drops all others",
    kind: ParamKind::Choice(&["on", "off"]),
    origin: "RFC 3168; without ECN-capable senders both are the same",
};

/// Properties of the link behind the queue.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct LinkAhead {
    /// Rate in bit/s; for a trace, its mean.
    pub bps: f64,
    /// Propagation delay in seconds.
    pub delay_s: f64,
    /// Whether the rate is constant between changes; false for a trace.
    pub steady: bool,
}

impl LinkAhead {
    pub(super) fn of(config: &LinkConfig) -> LinkAhead {
        let bps = match &config.trace {
            Some(trace) => trace.mean_bps(),
            None => config.rate.as_bps() as f64,
        };
        let bps = bps.max(1.0);
        LinkAhead { bps, delay_s: config.delay.as_secs_f64(), steady: config.trace.is_none() }
    }
    /// Packets of `bytes` bytes that the link transmits in a second (Choi 2006 eq. 6.3: ptc).
    pub fn packets_per_s(self, bytes: f64) -> f64 {
        self.bps / (8.0 * bytes)
    }
}

/// The parameter `limit` with this default, for disciplines that define one.
pub const fn limit_param(default: f64, origin: &'static str) -> Param {
    Param {
        name: "limit",
        help: "packets that may wait, the one in transmission not counted (also queue=30p, 45kB or 1bdp)",
        kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1e15, default },
        origin,
    }
}
