//! Delay in place of loss: the hysteresis loop of S4 section 6.5, and thresholds that adapt.
//!
//! Below R1 the window grows, above R2 it is cut once per RTT, between them whatever was begun goes
//! on. S4 fixes R1 = 800 ms and R2 = 1200 ms of RTT, which fits one network, and leaves thresholds
//! that fit all for later. These do:
//!
//! - The delay judged is the way there alone, from the sender's stamps and the receiver's clock,
//!   above the least of the last 25 to 30 s: it is as old as the packet, and queues on the way back
//!   and clocks that disagree do not disturb it. The least ages, so a new route or radio state is
//!   learned.
//! - A radio link's delay varies from packet to packet. A queue does not: so the least of the last
//!   half to whole RTT counts, four packets or more.
//! - R1 lies a share of the least RTT above the base, or a few packets' transmission times where
//!   that is more; R2 twice as far. So a buffer of a third of the bandwidth-delay product is
//!   enough to be heard without loss.
//! - A delay that does not yield is not ours. Once half of what arrived before is gone, a queue of
//!   ours would be served at the other half, in twice its delay. If after that time (two RTTs at
//!   least) the delay is still above half of what it was, then it is a radio link's slow variation
//!   or another's queue: both thresholds move up by it (at most 0.6 of the least RTT, as far as S4's
//!   R1 lies above the 500 ms that it saw), the window returns to half of what arrived per RTT before
//!   the cuts, and the allowance is forgotten with a half-life of about 30 s.
//! - Where a buffer is too short to be heard nothing would stop the growth, and a queue that never
//!   empties would in the end be taken for the path's own delay. So the rate is at most 1.5 times
//!   what arrives, and where a fifth of the last few hundred packets is missing, more than any
//!   radio link worth using loses, the window is cut once and the count begins anew.

use super::machine::Told;
use crate::Arrival;

/// Share of the least RTT by which R1 lies above it.
const SHARE: f64 = 0.12;
/// Or so many packets' transmission times.
const PACKETS: f64 = 3.0;
/// Or so many seconds.
const LEAST: f64 = 0.002;
/// R2 is so many times as far above the base as R1.
const SPREAD: f64 = 2.0;
/// A share of missing packets that is congestion whatever the delay says; and the gain of its mean.
const MISSING: f64 = 0.2;
const MISSING_GAIN: f64 = 1.0 / 256.0;
/// A number is missing, and not late, once the one so far above it has come.
const REORDERED: u64 = 3;
/// Kept of the allowance every [`SLOT`] seconds.
const FORGET: f64 = 0.9;
/// A slot of the sliding minimum, in seconds.
const SLOT: f64 = 5.0;
/// Slots of it.
const SLOTS: usize = 6;
/// Packets before the least of them is believed.
const FEW: u32 = 2;
/// The rate is at most this times the rate of arrivals.
const MOST_RATE: f64 = 1.5;

/// The loop.
#[derive(Debug)]
pub(super) struct Hysteresis {
    thresholds: Thresholds,
    /// In mode DOWN: the window is cut once per RTT.
    down: bool,
    /// Of the adaptive thresholds: a cut that something else than delay asks for.
    once: bool,
    /// A wait after a cut for DOWN has begun.
    waiting: bool,
    /// When DOWN began: the delay, and arrivals per second.
    before: f64,
    arrivals: f64,
    /// Arrivals per second now.
    now: f64,
    /// Smoothed share of missing packets.
    missing: f64,
    /// The lowest number missing, not yet judged.
    hole: Option<u64>,
    next: u64,
}

#[derive(Debug)]
enum Thresholds {
    /// Of the RTT, in seconds; and the last RTT.
    Fixed {
        r1: f64,
        r2: f64,
        rtt: f64,
    },
    Adaptive(Box<Path>),
}

