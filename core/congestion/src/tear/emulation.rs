//! The emulated TCP: Jayaram's state machine of seven states, driven by arrivals and time.
//!
//! ```text
//! SLOW-START-READY --packet--> SLOW-START --cwnd > ssthresh--> CONGESTION-AVOIDANCE
//! either --a number is missing--> GAP --it arrives--> back, every packet held counted
//! GAP --three above it, within lastCwnd of it--> FAST-RECOVERY --an RTT--> CONGESTION-AVOIDANCE-READY
//! GAP, or no arrivals --T_timeout--> TIMEOUT --an RTT--> SLOW-START-READY
//! CONGESTION-AVOIDANCE-READY --packet--> CONGESTION-AVOIDANCE
//! ```
//!
//! Present TCPs undo a reduction when the missing packet arrives after all, and wait longer from then on
//! ([`ReorderingWindow`]); so does this one.
//!
//! Where the thesis is open or misprinted, see the list in [`super`].

use super::reassembly::PacketRanges;
use super::sender_state::SenderState;
use super::smoothing::EpochHistory;
use super::wireless::Hysteresis;
use super::yielding::Yielding;
use crate::reordering::ReorderingWindow;
use crate::{Arrival, bounded, smooth};
use narrows_base::{Duration, Time};

/// Packets above a gap that make it a loss: TCP's third duplicate.
const OUT_OF_ORDER: u64 = 3;
/// Most consecutive doublings of T_timeout.
const MAX_BACKOFF: f64 = 64.0;
/// Gain of the smoothed time between arrivals.
const GAIN: f64 = 0.125;
/// Least RTO of the emulated TCP (RFC 6298).
const MIN_RTO: f64 = 1.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EmulationState {
    SlowStartReady,
    SlowStart,
    AvoidanceReady,
    Avoidance,
    Gap,
    FastRecovery,
    Timeout,
}

/// How the window grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Growth {
    SlowStart,
    Avoidance,
}

/// State before a fast recovery.
#[derive(Clone, Copy, Debug)]
struct TakenBack {
    /// The missing packet that caused it, and the arrival time of the first packet above it.
    missing: u64,
    passed: Time,
    growth: Growth,
    cwnd: f64,
    ssthresh: f64,
}

/// Reductions that late packets take back.
#[derive(Clone, Debug)]
struct TearUndo {
    last: Option<TakenBack>,
    /// Whether late packets take a reduction back.
    is_on: bool,
}

/// The receiver's machine.
#[derive(Clone, Debug)]
pub(super) struct TcpEmulation {
    pub state: EmulationState,
    /// How it grew before GAP or FAST-RECOVERY.
    growth: Growth,
    pub cwnd: f64,
    /// Packets of this round: the window at the end of the last.
    last_cwnd: u64,
    ssthresh: f64,
    /// The next number in order.
    expected: u64,
    /// Arrivals of this round.
    arrived: u64,
    ahead: PacketRanges,
    /// Arrival time of the first packet above the gap.
    passed: Time,
    reordering: ReorderingWindow,
    /// Reductions that late packets take back.
    undo: TearUndo,
    /// When the state's timer fires.
    due: Time,
    sender_state: SenderState,
    between: Option<f64>,
    last_arrival: Option<Time>,
    backoff: f64,
    history: EpochHistory,
    /// Set if delay rather than loss indicates congestion.
    delay: Option<Hysteresis>,
    /// Absent if the thesis is followed literally.
    yielding: Option<Yielding>,
    /// Smoothed rate in packets per second; 0 before the first measurement.
    rate: f64,
}

impl TcpEmulation {
    pub fn new(ssthresh: f64, history: EpochHistory, delay: Option<Hysteresis>) -> TcpEmulation {
        TcpEmulation {
            state: EmulationState::SlowStartReady,
            growth: Growth::SlowStart,
            cwnd: 1.0,
            last_cwnd: 1,
            ssthresh,
            expected: 0,
            arrived: 0,
            ahead: PacketRanges::default(),
            passed: Time::ZERO,
            reordering: ReorderingWindow::default(),
            undo: TearUndo { last: None, is_on: true },
            due: Time::NEVER,
            sender_state: SenderState::default(),
            between: None,
            last_arrival: None,
            backoff: 1.0,
            history,
            delay,
            yielding: None,
            rate: 0.0,
        }
    }

