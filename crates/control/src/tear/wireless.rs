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
use narrows_base::Time;

/// Share of the least RTT by which R1 lies above it.
const SHARE: f64 = 0.15;
/// Or so many packets' transmission times.
const PACKETS: f64 = 3.0;
/// Or so many seconds.
const LEAST: f64 = 0.002;
/// R2 is so many times as far above the base as R1.
const SPREAD: f64 = 2.0;
/// A share of missing packets that is congestion whatever the delay says; and the gain of its mean.
const MISSING: f64 = 0.2;
const MISSING_GAIN: f64 = 1.0 / 256.0;
/// Most that is allowed for a delay that is not ours, as a share of the least RTT.
const MOST_FOREIGN: f64 = 0.6;
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
    /// When DOWN began: arrivals per second, and the delay.
    arrivals: f64,
    before: f64,
    /// Since when half of those arrivals are gone.
    halved: Option<Time>,
    /// Arrivals per second now.
    now: f64,
    /// The delay did not yield.
    foreign: bool,
    missing: f64,
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
            arrivals: 0.0,
            before: 0.0,
            halved: None,
            now: 0.0,
            foreign: false,
            missing: 0.0,
            next: 0,
        }
    }

    /// Whether the window is to be cut.
    pub fn is_down(&self) -> bool {
        self.down
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
        match &self.thresholds {
            Thresholds::Fixed { .. } => f64::INFINITY,
            Thresholds::Adaptive(_) => MOST_RATE / between.max(1e-9),
        }
    }

    /// A packet arrived; arrivals are `between` seconds apart.
    pub fn observe(&mut self, arrival: &Arrival, told: &Told, between: Option<f64>) {
        self.now = 1.0 / between.unwrap_or(told.srtt).max(1e-9);
        match &mut self.thresholds {
            Thresholds::Fixed { rtt, .. } => *rtt = told.rtt,
            Thresholds::Adaptive(path) => path.observe(arrival, told),
        }
        let (delay, r1, r2) = self.judged();
        if delay > r2 && !self.down {
            (self.down, self.halved) = (true, None);
            (self.arrivals, self.before) = (self.now, delay);
        } else if delay < r1 {
            self.down = false;
        }
        if matches!(self.thresholds, Thresholds::Adaptive(_)) {
            self.doubt(arrival, delay, told);
        }
    }

    /// Whether the delay that we cut for is ours; and whether it is silent where it should speak.
    fn doubt(&mut self, a: &Arrival, delay: f64, told: &Told) {
        if self.down && self.now <= 0.5 * self.arrivals {
            let since = *self.halved.get_or_insert(a.now);
            let patience = 2.0 * self.before.max(told.srtt);
            if a.now.since(since).as_secs_f64() > patience && delay > 0.5 * self.before {
                self.foreign = true;
            }
        }
        if a.seq >= self.next {
            if self.next > 0 {
                let lost = (a.seq - self.next).min(256) as f64;
                self.missing += (lost - (lost + 1.0) * self.missing) * MISSING_GAIN;
            }
            self.next = a.seq.saturating_add(1);
        }
        if self.missing > MISSING {
            self.missing = 0.0;
            self.down = true;
        }
    }

    /// Cuts a window.
    pub fn cut(&mut self, cwnd: f64, rtt: f64) -> f64 {
        let (delay, ..) = self.judged();
        if std::mem::take(&mut self.foreign) {
            if let Thresholds::Adaptive(path) = &mut self.thresholds {
                path.foreign = path.foreign.max(delay.min(MOST_FOREIGN * path.least_rtt()));
                self.down = false;
                return (self.arrivals * rtt / 2.0).max(cwnd / 2.0).max(1.0);
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
