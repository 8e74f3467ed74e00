//! BBR version 3: Cardwell, Swett and Beshay, draft-ietf-ccwg-bbr-06 (July 2026).
//!
//! Measures the delivery rate, the smallest RTT and the share of packets lost in a round. Controls the pacing rate and
//! the window. Unlike version 1 ([`bbr`](crate::bbr)) it takes loss into account, with two models of the path's
//! capacity:
//!
//! ```text
//! long term   inflight_longterm: packets in flight when a probe lost more than 2%; a probe that loses
//!             less raises it by 1, 2, 4, 8 ... segments per round
//! short term  bw_shortterm, inflight_shortterm: values delivered in the last round with a loss, at least
//!             0.7 of the previous ones; forgotten before the next probe
//!
//! STARTUP (2.77) --3 rounds without 25 % more, or losses--> DRAIN (0.5) --drained--> DOWN
//! DOWN (0.9) --drained, 15% headroom--> CRUISE (1) --2 to 3 s, or as many rounds as Reno needs-->
//! REFILL (1) --a round--> UP (1.25) --pipe full, or losses--> DOWN
//! any state --RTTmin not measured again for 5 s--> PROBE_RTT: 0.5 BDP for 200 ms and a round
//! ```
//!
//! Departures from the draft: losses are reported after the ACK that reveals them, so they count with the next ACK.
//! The packets in flight and lost when a packet was sent are recorded to a 64th of a round. The ranges lost in a round
//! are counted as the ACKs that reveal them. A lost packet counts as application-limited if the packet delivered last
//! was. The state to undo is saved once per loss episode, not per round. The budget for offload is one send quantum,
//! as for QUIC (section 5.5.8.2), because packets leave one by one. Marks are ignored, as in the draft. `cases.rs` has
//! the draft's 22 test cases.

mod cycle;
mod history;
mod limits;
mod model;
mod state;
mod undo;

use crate::bbr::WindowedMax;
use crate::{Ack, CongestionEvent, Controller, Environment, RecoveryCause};
use crate::{SendLimits, Sent, bounded, variables};
use history::DeliveryHistory;
use narrows_base::{Descriptor, Rate, Settings, Status, Time, Variable};
use state::*;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "bbr3",
    summary: "BBR that backs off at more than 2% loss and leaves capacity to other flows",
    source: "draft-ietf-ccwg-bbr-06",
    senses: "delivery rate, smallest RTT, loss",
    sets: "pacing rate, and a window as a bound",
    params: &[],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state(
        "bbr3_state",
        "BBRv3's state",
        &["Startup", "Drain", "Down", "Cruise", "Refill", "Up", "ProbeRTT"],
    ),
    variables::BANDWIDTH,
    variables::MIN_RTT,
    Variable::new("pacing_gain", "", "pacing rate over bandwidth"),
    Variable::new("inflight_longterm", "packets", "in flight at most, by the losses of probes"),
];

/// Builds the controller.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(fresh(environment))
}

fn fresh(environment: &Environment) -> Bbr3 {
    let cwnd = bounded(environment.initial_window, 1.0);
    let packet_bits = f64::from(environment.packet_bytes.max(1)) * 8.0;
    Bbr3 {
        packet_bits,
        random: environment.random_key.named("bbr3").stream(),
        state: Bbr3State::Startup,
        drain_began_in: 0,
        rounds: Bbr3Rounds::default(),
        bandwidth: MaxBandwidth::default(),
        in_flight: InFlight::default(),
        losses: LossRound::default(),
        full: FullPipe::default(),
        cycle: Cycle::default(),
        min_rtt: MinRtt::default(),
        history: DeliveryHistory::default(),
        extra: ExtraAcked { began: None, acked: 0, max: WindowedMax::new(10) },
        window: Bbr3Window::new(cwnd, packet_bits),
        idle_restart: false,
        before_losses: None,
    }
}

impl Bbr3 {
    fn sample(&mut self, ack: &Ack) -> AckSample {
        let left = Time::from_nanos(ack.now.as_nanos().saturating_sub(ack.rtt.as_nanos()));
        let (tx_in_flight, lost) = self.history.at(left);
        let rate = ack.rate.filter(|r| r.interval.as_nanos() > 0);
        self.rounds.delivered = match ack.rate {
            Some(r) => r.total_delivered,
            None => self.rounds.delivered.saturating_add(ack.newly_delivered),
        };
        let prior_delivered = rate.map_or(0, |r| r.prior_delivered);
        self.losses.app_limited = rate.map_or(self.losses.app_limited, |r| r.app_limited);
        AckSample {
            now: ack.now,
            rate: rate.map_or(0.0, |r| bounded(r.per_second(), 0.0)),
            delivered: rate.map_or(0.0, |r| r.delivered as f64),
            prior_delivered,
            newly_delivered: ack.newly_delivered,
            app_limited: rate.is_none_or(|r| r.app_limited)
                || self.min_rtt.sent_little(prior_delivered),
            tx_in_flight,
            lost: self.losses.total.saturating_sub(lost) as f64,
            outstanding: ack.outstanding as f64,
            window_limited: ack.window_limited,
        }
    }

