//! Queue disciplines: which packets wait, in which order they go, which are marked or dropped.
//!
//! The contract, the list and the reading of specifications; each discipline has a file of its
//! own in `queue/`. All hold what waits in front of the transmitter: the packet in transmission
//! is not counted, neither by the room nor by an average.

mod average;
mod codel;
mod cw;
mod droptail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod packet;
mod pie;
mod red;
mod red_descriptor;

use crate::config::{LinkConfig, QueueConfig, QueueLimit};
use narrows_base::descriptor::ParamKind;
use narrows_base::list::{List, Listed};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, Rate, Settings, Spec, SpecError, Time};

pub use droptail::DROP_TAIL;
pub use fifo::has_room;
pub use packet::QueuedPacket;

/// A queue discipline in front of a transmitter.
pub trait Discipline: Send {
    /// Enqueues a packet; true if it now waits. Reports to `observer` which packets are marked or dropped,
    /// the arriving one included. With `idle` the transmitter takes it at once, whatever the limit.
    fn enqueue(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool;
    /// The packet to transmit next and when it arrived; reports to `observer` those dropped or marked
    /// meanwhile. `None` only if nothing waits any more.
    fn dequeue(
        &mut self,
        now: Time,
        observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)>;
    /// An arrival at an idle transmitter with nothing waiting: the packet to transmit at once.
    fn pass(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        observer: &mut dyn QueueObserver,
    ) -> Option<QueuedPacket> {
        self.enqueue(now, packet, true, observer);
        self.dequeue(now, observer).map(|(_, packet)| packet)
    }
    /// How many wait.
    fn waiting(&self) -> usize;
    /// The transmitter has a new rate from now on.
    fn change_rate(&mut self, _now: Time, _rate: Rate) {}
    /// The average queue in packets, for those that keep one: whether they do never changes.
    fn average(&self) -> Option<f64> {
        None
    }
}

/// Told what a discipline does to packets.
pub trait QueueObserver {
    /// It dropped this one.
    fn dropped(&mut self, packet: &QueuedPacket);
    /// It marked this one (CE), which goes on.
    fn marked(&mut self, packet: &QueuedPacket);
}

impl QueueObserver for () {
    fn dropped(&mut self, _packet: &QueuedPacket) {}
    fn marked(&mut self, _packet: &QueuedPacket) {}
}

/// A discipline: its descriptor, and how it is built.
#[derive(Clone, Copy, Debug)]
pub struct QueueEntry {
    /// What it says of itself.
    pub descriptor: &'static Descriptor,
    /// Builds it for a link.
    pub build: fn(&Setup<'_>) -> Box<dyn Discipline>,
    /// Whether these parameters go together; each alone is in the range that the descriptor gives.
    pub check: fn(&Settings) -> Result<(), SpecError>,
}

impl QueueEntry {
    /// One whose parameters always go together.
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

/// What a discipline is built of.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Its parameters.
    pub settings: &'a Settings,
    /// How much may wait.
    pub limit: QueueLimit,
    /// The link.
    pub link: LinkAhead,
    /// The key of whatever it draws.
    pub random_key: RandomKey,
}

/// All queues.
pub static QUEUES: List<QueueEntry> = List::new(
    "queue",
    &[
        droptail::ENTRY,
        red::ENTRY,
        cw::ENTRY,
        codel::ENTRY,
        fq_codel::ENTRY,
        pie::ENTRY,
        dualpi2::ENTRY,
    ],
);

/// Whether to mark, in every descriptor that has the choice.
const ECN: Param = Param {
    name: "ecn",
    help: "on: marks packets of ECN-capable senders where it would drop; others are dropped",
    kind: ParamKind::Choice(&["on", "off"]),
    origin: "RFC 3168; without ECN-capable senders both are the same",
};

/// What a discipline knows of the link that it stands before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkAhead {
    /// Bits per second, the mean for a trace.
    pub bps: f64,
    /// Propagation delay in seconds.
    pub delay_s: f64,
    /// Whether the rate is constant between changes: false for a trace.
    pub steady: bool,
}

impl LinkAhead {
    fn of(config: &LinkConfig) -> LinkAhead {
        let bps = match &config.trace {
            Some(trace) => trace.mean_bps(),
            None => config.rate.as_bps() as f64,
        };
        let bps = bps.max(1.0);
        LinkAhead { bps, delay_s: config.delay.as_secs_f64(), steady: config.trace.is_none() }
    }
    /// Packets of this size that pass in a second (S1 eq. 6.3: ptc).
    pub fn packets_per_s(self, bytes: f64) -> f64 {
        self.bps / (8.0 * bytes)
    }
}

/// The discipline that a link's configuration names; `random_key` is the link's key.
///
/// # Errors
/// An unknown discipline, or parameters that it does not have.
pub fn build(config: &LinkConfig, random_key: RandomKey) -> Result<Box<dyn Discipline>, SpecError> {
    let limit = limit(&config.queue)?;
    let (entry, settings) = match &config.queue.aqm {
        Some(spec) => read(spec)?,
        None => (&droptail::ENTRY, Settings::defaults(DROP_TAIL.params)),
    };
    let (link, random_key) = (LinkAhead::of(config), random_key.named("queue"));
    Ok((entry.build)(&Setup { settings: &settings, limit, link, random_key }))
}

/// Whether a queue is anything but drop-tail: then its link serves packet by packet.
pub fn is_managed(config: &QueueConfig) -> bool {
    config.aqm.as_ref().is_some_and(|spec| spec.name != DROP_TAIL.name)
}

/// The waiting room of a configuration. A discipline's own `limit` goes first, then the link's;
/// where neither is given, what the discipline's definition says.
///
/// # Errors
/// As [`build`]: this is also how a specification is checked.
pub fn limit(config: &QueueConfig) -> Result<QueueLimit, SpecError> {
    let Some(spec) = &config.aqm else { return Ok(config.limit) };
    let (entry, settings) = read(spec)?;
    let own = entry.descriptor.params.iter().any(|p| p.name == "limit");
    let managed = is_managed(config);
    let says =
        own && (settings.given("limit") || (managed && config.limit == QueueLimit::Unlimited));
    Ok(if says { QueueLimit::Packets(settings.number("limit") as u64) } else { config.limit })
}

fn read(spec: &Spec) -> Result<(&'static QueueEntry, Settings), SpecError> {
    let entry = QUEUES.find(&spec.name)?;
    let settings = Settings::read(spec, entry.descriptor.params)?;
    (entry.check)(&settings)?;
    Ok((entry, settings))
}

/// The parameter `limit` with this default.
const fn limit_param(default: f64, origin: &'static str) -> Param {
    Param {
        name: "limit",
        help: "packets that may wait, the one in transmission not counted (also queue=30p, 45kB or 1bdp)",
        kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1e15, default },
        origin,
    }
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;
