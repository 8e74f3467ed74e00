//! BBRv3's model of the path: bandwidth, bounds of the packets in flight, the smallest RTT (sections 5.5 and 5.3.4),
//! and the detectors of a full pipe and of losses.

use super::state::*;
use narrows_base::{Duration, Time};

/// Growth below this factor in three rounds is a plateau (section 5.3.1.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Ranges lost in a round at which Startup ends (BBRStartupFullLossCnt).
const STARTUP_LOSSES: u32 = 6;
const DRAIN_ROUNDS: u64 = 3;
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

impl MaxBandwidth {
    pub fn max(&self) -> f64 {
        self.max[0].max(self.max[1])
    }
    /// BBR.bw.
    pub fn now(&self) -> f64 {
        self.max().min(self.short_term)
    }
    /// Infinite before a loss.
    pub fn short_term(&self) -> f64 {
        self.short_term
    }
    /// Raises the short-term bound to at least this.
    pub fn raise_short_term(&mut self, least: f64) {
        self.short_term = self.short_term.max(least);
    }
    /// A probing cycle ends: the maximum of the cycle before the last is dropped.
    pub fn advance(&mut self) {
        self.max = [0.0, self.max[0]];
    }
}

impl LossRound {
    pub fn note(&mut self, segments: u64, delivered: u64) {
        if !self.any {
            self.end = delivered;
        }
        self.any = true;
        self.total = self.total.saturating_add(segments);
        self.segments = self.segments.saturating_add(segments);
        self.events = self.events.saturating_add(1);
    }
}

impl FullPipe {
    /// Restarts the search, from this delivery rate on.
    pub fn restart(&mut self, rate: f64) {
        self.rate = rate;
        self.rounds = 0;
        self.now = false;
    }

    pub fn check(&mut self, s: &AckSample, round_start: bool) {
        if self.now || !round_start || s.app_limited {
            return;
        }
        if s.rate >= self.rate * FULL_GROWTH {
            self.restart(s.rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}

impl MinRtt {
    pub fn seconds(&self) -> Option<f64> {
        self.min.map(|(rtt, _)| rtt.as_secs_f64())
    }

    pub fn update(&mut self, now: Time, rtt: Duration) {
        self.expired = self.probe.is_some_and(|(_, at)| now > at + PROBE_RTT_INTERVAL);
        if self.expired || self.probe.is_none_or(|(least, _)| rtt < least) {
            self.probe = Some((rtt, now));
        }
        let Some((least, at)) = self.probe else { return };
        let expired = self.min.is_some_and(|(_, at)| now > at + MIN_RTT_WINDOW);
        if expired || self.min.is_none_or(|(min, _)| least < min) {
            self.min = Some((least, at));
        }
    }

    /// ProbeRTT is over: the next one in five seconds.
    pub fn probed(&mut self, now: Time) {
        if let Some((_, at)) = &mut self.probe {
            *at = now;
        }
        self.done_at = None;
    }

    pub fn begin_probe(&mut self, delivered: u64) {
        self.done_at = None;
        self.round_done = false;
        self.low = Some((delivered, delivered));
    }

    /// Sending is restricted until this much has been delivered.
    pub fn mark_low(&mut self, until: u64) {
        if let Some((_, to)) = &mut self.low {
            *to = until;
        }
    }

    pub fn sent_little(&self, prior_delivered: u64) -> bool {
        self.low.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }
}

impl Bbr3 {
    /// UpdateLatestDeliverySignals and UpdateCongestionSignals.
    pub(super) fn update_congestion(&mut self, s: &AckSample) {
        self.losses.start = false;
        self.rounds.start = false;
        if s.rate <= 0.0 {
            return;
        }
        self.bandwidth.latest = self.bandwidth.latest.max(s.rate);
        self.in_flight.latest = self.in_flight.latest.max(s.delivered);
        if s.prior_delivered >= self.losses.end {
            self.losses.end = self.rounds.delivered;
            self.losses.start = true;
        }
        if s.prior_delivered >= self.rounds.end {
            self.start_round();
            self.rounds.count = self.rounds.count.saturating_add(1);
            self.cycle.rounds_since_probe = self.cycle.rounds_since_probe.saturating_add(1);
            self.rounds.start = true;
        }
        if !s.app_limited || s.rate >= self.bandwidth.max() {
            self.bandwidth.max[0] = self.bandwidth.max[0].max(s.rate);
        }
        if self.losses.start && self.losses.any && !self.state.accelerates() {
            self.lower_short_term();
        }
    }

    /// Once per round with a loss: reduces the bounds to the delivered values, but at most by the factor 0.7.
    fn lower_short_term(&mut self) {
        let bandwidth = &mut self.bandwidth;
        let in_flight = &mut self.in_flight;
        if bandwidth.short_term.is_infinite() {
            bandwidth.short_term = bandwidth.max();
        }
        if in_flight.short_term.is_infinite() {
            in_flight.short_term = self.window.cwnd;
        }
        bandwidth.short_term = bandwidth.latest.max(BETA * bandwidth.short_term);
        in_flight.short_term = in_flight.latest.max(BETA * in_flight.short_term);
    }

    pub(super) fn reset_short_term(&mut self) {
        self.bandwidth.short_term = f64::INFINITY;
        self.in_flight.short_term = f64::INFINITY;
    }

    pub(super) fn reset_congestion(&mut self) {
        self.losses.any = false;
        self.bandwidth.latest = 0.0;
        self.in_flight.latest = 0.0;
    }

    pub(super) fn start_round(&mut self) {
        self.rounds.end = self.rounds.delivered;
    }

    /// The end of a round of losses: the next begins with this sample.
    pub(super) fn advance_latest(&mut self, s: &AckSample) {
        if self.losses.start {
            self.bandwidth.latest = s.rate;
            self.in_flight.latest = s.delivered;
            self.losses.any = false;
            self.losses.events = 0;
            self.losses.segments = 0;
        }
    }

    /// CheckStartupDone and CheckDrainDone.
    pub(super) fn check_startup_and_drain(&mut self, s: &AckSample, in_recovery: bool) {
        if self.state == Bbr3State::Startup {
            let lost = self.losses.segments as f64;
            let share = lost / (lost + self.in_flight.latest).max(1.0);
            let losses = self.losses.start && self.losses.events >= STARTUP_LOSSES;
            if losses && in_recovery && share > LOSS_THRESHOLD && !self.full.reached {
                self.losses_end_state();
                self.full.now = true;
                self.full.reached = true;
                self.in_flight.long_term = self.product(1.0).max(self.in_flight.latest);
            }
            if self.full.reached {
                self.state = Bbr3State::Drain;
                self.drain_began_in = self.rounds.count;
            }
        }
        let rounds = self.rounds.count - self.drain_began_in.min(self.rounds.count);
        let drained = s.outstanding <= self.target(1.0) || rounds > DRAIN_ROUNDS;
        if self.state == Bbr3State::Drain && drained {
            self.start_down(s.now);
        }
    }
}