    fn update_extra_acked(&mut self, s: &AckSample) {
        let bandwidth = self.bandwidth.now();
        let began = *self.extra.began.get_or_insert(s.now);
        let mut expected = bandwidth * s.now.since(began).as_secs_f64();
        if self.extra.acked as f64 <= expected {
            self.extra.acked = 0;
            self.extra.began = Some(s.now);
            expected = 0.0;
        }
        self.extra.acked = self.extra.acked.saturating_add(s.newly_delivered);
        let extra = (self.extra.acked as f64 - expected).min(self.window.cwnd);
        // In Startup only the last round counts.
        if !self.full.reached && self.rounds.start {
            self.extra.max = WindowedMax::new(10);
        }
        self.extra.max.update(self.rounds.count, extra);
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, sent: &Sent) {
        self.history.sent(sent, self.losses.total, self.window.srtt);
        if sent.outstanding != 1 || sent.retransmission || !self.history.was_idle() {
            return;
        }
        // Section 5.4.1.
        self.idle_restart = true;
        self.extra.began = Some(sent.now);
        if self.state.probes_bandwidth() {
            self.window.pace(self.bandwidth.now(), 1.0, self.full.reached);
        } else if self.state == Bbr3State::ProbeRtt {
            self.check_probe_rtt_done(sent.now);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.sample(ack);
        self.window.see_rtt(ack.estimate.srtt);
        self.update_congestion(&sample);
        self.update_extra_acked(&sample);
        self.full.check(&sample, self.rounds.start);
        self.check_startup_and_drain(&sample, ack.in_recovery);
        self.update_cycle(&sample);
        self.min_rtt.update(ack.now, ack.rtt);
        self.check_probe_rtt(&sample);
        self.advance_latest(&sample);
        self.set_limits(&sample);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(loss) => {
                if loss.new_episode {
                    self.save_model();
                }
                self.losses.note(loss.segments, self.rounds.delivered);
                if !self.cycle.probe_sample {
                    return;
                }
                let (tx_in_flight, lost_before) = self.history.at(loss.sent);
                let lost = self.losses.total.saturating_sub(lost_before) as f64;
                if lost > tx_in_flight * LOSS_THRESHOLD {
                    // The point within the data in flight at which the loss threshold was crossed
                    // (InflightAtLoss).
                    let size = loss.segments as f64;
                    let before = tx_in_flight - size;
                    let lost_before = lost - size;
                    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
                    let at_loss = (before + prefix.max(0.0)).max(1.0);
                    self.in_flight_too_high(loss.now, at_loss);
                }
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                self.losses.total = self.losses.total.saturating_sub(spurious.packets);
                if spurious.undo {
                    self.undo_losses();
                }
            }
            // The draft does not use marks.
            CongestionEvent::RecoveryStart(r) | CongestionEvent::RecoveryEnd(r)
                if r.cause == RecoveryCause::EcnCe => {}
            CongestionEvent::RecoveryStart(_) => {
                self.window.save(self.state == Bbr3State::ProbeRtt);
                self.window.in_recovery = true;
            }
            CongestionEvent::RecoveryEnd(_) => {
                self.window.in_recovery = false;
                if self.state != Bbr3State::ProbeRtt {
                    self.window.restore();
                }
            }
            CongestionEvent::SlowStartRestart(_) => {
                self.window.save(self.state == Bbr3State::ProbeRtt);
                self.window.in_recovery = true;
                self.window.cwnd = 1.0;
            }
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::paced(self.window.cwnd, Rate::from_bps_f64(self.window.pacing))
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bbr3_state", f64::from(self.state as u8));
        put("bandwidth_bps", self.bandwidth.now() * self.packet_bits);
        if let Some(rtt) = self.min_rtt.seconds() {
            put("min_rtt_s", rtt);
        }
        put("pacing_gain", self.state.pacing_gain());
        if self.in_flight.long_term.is_finite() {
            put("inflight_longterm", self.in_flight.long_term);
        }
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
