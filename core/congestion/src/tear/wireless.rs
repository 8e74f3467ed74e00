//! Delay in place of loss: the hysteresis loop of Jayaram 2001, section 6.5, and thresholds that adapt.
//!
//! Below R1 the window grows, above R2 it is halved once per RTT, and in between the last direction continues. The
//! thesis fixes R1 = 800 ms and R2 = 1200 ms of RTT, which fits one network, and leaves thresholds for all networks to
//! future work. These adapt:
//!
//! - The delay is the forward delay alone, from the sender's stamps and the receiver's clock, above the smallest of the
//!   last 25 to 30 s. So it is as recent as the packet, and neither queues on the return path nor the clocks' offset
//!   disturb it. The smallest delay expires, so a new route or radio state is measured.
//! - A radio link's delay varies from packet to packet, a queue's does not. So the smallest delay of the last half to
//!   whole RTT counts, over four packets or more. The remaining difference between consecutive half RTTs, twice its
//!   mean, lies below R1.
//! - R1 lies 0.12 of the smallest RTT above the base, or three packets' transmission times if that is more; R2 twice as
//!   far. So a buffer of a third of the BDP, or of eight packets, is large enough for the delay to reach R2 before it
//!   overflows.
//! - A reduction does not wait for the average: while DOWN the rate is half of the arrival rate when DOWN began. A
//!   queue of the flow itself then drains in twice its delay. So the next reduction follows only after that time and
//!   two RTTs, and only if the delay is still above R1.
//! - A delay that does not fall has another cause. If after that time it is above half of its peak, it is attributed to
//!   a radio link's slow variation, a new route, or another flow's queue. Then both thresholds move up by it, and the
//!   window returns to the packets that arrived per RTT. This allowance decays by a tenth every 5 s, and by half when a
//!   delay falls.
//! - Beside another flow's queue, a flow cannot keep the delay short, and would starve if it reacted to delay alone. So
//!   while the allowance is larger than the margins, a loss at a delay above half of it reduces the window once, as in
//!   TEAR.
//! - A buffer can be too short for R2, such as a DSL line's five packets. So without an allowance, a loss reduces the
//!   window once if the smallest delay of each RTT has been above R1 for ten of them. In a longer buffer such a queue
//!   would have grown to R2, so this buffer is full, and the loss is its overflow. Other losses have no effect.
//! - In a buffer too short even for R1, the growth would not stop. A queue that never empties would finally count as
//!   the path's own delay. So if a fifth of the last few hundred packets is missing, more than on any usable radio
//!   link, the window is reduced once and the count restarts from zero.
//!
//! With either kind the rate is at most 1.5 times the arrival rate (`bound=off`: unbounded, as in the thesis). In the
//! first slow start the average of arrivals still includes packets that were sent once per round trip, so fixed
//! thresholds are without the bound there. With adaptive ones, two flows without the bound would displace other flows
//! from a buffer of ten packets before they have measured its delay. The thesis has no limit for buffers shorter than
//! R2: at 10 Mbit/s and 40 ms five sixths of the sent packets were dropped. Fixed thresholds are for the networks that
//! they were measured on.

use super::path_delay::PathDelay;
use super::sender_state::SenderState;
use crate::Arrival;
use narrows_base::Time;

/// Distance of R2 from the base as a multiple of R1's.
const SPREAD: f64 = 2.0;
/// Share of missing packets that counts as congestion at any delay; and the gain of its mean.
const MISSING: f64 = 0.2;
const MISSING_GAIN: f64 = 1.0 / 256.0;
/// A missing number counts as lost, not late, once a packet this far above it has arrived.
const REORDERED: u64 = 3;
/// Round trips for which a queue has stood above R1 when losses are its overflow.
const STANDS: f64 = 10.0;
/// The rate is at most this times the rate of arrivals.
const MAX_RATE: f64 = 1.5;

/// State of the loop.
#[derive(Clone, Debug)]
pub(super) struct Hysteresis {
    thresholds: Thresholds,
    /// Whether arrivals bound the rate.
    bounded: bool,
    /// In mode DOWN: the window is halved once per RTT.
    down: bool,
    /// Of the adaptive thresholds: a reduction for another reason than delay is due.
    once: bool,
    /// The wait after a reduction for DOWN has begun.
    waiting: bool,
    /// When DOWN began: the delay, and arrivals per second.
    before: f64,
    arrivals: f64,
    /// Arrivals per second now.
    now: f64,
    /// Smoothed share of missing packets.
    missing: f64,
    /// The lowest missing number that may still be late.
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
    /// The thesis's thresholds: RTTs in seconds.
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
            bounded: true,
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

    /// Whether the rate is at most 1.5 times the arrival rate.
    pub fn bounded(self, bounded: bool) -> Hysteresis {
        Hysteresis { bounded, ..self }
    }

    /// Whether thresholds adapt.
    pub fn is_adaptive(&self) -> bool {
        matches!(self.thresholds, Thresholds::Adaptive(_))
    }
    /// Whether the mode is DOWN.
    pub fn is_down(&self) -> bool {
        self.down
    }
    /// Whether the window must be reduced.
    pub fn wants_cut(&self) -> bool {
        self.down || self.once
    }
    /// Whether the wait after a reduction can end because the queue has drained.
    pub fn has_yielded(&self) -> bool {
        self.is_adaptive() && self.waiting && !self.down
    }
    /// The delay, R1 and R2, in seconds: RTTs if fixed, above the base if adaptive.
    pub fn judged(&self) -> (f64, f64, f64) {
        match &self.thresholds {
            Thresholds::Fixed { r1, r2, rtt } => (*rtt, *r1, *r2),
            Thresholds::Adaptive(path) => {
                let margin = path.margin();
                (path.queued, path.foreign + margin, path.foreign + SPREAD * margin)
            }
        }
    }
    /// Highest rate in packets per second if packets arrive `between` seconds apart; `opening` is the first slow
    /// start.
    pub fn max_rate(&self, between: f64, opening: bool) -> f64 {
        match !self.bounded || opening && !self.is_adaptive() {
            true => f64::INFINITY,
            false => MAX_RATE / between.max(1e-9),
        }
    }
    /// Highest rate in packets per second: while DOWN, half of the earlier arrival rate.
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
            self.before = delay;
            self.arrivals = self.now;
        } else if delay < r1 && self.down {
            self.down = false;
            if let Thresholds::Adaptive(path) = &mut self.thresholds {
                // A delay that falls was the flow's own queue: it needs no allowance.
                path.foreign /= 2.0;
            }
        }
        if delay > r1 {
            let since = *self.stands_since.get_or_insert(arrival.now);
            let long = STANDS * sender_state.srtt;
            self.stands = long > 0.0 && arrival.now.since(since).as_secs_f64() > long;
        } else {
            self.stands_since = None;
            self.stands = false;
        }
        if self.is_adaptive() {
            self.count(arrival);
        }
    }

    /// Counts missing packets. A large share of them, or any beside another flow's queue, is congestion.
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

    /// Begins the wait for a reduction. Returns its length in seconds, unless the delay falls earlier.
    pub fn begin_cut(&mut self, rtt: f64) -> f64 {
        self.once = false;
        if !self.is_adaptive() || !self.down {
            return rtt;
        }
        self.waiting = true;
        // The slower rate arrives an RTT from now, and the smallest delay of an RTT an RTT later.
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
        self.before = delay;
        self.arrivals = self.now.min(self.arrivals / 2.0);
        (cwnd / 2.0).max(1.0)
    }
}

#[cfg(test)]
#[path = "wireless_tests.rs"]
mod tests;