impl Hysteresis {
    /// S4's: RTTs in seconds.
    pub fn fixed(r1: f64, r2: f64) -> Hysteresis {
        Hysteresis::of(Thresholds::Fixed { r1, r2: r2.max(r1), rtt: 0.0 })
    }
    /// Those of the module's text.
    pub fn adaptive() -> Hysteresis {
        Hysteresis::of(Thresholds::Adaptive(Box::default()))
    }
    fn of(thresholds: Thresholds) -> Hysteresis {
        Hysteresis {
            thresholds,
            down: false,
            once: false,
            waiting: false,
            before: 0.0,
            arrivals: 0.0,
            now: 0.0,
            missing: 0.0,
            hole: None,
            next: 0,
        }
    }

    /// Whether thresholds adapt.
    pub fn is_adaptive(&self) -> bool {
        matches!(self.thresholds, Thresholds::Adaptive(_))
    }
    /// Whether the mode is DOWN.
    pub fn is_down(&self) -> bool {
        self.down
    }
    /// Whether the window is to be cut.
    pub fn wants_cut(&self) -> bool {
        self.down || self.once
    }
    /// Whether the wait after a cut can end because the queue is gone.
    pub fn has_yielded(&self) -> bool {
        self.is_adaptive() && self.waiting && !self.down
    }
    /// The delay judged, R1 and R2, in seconds: RTTs if fixed, above the base if adaptive.
    pub fn judged(&self) -> (f64, f64, f64) {
        match &self.thresholds {
            Thresholds::Fixed { r1, r2, rtt } => (*rtt, *r1, *r2),
            Thresholds::Adaptive(path) => {
                let margin = path.margin();
                (path.queued, path.foreign + margin, path.foreign + SPREAD * margin)
            }
        }
    }
    /// Most packets per second where they come `between` seconds apart.
    pub fn most(&self, between: f64) -> f64 {
        if self.is_adaptive() { MOST_RATE / between.max(1e-9) } else { f64::INFINITY }
    }
    /// Most packets per second for now: while DOWN, half of what arrived before.
    pub fn drain(&self) -> f64 {
        if self.is_adaptive() && self.down { self.arrivals / 2.0 } else { f64::INFINITY }
    }

    /// A packet arrived; arrivals are `between` seconds apart.
    pub fn observe(&mut self, arrival: &Arrival, told: &Told, between: Option<f64>) {
        self.now = 1.0 / between.unwrap_or(told.srtt).max(1e-9);
        match &mut self.thresholds {
            Thresholds::Fixed { rtt, .. } => *rtt = told.rtt,
            Thresholds::Adaptive(path) => path.observe(arrival, told),
        }
        let (delay, r1, r2) = self.judged();
        if self.down {
            self.before = self.before.max(delay);
        }
        if delay > r2 && !self.down {
            self.down = true;
            (self.before, self.arrivals) = (delay, self.now);
        } else if delay < r1 && self.down {
            self.down = false;
            if let Thresholds::Adaptive(path) = &mut self.thresholds {
                // What yields is ours: it needs no allowance.
                path.foreign /= 2.0;
            }
        }
        if self.is_adaptive() {
            self.count(arrival);
        }
    }

    /// Counts what is missing: much of it, or any beside another's queue, is congestion.
    fn count(&mut self, a: &Arrival) {
        if self.hole == Some(a.seq) {
            self.hole = None;
        }
        if a.seq >= self.next {
            if self.next > 0 {
                let lost = a.seq - self.next;
                if lost > 0 && self.hole.is_none() {
                    self.hole = Some(self.next);
                }
                let lost = lost.min(256) as f64;
                self.missing += (lost - (lost + 1.0) * self.missing) * MISSING_GAIN;
            }
            self.next = a.seq.saturating_add(1);
        }
        if self.hole.is_some_and(|h| a.seq.saturating_sub(h) >= REORDERED) {
            self.hole = None;
            self.once |= self.beside_another();
        }
        if self.missing > MISSING {
            self.missing = 0.0;
            self.once = true;
        }
    }
    fn beside_another(&self) -> bool {
        match &self.thresholds {
            Thresholds::Adaptive(path) => {
                path.foreign > path.margin() && path.queued > path.foreign / 2.0
            }
            Thresholds::Fixed { .. } => false,
        }
    }