    /// After a halving it sends below the mean until the queue has drained.
    pub fn yielding(mut self) -> TcpEmulation {
        self.yielding = Some(Yielding::default());
        self
    }

    /// Whether a late packet takes a reduction back.
    pub fn undoing(mut self, undoes: bool) -> TcpEmulation {
        self.undo.is_on = undoes;
        self
    }

    /// When [`on_time`](TcpEmulation::on_time) is wanted.
    pub fn due(&self) -> Time {
        self.due
    }
    /// The smoothed rate in packets per second; 0 before the first RTT sample.
    pub fn rate(&self) -> f64 {
        let rate = self.rate.min(self.yielding.as_ref().map_or(f64::INFINITY, Yielding::max_rate));
        rate.min(self.delay.as_ref().map_or(f64::INFINITY, Hysteresis::drain))
    }
    /// Smoothed RTT that the sender reported, in seconds.
    pub fn rtt(&self) -> Option<f64> {
        (self.sender_state.srtt > 0.0).then_some(self.sender_state.srtt)
    }
    pub fn delay(&self) -> Option<&Hysteresis> {
        self.delay.as_ref()
    }
    /// Slow-start threshold in packets.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn round_trip(&self) -> Duration {
        Duration::from_secs_f64(self.rtt().unwrap_or(1.0))
    }
    /// RTO of the emulated TCP, in seconds.
    fn rto(&self) -> f64 {
        (self.sender_state.srtt + 4.0 * self.sender_state.deviation).max(MIN_RTO) * self.backoff
    }
    /// The longest time without arrivals that is not a timeout, in seconds.
    pub fn timeout(&self) -> f64 {
        let expected = self.last_cwnd.max(OUT_OF_ORDER) as f64;
        let srtt = self.rtt().unwrap_or(1.0);
        let arrivals = self.between.unwrap_or(srtt) * expected + 2.0 * self.sender_state.deviation;
        arrivals.max(srtt + 4.0 * self.sender_state.deviation) * self.backoff
    }

    /// Fires the timers that are due.
    pub fn on_time(&mut self, now: Time) {
        // Two at most: a timeout, and the end of its wait. READY states have no timer.
        while self.due <= now && !self.due.is_never() {
            let at = self.due;
            match self.state {
                EmulationState::SlowStart | EmulationState::Avoidance | EmulationState::Gap => {
                    self.begin_timeout(at)
                }
                EmulationState::FastRecovery => self.end_fast_recovery(),
                EmulationState::Timeout => self.end_timeout(),
                EmulationState::SlowStartReady | EmulationState::AvoidanceReady => {
                    self.due = Time::NEVER
                }
            }
        }
    }

    /// A packet arrived.
    pub fn on_arrival(&mut self, a: &Arrival) {
        self.on_time(a.now);
        let idle = std::mem::replace(&mut self.sender_state, SenderState::read(&a.feedback)).idle;
        self.time_between(a.now, idle);
        if let Some(yielding) = &mut self.yielding {
            yielding.observe(a.now, &self.sender_state);
        }
        if let Some(delay) = &mut self.delay {
            delay.observe(a, &self.sender_state, self.between);
        }
        if let Some(undo) = self.undo.last.take_if(|u| u.missing == a.seq) {
            self.take_back(a.now, undo);
            return;
        }
        match self.state {
            EmulationState::SlowStartReady | EmulationState::AvoidanceReady => {
                // Holes below it belong to the loss event that has been handled.
                if a.seq >= self.expected {
                    self.expected = a.seq.saturating_add(1);
                    self.begin_epoch();
                    self.in_order(a);
                }
            }
            EmulationState::SlowStart | EmulationState::Avoidance => {
                if a.seq == self.expected || (self.delay.is_some() && a.seq > self.expected) {
                    self.expected = a.seq.saturating_add(1);
                    self.in_order(a);
                } else if a.seq > self.expected {
                    self.state = EmulationState::Gap;
                    self.passed = a.now;
                    self.ahead.clear();
                    if self.due.is_never() {
                        // The application was idle before: the wait begins here.
                        self.due = a.now + Duration::from_secs_f64(self.timeout());
                    }
                    self.hold(a);
                }
            }
            EmulationState::Gap => {
                if a.seq == self.expected {
                    self.fill(a);
                } else if a.seq > self.expected {
                    self.hold(a);
                }
            }
            EmulationState::FastRecovery | EmulationState::Timeout => {
                self.expected = self.expected.max(a.seq.saturating_add(1));
                if self.state == EmulationState::FastRecovery
                    && self.delay.as_ref().is_some_and(Hysteresis::has_yielded)
                {
                    self.end_fast_recovery();
                }
            }
        }
    }

    /// Updates the mean time between arrivals. Idle times of the application are left out, and each time counts at most
    /// as the timeout.
    fn time_between(&mut self, now: Time, idle: bool) {
        if let Some(last) = self.last_arrival.filter(|_| !idle) {
            let sample = now.since(last).as_secs_f64().min(self.timeout());
            smooth(&mut self.between, sample, GAIN);
        }
        self.last_arrival = Some(now);
    }

    /// A packet in sequence.
    fn in_order(&mut self, a: &Arrival) {
        self.grow();
        let congested = a.marked || self.delay.as_ref().is_some_and(Hysteresis::wants_cut);
        if congested {
            self.begin_fast_recovery(a.now);
        } else {
            self.arm_silence(a.now);
        }
    }

    fn arm_silence(&mut self, now: Time) {
        self.due = if self.sender_state.idle {
            Time::NEVER
        } else {
            now + Duration::from_secs_f64(self.timeout())
        };
    }

    /// One packet more for the window and the round.
    fn grow(&mut self) {
        if !self.sender_state.idle {
            self.cwnd += match self.growth {
                Growth::SlowStart => 1.0,
                Growth::Avoidance => 1.0 / self.last_cwnd as f64,
            };
            self.cwnd = bounded(self.cwnd, 1.0);
        }
        self.arrived += 1;
        if self.arrived >= self.last_cwnd {
            self.store_round();
            self.begin_round();
            self.backoff = 1.0;
        }
        if self.growth == Growth::SlowStart && self.cwnd > self.ssthresh {
            self.growth = Growth::Avoidance;
            self.begin_epoch();
        }
        if self.history.rounds() == 0 {
            self.update_rate();
        }
    }

    fn begin_round(&mut self) {
        self.arrived = 0;
        // Ten times a tenth must be a whole despite rounding.
        self.last_cwnd = (self.cwnd + 1e-6) as u64;
    }
    fn begin_epoch(&mut self) {
        self.state = match self.growth {
            Growth::SlowStart => EmulationState::SlowStart,
            Growth::Avoidance => EmulationState::Avoidance,
        };
        self.history.next_epoch();
        self.update_rate();
        self.begin_round();
    }
    fn store_round(&mut self) {
        if let Some(rtt) = self.rtt() {
            self.history.round(self.cwnd, rtt);
            self.update_rate();
        }
    }
    fn update_rate(&mut self) {
        if let Some(rtt) = self.rtt() {
            let opening = self.growth == Growth::SlowStart && self.history.is_first();
            let max = match (&self.delay, self.between) {
                (Some(delay), Some(between)) => delay.max_rate(between, opening),
                _ => f64::INFINITY,
            };
            self.rate = self.history.rate().unwrap_or(self.cwnd / rtt).min(max);
        }
    }

    /// A packet above the gap.
    fn hold(&mut self, a: &Arrival) {
        self.ahead.insert(a.seq);
        if a.marked {
            self.begin_fast_recovery(a.now);
        } else {
            self.judge_gap(a.now);
        }
    }
    fn judge_gap(&mut self, now: Time) {
        let window = self.expected.saturating_add(self.last_cwnd);
        let wait = Duration::from_secs_f64(self.reordering.length(self.rtt().unwrap_or(0.0)));
        if self.ahead.count(self.expected, window) >= OUT_OF_ORDER && now >= self.passed + wait {
            let Self { expected: missing, passed, growth, cwnd, ssthresh, .. } = *self;
            self.begin_fast_recovery(now);
            self.reordering.on_loss_event();
            let undo = TakenBack { missing, passed, growth, cwnd, ssthresh };
            self.undo.last = self.undo.is_on.then_some(undo);
        }
    }
    /// The missing packet of a fast recovery arrived: it was only late.
    fn take_back(&mut self, now: Time, undo: TakenBack) {
        let late = now.since(undo.passed).as_secs_f64();
        self.reordering.on_late(late, self.rtt().unwrap_or(1.0));
        if matches!(self.state, EmulationState::SlowStartReady | EmulationState::Timeout) {
            return; // Something else was lost.
        }
        self.growth = undo.growth;
        self.ssthresh = undo.ssthresh;
        self.cwnd = self.cwnd.max(undo.cwnd);
        if self.state != EmulationState::Gap {
            self.state = match self.growth {
                Growth::SlowStart => EmulationState::SlowStart,
                Growth::Avoidance => EmulationState::Avoidance,
            };
            self.arm_silence(now);
        }
        self.begin_round();
        self.update_rate();
    }

    /// The missing packet arrived: the packets held behind it count as if they arrived now.
    fn fill(&mut self, a: &Arrival) {
        self.state = match self.growth {
            Growth::SlowStart => EmulationState::SlowStart,
            Growth::Avoidance => EmulationState::Avoidance,
        };
        let end = self.ahead.take_run(self.expected.saturating_add(1));
        // One step of growth per arrived packet.
        for _ in self.expected..end {
            self.grow();
        }
        self.expected = end;
        self.arm_silence(a.now);
        if a.marked {
            self.begin_fast_recovery(a.now);
        } else if !self.ahead.is_empty() {
            self.state = EmulationState::Gap;
            self.passed = a.now;
            self.judge_gap(a.now);
        }
    }

    fn leave(&mut self) {
        self.expected = self.ahead.end(self.expected);
        self.ahead.clear();
    }

    fn begin_fast_recovery(&mut self, now: Time) {
        let draining = self.delay.as_ref().is_some_and(|d| d.is_adaptive() && d.is_down());
        if self.history.rounds() == 0 && !draining {
            self.store_round();
        }
        let rtt = self.rtt().unwrap_or(1.0);
        let wait = self.delay.as_mut().map_or(rtt, |d| d.begin_cut(rtt));
        self.leave();
        self.undo.last = None;
        if let Some(yielding) = &mut self.yielding {
            yielding.begin(now, self.rate, &self.sender_state);
        }
        self.state = EmulationState::FastRecovery;
        self.due = now + Duration::from_secs_f64(wait);
    }
    fn end_fast_recovery(&mut self) {
        self.cwnd = match (&mut self.delay, self.growth) {
            (Some(delay), _) => delay.cut(self.cwnd, self.sender_state.srtt),
            (None, Growth::SlowStart) => (self.cwnd / 2.0).max(2.0),
            (None, Growth::Avoidance) => (self.cwnd / 2.0).max(1.0),
        };
        if self.growth == Growth::SlowStart {
            self.ssthresh = self.cwnd.max(2.0);
        }
        self.begin_round();
        self.growth = Growth::Avoidance;
        self.state = EmulationState::AvoidanceReady;
        self.due = Time::NEVER;
    }

    fn begin_timeout(&mut self, now: Time) {
        if self.rtt().is_some() {
            self.history.round(self.cwnd, self.rto());
            self.update_rate();
        }
        self.leave();
        self.undo.last = None;
        self.state = EmulationState::Timeout;
        self.due = now + self.round_trip();
    }
    fn end_timeout(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).max(2.0);
        self.cwnd = 1.0;
        self.begin_round();
        self.backoff = (self.backoff * 2.0).min(MAX_BACKOFF);
        self.growth = Growth::SlowStart;
        self.state = EmulationState::SlowStartReady;
        self.due = Time::NEVER;
    }
}

#[cfg(test)]
#[path = "emulation_tests.rs"]
mod tests;
