//! BBR's limits, computed from its model: gains, pacing rate and window.

use super::policer::PolicerDetector;
use super::{Bbr, BbrState, CYCLE, LastAck, Repairing};
use super::{CWND_GAIN, DRAIN_GAIN, HIGH_GAIN, INITIAL_WINDOW, MIN_WINDOW, PACING_MARGIN};
use crate::{Ack, bounded};
use narrows_base::{Duration, Time};

/// Rounds up to whole segments; a rounding error does not add a segment.
fn round_up(segments: f64) -> f64 {
    (segments - 1e-9).ceil().max(0.0)
}

/// Segments that leave the host at once at a pacing rate in bit/s: those of a millisecond (`bbr_tso_segs_goal`).
fn burst(pacing: f64, packet_bits: f64) -> f64 {
    let min = if pacing < 1.2e6 { 1.0 } else { 2.0 };
    let bits = (pacing / 1024.0).min(65_536.0 * 8.0);
    (bits / packet_bits).floor().clamp(min, 127.0)
}

impl Bbr {
    /// The bandwidth in use: the policer's if one was detected, otherwise the largest measured.
    pub(super) fn believed(&self) -> f64 {
        self.policer.as_ref().and_then(PolicerDetector::rate).unwrap_or(self.bandwidth.get())
    }

    pub(super) fn paced(&self, bandwidth: f64, gain: f64) -> f64 {
        bounded(bandwidth * self.packet_bits * gain * PACING_MARGIN, 1.0)
    }

    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup => HIGH_GAIN,
            BbrState::Drain => DRAIN_GAIN,
            BbrState::ProbeBandwidth
                if self.policer.as_ref().is_some_and(|p| p.rate().is_some()) =>
            {
                1.0
            }
            BbrState::ProbeBandwidth => CYCLE[self.gain.phase],
            BbrState::ProbeRtt => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup | BbrState::Drain => HIGH_GAIN,
            BbrState::ProbeBandwidth => CWND_GAIN,
            BbrState::ProbeRtt => 1.0,
        }
    }

    /// `bbr_bdp`.
    pub(super) fn product(&self, bandwidth: f64, gain: f64) -> f64 {
        if self.min_rtt == Duration::MAX {
            return INITIAL_WINDOW;
        }
        bounded(round_up(bandwidth * self.min_rtt.as_secs_f64() * gain), 0.0)
    }

    pub(super) fn burst(&self) -> f64 {
        burst(self.pacing, self.packet_bits)
    }

    /// `bbr_quantization_budget`: bursts in both hosts, an even number for delayed ACKs, and a
    /// little more where the cycle probes.
    pub(super) fn with_budget(&self, segments: f64) -> f64 {
        let even = ((segments + 3.0 * self.burst()) / 2.0).ceil() * 2.0;
        let probing = self.state == BbrState::ProbeBandwidth && self.gain.phase == 0;
        even + if probing { 2.0 } else { 0.0 }
    }

    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.with_budget(self.product(self.bandwidth.get(), gain))
    }

    /// Packets in the network at the departure time of the next burst, of `in_flight` packets in flight. If the rate
    /// probes, the burst is included (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_network(&self, in_flight: u64, now: Time) -> f64 {
        let in_flight = in_flight as f64;
        let burst = if self.pacing_gain() > 1.0 { self.burst() } else { 0.0 };
        let departure = self.last_ack.as_ref().map_or(now, |t| t.departure.max(now));
        let gone = (self.believed() * departure.since(now).as_secs_f64()).floor();
        (in_flight + burst - gone).max(0.0)
    }

    /// Saves the window that is restored later.
    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = self.window.recovery == Repairing::No && self.state != BbrState::ProbeRtt;
        self.window.prior_cwnd = if undisturbed {
            self.window.cwnd
        } else {
            self.window.prior_cwnd.max(self.window.cwnd)
        };
    }

    /// `bbr_set_pacing_rate`: before the pipe is full, the rate only increases.
    pub(super) fn set_pacing(&mut self, ack: &Ack) {
        if !self.seen_rtt && ack.estimate.srtt > Duration::ZERO {
            self.seen_rtt = true;
            self.pacing = self.paced(self.window.cwnd / ack.estimate.srtt.as_secs_f64(), HIGH_GAIN);
        }
        let rate = self.paced(self.believed(), self.pacing_gain());
        if self.full.reached || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, delivered: u64, outstanding: u64, losses: u64) {
        let acked = delivered as f64;
        if delivered > 0 {
            // An ACK for P packets permits at most 2 P more, minus those found lost.
            self.window.cwnd = (self.window.cwnd - losses as f64).max(1.0);
            if self.window.conserving {
                self.window.cwnd = self.window.cwnd.max(outstanding as f64 + acked);
            } else {
                self.grow(acked);
            }
        }
        if self.state == BbrState::ProbeRtt {
            self.window.cwnd = self.window.cwnd.min(MIN_WINDOW);
        }
    }

    /// Sets the window again, as if these losses had been reported with the last ACK.
    pub(super) fn take_off(&mut self, segments: u64) {
        let Some(last_ack) = &mut self.last_ack else { return };
        last_ack.losses = last_ack.losses.saturating_add(segments);
        let LastAck { window, delivered, outstanding, losses, .. } = *last_ack;
        if delivered > 0 {
            self.window.cwnd = window;
            self.set_cwnd(delivered, outstanding, losses);
        }
    }

    pub(super) fn grow(&mut self, acked: f64) {
        let bandwidth = self.believed();
        let bursts = match &self.aggregation {
            Some(aggregation) if self.full.reached => aggregation.extra_acked(bandwidth),
            _ => 0.0,
        };
        let target = self.with_budget(self.product(bandwidth, self.cwnd_gain()) + bursts);
        if self.full.reached {
            self.window.cwnd = (self.window.cwnd + acked).min(target);
        } else if self.window.cwnd < target || (self.rounds.delivered as f64) < INITIAL_WINDOW {
            self.window.cwnd += acked;
        }
        self.window.cwnd = bounded(self.window.cwnd, MIN_WINDOW);
    }
}