    /// The wait for a cut begins; how long it takes, in seconds, unless the delay yields.
    pub fn begin_cut(&mut self, rtt: f64) -> f64 {
        self.once = false;
        if !self.is_adaptive() || !self.down {
            return rtt;
        }
        self.waiting = true;
        // The slower rate is seen an RTT from now, and the least of an RTT an RTT later.
        2.0 * rtt + 2.0 * self.before.max(rtt)
    }

    /// Cuts a window after the wait.
    pub fn cut(&mut self, cwnd: f64, rtt: f64) -> f64 {
        let waited = std::mem::take(&mut self.waiting);
        self.once = false;
        let (delay, ..) = self.judged();
        if let Thresholds::Adaptive(path) = &mut self.thresholds {
            if waited && self.down {
                if delay > 0.5 * self.before {
                    path.foreign = delay;
                    self.down = false;
                    return (self.arrivals * rtt).clamp(1.0, cwnd.max(1.0));
                }
                (self.before, self.arrivals) = (delay, self.now.min(self.arrivals / 2.0));
            }
        }
        (cwnd / 2.0).max(1.0)
    }
}

/// What is known of the path's own delay.
#[derive(Debug, Default)]
struct Path {
    /// Receiver's clock minus sender's, in seconds: only differences mean something.
    base: Least,
    rtt: Least,
    /// Time between packets that stood in one queue: a packet's transmission time.
    between: Least,
    slot_since: f64,
    last: f64,
    begun: bool,
    /// Least delay of this and the last half RTT, and packets of this one.
    now: Option<f64>,
    past: Option<f64>,
    few: u32,
    half_since: f64,
    /// Delay above the base, in seconds.
    queued: f64,
    /// Delay above the base that is not ours.
    foreign: f64,
}

impl Path {
    fn observe(&mut self, a: &Arrival, told: &Told) {
        let now = a.now.as_secs_f64();
        let way = (i128::from(a.now.as_nanos()) - i128::from(a.sent.as_nanos())) as f64 * 1e-9;
        if !self.begun {
            (self.begun, self.slot_since, self.half_since) = (true, now, now);
        } else if now > self.last {
            self.between.take(now - self.last);
        }
        self.last = now;
        if now - self.slot_since >= SLOT {
            self.slot_since = now;
            self.base.age();
            self.rtt.age();
            self.between.age();
            self.foreign *= FORGET;
        }
        self.base.take(way);
        if told.rtt > 0.0 {
            self.rtt.take(told.rtt);
        }
        self.now = Some(self.now.map_or(way, |x| x.min(way)));
        self.few += 1;
        if self.few >= FEW && now - self.half_since >= told.srtt / 2.0 {
            let least = self.now.take().unwrap_or(way);
            let both = self.past.map_or(least, |x| x.min(least));
            self.queued = (both - self.base.least().unwrap_or(both)).max(0.0);
            self.past = Some(least);
            (self.few, self.half_since) = (0, now);
        }
    }
    fn least_rtt(&self) -> f64 {
        self.rtt.least().unwrap_or(0.0)
    }
    fn margin(&self) -> f64 {
        let packets = PACKETS * self.between.least().unwrap_or(0.0);
        // A slow flow's packets may never stand in one queue: not more than an RTT is believed.
        (SHARE * self.least_rtt()).max(packets.min(self.least_rtt())).max(LEAST)
    }
}

/// A minimum over the last [`SLOTS`] slots of time.
#[derive(Debug, Default)]
struct Least {
    slots: [Option<f64>; SLOTS],
}

impl Least {
    fn take(&mut self, x: f64) {
        let slot = &mut self.slots[0];
        *slot = Some(slot.map_or(x, |s| s.min(x)));
    }
    /// The next slot begins; the oldest is forgotten, unless nothing else is known.
    fn age(&mut self) {
        if self.slots[..SLOTS - 1].iter().any(Option::is_some) {
            self.slots.rotate_right(1);
            self.slots[0] = None;
        }
    }
    fn least(&self) -> Option<f64> {
        self.slots.iter().flatten().copied().reduce(f64::min)
    }
}

#[cfg(test)]
#[path = "wireless_tests.rs"]
mod tests;
