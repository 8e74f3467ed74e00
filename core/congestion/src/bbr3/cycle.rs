//! The cycle that probes for bandwidth, and ProbeRTT (sections 5.3.3 and 5.3.4).

use super::state::*;
use narrows_base::{Duration, Time};

/// Share kept free below the level that lost packets (Headroom).
const HEADROOM: f64 = 0.15;
/// Most rounds between two probes, so that Reno flows can coexist (T_reno_bound).
const MAX_RENO_ROUNDS: f64 = 63.0;
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Time) {
        self.reset_congestion();
        self.cycle.acked_per_step = f64::INFINITY;
        // Section 5.3.3.8: 2 to 3 s, or as many rounds as there are packets in flight.
        self.cycle.rounds_since_probe = self.random.bits() & 1;
        self.cycle.wait = Duration::from_secs_f64(2.0 + self.random.unit());
        self.cycle.began = now;
        self.cycle.phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = Bbr3State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.precautionary = false;
        self.cycle.phase = AckPhase::Refilling;
        self.start_round();
        self.state = Bbr3State::Refill;
    }

    fn start_up(&mut self, s: &AckSample) {
        self.cycle.phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full.restart(s.rate);
        self.state = Bbr3State::Up;
        self.raise_slope();
    }

    /// The bound grows by 1, 2, 4 ... segments per round.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds.min(30));
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_step = (self.window.cwnd / growth).max(1.0);
    }

    pub(super) fn update_cycle(&mut self, s: &AckSample) {
        if !self.full.reached || self.adapt_long_term(s) {
            return;
        }
        let down = self.state == Bbr3State::Up && self.time_to_go_down(s);
        match self.state {
            Bbr3State::Down => {
                if self.time_to_probe(s.now) {
                    self.start_refill();
                } else if s.outstanding <= self.with_headroom()
                    && s.outstanding <= self.budgeted(self.bandwidth.max() * self.rtt())
                {
                    self.state = Bbr3State::Cruise;
                }
            }
            Bbr3State::Cruise if self.time_to_probe(s.now) => self.start_refill(),
            Bbr3State::Refill if self.rounds.start => {
                self.cycle.probe_sample = true;
                self.start_up(s);
            }
            Bbr3State::Up if down => {
                self.cycle.too_high = false;
                self.start_down(s.now);
            }
            _ => {}
        }
    }

    fn time_to_probe(&self, now: Time) -> bool {
        let in_flight = self.product(1.0).min(self.window.cwnd);
        now.since(self.cycle.began) > self.cycle.wait
            || self.cycle.rounds_since_probe as f64 >= in_flight.min(MAX_RENO_ROUNDS)
    }

    fn time_to_go_down(&mut self, s: &AckSample) -> bool {
        if self.cycle.too_high && s.outstanding >= self.in_flight.long_term {
            self.cycle.precautionary = true;
            return true;
        }
        if s.window_limited && self.window.cwnd >= self.in_flight.long_term {
            self.full.restart(s.rate); // the bound limits the rate, not the path
            return false;
        }
        self.full.now
    }

    /// Most in flight while cruising.
    pub(super) fn with_headroom(&self) -> f64 {
        let max = self.in_flight.long_term;
        if max.is_infinite() {
            return f64::INFINITY;
        }
        (max - (HEADROOM * max).max(1.0)).max(MIN_PIPE_CWND)
    }

    /// AdaptLongTermModel. Returns whether the state changed.
    fn adapt_long_term(&mut self, s: &AckSample) -> bool {
        if self.cycle.phase == AckPhase::ProbeStarting && self.rounds.start {
            self.cycle.phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.phase == AckPhase::ProbeStopping && self.rounds.start {
            self.cycle.probe_sample = false;
            self.cycle.phase = AckPhase::Init;
            if self.state.probes_bandwidth() && !s.app_limited {
                self.bandwidth.advance();
            }
            let again = self.cycle.precautionary && !self.cycle.too_high;
            if self.state.probes_bandwidth() && again {
                self.start_refill();
                return true;
            }
        }
        let too_high = s.lost > s.tx_in_flight * LOSS_THRESHOLD;
        if !too_high && self.in_flight.long_term.is_finite() {
            self.in_flight.long_term = self.in_flight.long_term.max(s.tx_in_flight);
            if self.state == Bbr3State::Up {
                self.raise_long_term(s);
            }
        }
        false
    }

    fn raise_long_term(&mut self, s: &AckSample) {
        if !s.window_limited || self.window.cwnd < self.in_flight.long_term {
            return;
        }
        self.cycle.up_acked += s.newly_delivered as f64;
        let steps = (self.cycle.up_acked / self.cycle.acked_per_step).floor();
        self.cycle.up_acked -= steps * self.cycle.acked_per_step;
        self.in_flight.long_term += steps;
        if self.rounds.start {
            self.raise_slope();
        }
    }

    /// A probe lost more than 2% with this much in flight (HandleInflightTooHigh).
    pub(super) fn in_flight_too_high(&mut self, now: Time, at_loss: f64) {
        self.cycle.too_high = true;
        self.cycle.probe_sample = false;
        if !self.losses.app_limited {
            let min = self.product(1.0).min(self.window.cwnd) * BETA;
            self.in_flight.long_term = at_loss.max(min);
        }
        if self.state == Bbr3State::Up {
            self.losses_end_state();
            self.start_down(now);
        }
    }

    pub(super) fn check_probe_rtt(&mut self, s: &AckSample) {
        if self.state != Bbr3State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.window.save(false);
            self.state = Bbr3State::ProbeRtt;
            self.min_rtt.begin_probe(self.rounds.delivered);
            self.cycle.phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == Bbr3State::ProbeRtt {
            self.min_rtt.mark_low(self.rounds.delivered.saturating_add(s.outstanding as u64));
            if self.min_rtt.done_at.is_none() {
                if s.outstanding <= self.probe_rtt_cwnd() {
                    self.min_rtt.done_at = Some(s.now + PROBE_RTT_TIME);
                    self.min_rtt.round_done = false;
                    self.start_round();
                }
            } else {
                self.min_rtt.round_done |= self.rounds.start;
                if self.min_rtt.round_done {
                    self.check_probe_rtt_done(s.now);
                }
            }
        }
        if s.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.min_rtt.done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt.probed(now);
        self.window.restore();
        self.reset_short_term();
        if self.full.reached {
            self.start_down(now);
            self.state = Bbr3State::Cruise; // what is in flight is below the product already
        } else {
            self.state = Bbr3State::Startup;
        }
    }
}
