//! BBR's model of the path, and the states that probe it.

use super::policer::PolicerSample;
use super::{Bbr, BbrState, CYCLE};
use super::{FULL_BANDWIDTH, FULL_BANDWIDTH_ROUNDS, MIN_RTT_WINDOW, MIN_WINDOW, PROBE_RTT_TIME};
use crate::{Ack, RateSample, bounded};
use narrows_base::{Duration, Time};

impl Bbr {
    /// `bbr_update_bw`.
    pub(super) fn update_bandwidth(&mut self, ack: &Ack) {
        self.rounds.start = false;
        let Some(rate) = ack.rate.filter(|r| r.interval > Duration::ZERO) else { return };
        if rate.prior_delivered >= self.rounds.end {
            self.rounds.end = self.rounds.delivered;
            self.rounds.count = self.rounds.count.saturating_add(1);
            self.rounds.start = true;
            self.window.conserving = false;
        }
        let low = self.app_limited(&rate);
        self.look_for_policer(ack.now, low);
        // A low sample of an application-limited sender is no measurement of the path.
        let sample = bounded(rate.per_second(), 0.0);
        if !low || sample >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count, sample);
        }
    }

    pub(super) fn app_limited(&self, rate: &RateSample) -> bool {
        let prior = rate.prior_delivered;
        rate.app_limited || self.probe.low.is_some_and(|(from, to)| (from..=to).contains(&prior))
    }

    fn policer_sample(&self, now: Time, app_limited: bool) -> PolicerSample {
        PolicerSample {
            now,
            delivered: self.rounds.delivered,
            lost: self.counts.lost,
            losses: self.counts.losses > 0,
            app_limited,
            round_start: self.rounds.start,
            probing_bandwidth: self.state == BbrState::ProbeBandwidth,
            packet_bits: self.packet_bits,
        }
    }

    /// `bbr_reset_lt_bw_sampling`.
    pub(super) fn forget_policer(&mut self, now: Time) {
        let seen = self.policer_sample(now, false);
        if let Some(policer) = &mut self.policer {
            policer.reset(&seen);
        }
    }

    pub(super) fn look_for_policer(&mut self, now: Time, app_limited: bool) {
        let seen = self.policer_sample(now, app_limited);
        if self.policer.as_mut().is_some_and(|p| p.on_ack(&seen)) {
            self.probe_bandwidth(now);
        }
    }

    /// Enters PROBE_BW at a random phase other than the draining one.
    pub(super) fn probe_bandwidth(&mut self, now: Time) {
        self.state = BbrState::ProbeBandwidth;
        // Linux draws 0..7 from 7 and advances: phases 0 and 2 to 7.
        self.gain.phase = (CYCLE.len() - (self.random_key.bits() % 7) as usize) % CYCLE.len();
        self.gain.began = now;
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        if self.state != BbrState::ProbeBandwidth {
            return;
        }
        let full_length = ack.now.since(self.gain.began) > self.min_rtt;
        let gain = self.pacing_gain();
        let in_network = self.in_network(ack.prior_outstanding, ack.now);
        let next = if gain > 1.0 {
            // Until the probe has filled the pipe, or packets are lost.
            full_length && (self.counts.losses > 0 || in_network >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || in_network <= self.inflight(1.0)
        } else {
            full_length
        };
        if next {
            self.gain.phase = (self.gain.phase + 1) % CYCLE.len();
            self.gain.began = ack.now;
        }
    }

    /// `bbr_check_full_bw_reached`, `bbr_check_drain`.
    pub(super) fn check_full(&mut self, ack: &Ack) {
        if !self.full.reached
            && self.rounds.start
            && !ack.rate.is_some_and(|r| self.app_limited(&r))
        {
            if self.bandwidth.get() >= self.full.bandwidth * FULL_BANDWIDTH {
                self.full.bandwidth = self.bandwidth.get();
                self.full.rounds = 0;
            } else {
                self.full.rounds += 1;
                self.full.reached = self.full.rounds >= FULL_BANDWIDTH_ROUNDS;
            }
        }
        if self.state == BbrState::Startup && self.full.reached {
            self.state = BbrState::Drain;
        }
        if self.state == BbrState::Drain
            && self.in_network(ack.outstanding, ack.now) <= self.inflight(1.0)
        {
            self.probe_bandwidth(ack.now);
        }
    }

    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let expired = self.min_rtt_at.is_some_and(|at| ack.now > at + MIN_RTT_WINDOW);
        if ack.rtt <= self.min_rtt || expired {
            self.min_rtt = ack.rtt;
            self.min_rtt_at = Some(ack.now);
        }
        if expired && !self.idle_restart && self.state != BbrState::ProbeRtt {
            self.state = BbrState::ProbeRtt;
            self.save_cwnd();
            self.probe.until = None;
            self.probe.round_done = false;
            self.probe.low = Some((self.rounds.delivered, 0));
        }
        if self.state == BbrState::ProbeRtt {
            let delivered = self.rounds.delivered;
            if let Some((_, to)) = &mut self.probe.low {
                *to = delivered.saturating_add(ack.outstanding);
            }
            match self.probe.until {
                None if ack.outstanding as f64 <= MIN_WINDOW => {
                    self.probe.until = Some(ack.now + PROBE_RTT_TIME);
                    self.probe.round_done = false;
                    self.rounds.end = delivered;
                }
                None => {}
                Some(until) => {
                    self.probe.round_done |= self.rounds.start;
                    if self.probe.round_done && ack.now > until {
                        self.leave_probe_rtt(ack.now);
                    }
                }
            }
        }
        if ack.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn leave_probe_rtt(&mut self, now: Time) {
        self.min_rtt_at = Some(now);
        self.window.cwnd = self.window.cwnd.max(self.window.prior_cwnd);
        if self.full.reached {
            self.probe_bandwidth(now);
        } else {
            self.state = BbrState::Startup;
        }
    }
}
