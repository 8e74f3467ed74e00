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
//!   half to whole RTT counts, four packets or more; and what still differs between one half RTT and
//!   the next, twice the mean of it, lies below R1.
//! - R1 lies 0.12 of the least RTT above the base, or three packets' transmission times where that
//!   is more; R2 twice as far. So a buffer of a third of the bandwidth-delay product, or of eight
//!   packets, is enough to be heard before it loses.
//! - A cut does not wait for the average: while DOWN the rate is half of what arrived when DOWN began.
//!   A queue of ours is then served at the other half, in twice its delay. So the next cut comes only
//!   when that time and two RTTs are over, and only if the delay is still above R1.
//! - A delay that does not yield is not ours. If after that time it is above half of its peak, it is
//!   a radio link's slow variation, a new route, or another's queue: both thresholds move up by it,
//!   and the window returns to what arrived per RTT. Every 5 s a tenth of the allowance is
//!   forgotten, and half of it when a delay does yield.
//! - Beside another's queue delay cannot keep it short, and reacting to delay alone would starve. So
//!   while there is an allowance larger than the margins, a loss at a delay above half of it cuts the
//!   window once, as in TEAR.
//! - A buffer can be too short for R2: a DSL line's five packets are. So without an allowance, a loss
//!   cuts the window once where the least delay of each RTT has been above R1 for ten of them: in a
//!   longer buffer a queue that stands so long has grown to R2, so this one is at the buffer's end,
//!   and what is lost is its overflow. Other losses change nothing.
//! - Where a buffer is too short to be heard nothing would stop the growth, and a queue that never
//!   empties would in the end be taken for the path's own delay. So where a fifth of the last few
//!   hundred packets is missing, more than a radio link worth using loses, the window is cut once and
//!   the count goes on from zero.
//!
//! With either kind the rate is at most 1.5 times what arrives. In the first slow start the average of
//! arrivals still remembers packets that left once per round trip, so fixed thresholds are without
//! the bound there; with adaptive ones two flows would crowd others out of a buffer of ten packets
//! before they know its delay. By S4's letter nothing limits it
//! where no buffer is as long as R2: at 10 Mbit/s and 40 ms five sixths of what it sent were dropped.
//! Fixed thresholds are for the networks that they were measured on.

use super::path_delay::PathDelay;
use super::sender_state::SenderState;
use crate::Arrival;
use narrows_base::Time;

/// R2 is so many times as far above the base as R1.
const SPREAD: f64 = 2.0;
/// A share of missing packets that is congestion whatever the delay says; and the gain of its mean.
const MISSING: f64 = 0.2;
const MISSING_GAIN: f64 = 1.0 / 256.0;
/// A number is missing, and not late, once the one so far above it has come.
const REORDERED: u64 = 3;
/// Round trips for which a queue has stood above R1 when losses are its overflow.
const STANDS: f64 = 10.0;
/// The rate is at most this times the rate of arrivals.
const MAX_RATE: f64 = 1.5;

/// The loop.
#[derive(Clone, Debug)]
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
    /// Since when the delay has been above R1, if it is.
    stands_since: Option<Time>,
    /// Whether that is long enough.
    stands: bool,
}

#[derive(Clone, Debug)]
enum Thresholds {
    /// Of the RTT, in seconds; and the last RTT.
    Fixed {
        r1: f64,
        r2: f64,
        rtt: f64,
    },
    Adaptive(Box<PathDelay>),
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
            stands_since: None,
            stands: false,
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
    /// Most packets per second where they come `between` seconds apart; `opening` is the first slow
    /// start.
    pub fn most(&self, between: f64, opening: bool) -> f64 {
        match opening && !self.is_adaptive() {
            true => f64::INFINITY,
            false => MAX_RATE / between.max(1e-9),
        }
    }
    /// Most packets per second for now: while DOWN, half of what arrived before.
    pub fn drain(&self) -> f64 {
        if self.is_adaptive() && self.down { self.arrivals / 2.0 } else { f64::INFINITY }
    }

    /// A packet arrived; arrivals are `between` seconds apart.
    pub fn observe(&mut self, arrival: &Arrival, sender_state: &SenderState, between: Option<f64>) {
        self.now = 1.0 / between.unwrap_or(sender_state.srtt).max(1e-9);
        match &mut self.thresholds {
            Thresholds::Fixed { rtt, .. } => *rtt = sender_state.rtt,
            Thresholds::Adaptive(path) => path.observe(arrival, sender_state),
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
        if delay > r1 {
            let since = *self.stands_since.get_or_insert(arrival.now);
            let long = STANDS * sender_state.srtt;
            self.stands = long > 0.0 && arrival.now.since(since).as_secs_f64() > long;
        } else {
            (self.stands_since, self.stands) = (None, false);
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
            self.once |= self.beside_a_queue();
        }
        if self.missing > MISSING {
            self.missing = 0.0;
            self.once = true;
        }
    }
    /// Whether a loss now is a queue's: another's, or one that has stood above R1 for long.
    fn beside_a_queue(&self) -> bool {
        match &self.thresholds {
            Thresholds::Adaptive(path) if path.foreign > path.margin() => {
                path.queued > path.foreign / 2.0
            }
            Thresholds::Adaptive(_) => self.stands,
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
        if !waited || !self.down {
            return (cwnd / 2.0).max(1.0);
        }
        if delay > 0.5 * self.before {
            if let Thresholds::Adaptive(path) = &mut self.thresholds {
                path.foreign = delay;
            }
            self.down = false;
            return (self.arrivals * rtt).clamp(1.0, cwnd.max(1.0));
        }
        (self.before, self.arrivals) = (delay, self.now.min(self.arrivals / 2.0));
        (cwnd / 2.0).max(1.0)
    }
}

#[cfg(test)]
#[path = "wireless_tests.rs"]
mod tests;
