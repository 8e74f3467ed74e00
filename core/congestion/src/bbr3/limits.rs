//! BBRv3's limits, computed from its model: pacing rate and window (section 5.6).

use super::state::*;
use crate::bounded;
use narrows_base::Duration;

/// Paced below the bandwidth by 1% (PacingMarginPercent).
const PACING_MARGIN: f64 = 0.99;
/// A send quantum is a millisecond's worth, 2 packets to 64 KiB (section 5.6.3).
const QUANTUM_TIME: f64 = 1e-3;
const MAX_QUANTUM_BITS: f64 = 65_536.0 * 8.0;

impl Bbr3Window {
    pub fn new(initial: f64, packet_bits: f64) -> Bbr3Window {
        let mut window = Bbr3Window {
            packet_bits,
            initial,
            cwnd: initial,
            prior: 0.0,
            in_recovery: false,
            pacing: 0.0,
            srtt: Duration::ZERO,
        };
        window.pace(initial / NOMINAL_RTT, Bbr3State::Startup.pacing_gain(), true);
        window
    }

    /// The first RTT gives the first pacing rate.
    pub fn see_rtt(&mut self, srtt: Duration) {
        if self.srtt == Duration::ZERO && srtt > Duration::ZERO {
            let rate = self.cwnd / srtt.as_secs_f64();
            self.pace(rate, Bbr3State::Startup.pacing_gain(), true);
        }
        self.srtt = srtt;
    }

    /// Until the pipe has been full once, the rate only increases.
    pub fn pace(&mut self, bandwidth: f64, gain: f64, may_fall: bool) {
        let rate = bounded(bandwidth * self.packet_bits * gain * PACING_MARGIN, 1.0);
        if may_fall || rate > self.pacing {
            self.pacing = rate;
        }
    }

    pub fn save(&mut self, in_probe_rtt: bool) {
        let undisturbed = !self.in_recovery && !in_probe_rtt;
        self.prior = if undisturbed { self.cwnd } else { self.prior.max(self.cwnd) };
    }

    pub fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }

    fn quantum(&self) -> f64 {
        ((self.pacing * QUANTUM_TIME).min(MAX_QUANTUM_BITS) / self.packet_bits).max(2.0)
    }
}

impl Bbr3 {
    pub(super) fn rtt(&self) -> f64 {
        self.min_rtt.seconds().unwrap_or(0.0)
    }

    /// BDP in segments, times a gain (BDPMultiple).
    pub(super) fn product(&self, gain: f64) -> f64 {
        match self.min_rtt.seconds() {
            Some(rtt) => bounded(gain * self.bandwidth.now() * rtt, 0.0),
            None => self.window.initial,
        }
    }

    /// QuantizationBudget.
    pub(super) fn budgeted(&self, in_flight: f64) -> f64 {
        let min = in_flight.max(self.window.quantum()).max(MIN_PIPE_CWND);
        if self.state == Bbr3State::Up { min + 2.0 } else { min }
    }

    /// Inflight(gain).
    pub(super) fn target(&self, gain: f64) -> f64 {
        self.budgeted(self.product(gain))
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.product(Bbr3State::ProbeRtt.cwnd_gain()).max(MIN_PIPE_CWND)
    }

    pub(super) fn set_limits(&mut self, s: &AckSample) {
        self.window.pace(self.bandwidth.now(), self.state.pacing_gain(), self.full.reached);
        let max = self.budgeted(self.product(self.state.cwnd_gain()) + self.extra.max.get());
        let acked = s.newly_delivered as f64;
        let window = &mut self.window;
        if self.full.reached {
            window.cwnd = (window.cwnd + acked).min(max);
        } else if window.cwnd < max || (self.rounds.delivered as f64) < window.initial {
            window.cwnd += acked;
        }
        window.cwnd = bounded(window.cwnd, MIN_PIPE_CWND);
        if self.state == Bbr3State::ProbeRtt {
            self.window.cwnd = self.window.cwnd.min(self.probe_rtt_cwnd());
        }
        // BoundCwndForModel.
        let long_term = match self.state {
            Bbr3State::Cruise | Bbr3State::ProbeRtt => self.with_headroom(),
            state if state.probes_bandwidth() => self.in_flight.long_term,
            _ => f64::INFINITY,
        };
        let max = long_term.min(self.in_flight.short_term).max(MIN_PIPE_CWND);
        self.window.cwnd = self.window.cwnd.min(max);
    }
}
