//! BBR version 1: Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, ACM Queue 14(5), 2016, as
//! Linux `tcp_bbr.c` runs it.
//!
//! Measures the delivery rate and the smallest RTT; loss only reduces the window during recovery. Controls the pacing
//! rate, a gain times the largest delivery rate of the last 10 rounds, and the window, about two BDP.
//!
//! ```text
//! STARTUP (2.885) --3 rounds without 25 % more--> DRAIN (0.347) --pipe drained--> PROBE_BW
//! PROBE_BW: 1.25, 0.75, 1, 1, 1, 1, 1, 1, each for about RTTmin
//! any state --RTTmin not measured again for 10 s--> PROBE_RTT: 4 packets for 200 ms and a round
//! ```
//!
//! Departures from Linux:
//!
//! - Losses are reported after the ACK that reveals them, so they count with the next ACK.
//! - Outside preset `linux`, packets that wait in the pacer are not subtracted from the packets in flight.
//! - Gains are exact, not in 256ths.
//! - A sender restarts from idle if only the new packet is outstanding, after four paced packets' idle time.
//! - After a timeout the old window is restored by slow start, unless the transport reports the end of a recovery.
//!
//! Widening the window for aggregated ACKs and detecting policers are as in Linux, and can be turned off.

mod aggregation;
mod filter;
mod limits;
mod model;
mod policer;

use crate::{
    Ack, CongestionEvent, Controller, Dialect, Environment, LossFoundBy, SendLimits, variables,
};
use crate::{PathEvent, PathHints, RecoveryCause, Sent, bounded, positive};
pub(crate) use aggregation::Aggregation;
pub use filter::WindowedMax;
use narrows_base::descriptor::ParamKind;
use narrows_base::{
    Descriptor, Duration, Param, RandomStream, Rate, Settings, Status, Time, Variable,
};
use policer::PolicerDetector;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "bbr",
    summary: "paces at the bandwidth that it measured, with two bandwidth-delay products in flight",
    source: "Cardwell et al. 2016 (version 1), as in Linux",
    senses: "delivery rate, smallest RTT",
    sets: "pacing rate, and a window as a bound",
    params: &[
        Param {
            name: "policer",
            help: "whether to look for a token-bucket policer",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "Linux tcp_bbr.c",
        },
        Param {
            name: "aggregation",
            help: "whether to widen the window where ACKs come in bursts",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "Linux tcp_bbr.c since 5.1",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state("bbr_state", "BBR's state", &["Startup", "Drain", "ProbeBW", "ProbeRTT"]),
    variables::BANDWIDTH,
    variables::MIN_RTT,
    Variable::new("pacing_gain", "", "pacing rate over bandwidth"),
    Variable::state("policed", "whether a token-bucket policer was found", &["no", "yes"]),
];

// Linux tcp_bbr.c, constants at its top.
const BANDWIDTH_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
const PACING_MARGIN: f64 = 0.99;
/// 2/ln 2: the smallest gain that doubles the rate in every round.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
const CWND_GAIN: f64 = 2.0;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const MIN_WINDOW: f64 = 4.0;
const FULL_BANDWIDTH: f64 = 1.25;
const FULL_BANDWIDTH_ROUNDS: u32 = 3;
/// Before the first RTT, one millisecond is assumed; the window is not bounded by the model.
const NOMINAL_RTT: f64 = 1e-3;
const INITIAL_WINDOW: f64 = 10.0;
/// A sender counts as idle, rather than paced, after this many packet intervals without a packet.
const IDLE_PACKETS: f64 = 4.0;

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(fresh(settings, environment))
}

fn fresh(settings: &Settings, environment: &Environment) -> Bbr {
    let cwnd = bounded(environment.initial_window, 1.0);
    let mut bbr = Bbr {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        random_key: environment.random_key.named("bbr").stream(),
        state: BbrState::Startup,
        gain: GainCycle { phase: 0, began: Time::ZERO },
        rounds: BbrRounds::default(),
        bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
        full: BbrFullPipe { bandwidth: 0.0, rounds: 0, reached: false },
        min_rtt: Duration::MAX,
        min_rtt_at: None,
        probe: ProbeRtt::default(),
        idle_restart: false,
        policer: (settings.choice("policer") == "on").then(PolicerDetector::default),
        aggregation: (settings.choice("aggregation") == "on").then(Aggregation::default),
        window: BbrWindow { cwnd, prior_cwnd: 0.0, recovery: Repairing::No, conserving: false },
        counts: AckCounts { losses: 0, lost: 0, acked: 1 },
        last_sent: None,
        seen_rtt: false,
        last_ack: (environment.dialect == Dialect::Linux).then(LastAck::default),
        pacing: 0.0,
    };
    bbr.pacing = bbr.paced(cwnd / NOMINAL_RTT, HIGH_GAIN);
    bbr
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BbrState {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repairing {
    No,
    /// Fast recovery.
    RecoveryEvent,
    /// After a timeout.
    Loss,
}

/// Packet-timed rounds, counted in segments delivered.
#[derive(Clone, Debug, Default)]
struct BbrRounds {
    count: u64,
    /// A round ends with a packet that was sent when this much had been delivered.
    end: u64,
    start: bool,
    delivered: u64,
}

/// A visit to PROBE_RTT.
#[derive(Clone, Debug, Default)]
struct ProbeRtt {
    /// Earliest end, set once few enough packets are in flight.
    until: Option<Time>,
    round_done: bool,
    /// Samples of packets sent before this much was delivered are low because the application limited the sender.
    low: Option<(u64, u64)>,
}

/// The last ACK and the window before it. Losses are reported after their ACK; the window is then computed again as if
/// they had been reported before, as in Linux (`bbr_set_cwnd` gets both at once). If the window were reduced one ACK
/// later in a recovery, the packets sent in between would count as in flight and keep it from falling.
#[derive(Clone, Debug, Default)]
struct LastAck {
    window: f64,
    delivered: u64,
    outstanding: u64,
    losses: u64,
    /// Departure time of the next packet by pacing. Packets that wait for it are not in the network.
    departure: Time,
}

/// Whether STARTUP has filled the pipe, and the growth of the bandwidth that shows it.
#[derive(Clone, Debug)]
struct BbrFullPipe {
    bandwidth: f64,
    rounds: u32,
    /// Whether STARTUP has filled the pipe.
    reached: bool,
}

/// The phase of the gain cycle.
#[derive(Clone, Debug)]
struct GainCycle {
    /// Phase of the gain cycle.
    phase: usize,
    began: Time,
}

/// The window, and its state in a recovery.
#[derive(Clone, Debug)]
struct BbrWindow {
    cwnd: f64,
    /// Window before a recovery or PROBE_RTT.
    prior_cwnd: f64,
    recovery: Repairing,
    /// Packet conservation: one packet is sent per packet delivered, in the first round of a
    /// recovery.
    conserving: bool,
}

/// Segments lost and delivered.
#[derive(Clone, Debug)]
struct AckCounts {
    /// Segments found lost since the last ACK, and in total.
    losses: u64,
    lost: u64,
    /// Segments delivered by the last ACK.
    acked: u64,
}

#[derive(Clone, Debug)]
struct Bbr {
    packet_bits: f64,
    random_key: RandomStream,
    state: BbrState,
    /// The phase of the gain cycle.
    gain: GainCycle,
    rounds: BbrRounds,
    /// Segments per second.
    bandwidth: WindowedMax,
    /// Whether STARTUP has filled the pipe, and the growth of the bandwidth that shows it.
    full: BbrFullPipe,
    min_rtt: Duration,
    min_rtt_at: Option<Time>,
    probe: ProbeRtt,
    idle_restart: bool,
    policer: Option<PolicerDetector>,
    aggregation: Option<Aggregation>,
    /// The window, and its state in a recovery.
    window: BbrWindow,
    /// Segments lost and delivered.
    counts: AckCounts,
    last_sent: Option<Time>,
    seen_rtt: bool,
    /// Linux: losses count with the ACK that reveals them, see [`LastAck`].
    last_ack: Option<LastAck>,
    /// bit/s.
    pacing: f64,
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &Sent) {
        let silence = self.last_sent.map_or(Duration::MAX, |last| sent.now.since(last));
        self.last_sent = Some(sent.now);
        if let Some(last_ack) = &mut self.last_ack {
            let gap = Duration::from_secs_f64(f64::from(sent.bytes) * 8.0 / self.pacing);
            last_ack.departure = last_ack.departure.max(sent.now) + gap;
        }
        let pause = Duration::from_secs_f64(IDLE_PACKETS * self.packet_bits / self.pacing);
        if sent.outstanding != 1 || sent.retransmission || silence <= pause {
            return;
        }
        // A sender that restarts from idle is paced at the bandwidth, not faster.
        self.idle_restart = true;
        if let Some(aggregation) = &mut self.aggregation {
            aggregation.restart(sent.now);
        }
        if self.state == BbrState::ProbeBandwidth {
            self.pacing = self.paced(self.believed(), 1.0);
        } else if self.state == BbrState::ProbeRtt && self.probe.until.is_some_and(|u| sent.now > u)
        {
            self.leave_probe_rtt(sent.now);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rounds.delivered = match ack.rate {
            Some(rate) => rate.total_delivered,
            None => self.rounds.delivered.saturating_add(ack.newly_delivered),
        };
        self.update_bandwidth(ack);
        let believed = self.believed();
        let start = self.rounds.start;
        if let (Some(aggregation), Some(_)) = (&mut self.aggregation, ack.rate) {
            aggregation.on_ack(ack.now, start, ack.newly_delivered, believed, self.window.cwnd);
        }
        self.update_cycle(ack);
        self.check_full(ack);
        self.update_min_rtt(ack);
        self.set_pacing(ack);
        if let Some(last_ack) = &mut self.last_ack {
            let delivered = ack.newly_delivered;
            let outstanding = ack.outstanding;
            let window = self.window.cwnd;
            let departure = last_ack.departure;
            *last_ack = LastAck { window, delivered, outstanding, losses: 0, departure };
            self.set_cwnd(ack.newly_delivered, ack.outstanding, 0);
        } else {
            self.set_cwnd(ack.newly_delivered, ack.outstanding, self.counts.losses);
        }
        self.counts.losses = 0;
        self.counts.acked = ack.newly_delivered;
    }

    /// Linux has an RTT sample of the handshake before the first packet.
    fn on_path_event(&mut self, now: Time, event: &PathEvent) {
        if let (PathEvent::Hints(PathHints { rtt: Some(rtt), .. }), Some(_)) =
            (event, &self.last_ack)
            && !self.seen_rtt
        {
            self.seen_rtt = true;
            self.pacing = self.paced(self.window.cwnd / positive(*rtt), HIGH_GAIN);
            self.min_rtt = *rtt;
            self.min_rtt_at = Some(now);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(loss) => {
                self.counts.lost = self.counts.lost.saturating_add(loss.segments);
                if loss.found_by != LossFoundBy::Timeout {
                    self.counts.losses = self.counts.losses.saturating_add(loss.segments);
                    self.take_off(loss.segments);
                }
            }
            // The window is restored when the recovery ends. Losses that were none reveal neither a full pipe nor a
            // policer (`bbr_undo_cwnd`).
            CongestionEvent::SpuriousLosses(spurious) => {
                self.counts.lost = self.counts.lost.saturating_sub(spurious.packets);
                if spurious.undo {
                    self.full.bandwidth = 0.0;
                    self.full.rounds = 0;
                    self.forget_policer(spurious.now);
                }
            }
            // Version 1 ignores marks.
            CongestionEvent::RecoveryStart(r) | CongestionEvent::RecoveryEnd(r)
                if r.cause == RecoveryCause::EcnCe => {}
            CongestionEvent::RecoveryStart(recovery) => {
                self.save_cwnd();
                self.window.recovery = Repairing::RecoveryEvent;
                self.window.conserving = true;
                self.rounds.end = self.rounds.delivered;
                self.window.cwnd =
                    bounded(recovery.outstanding.saturating_add(self.counts.acked) as f64, 1.0);
            }
            CongestionEvent::RecoveryEnd(_) => {
                if self.window.recovery != Repairing::No && self.state != BbrState::ProbeRtt {
                    self.window.cwnd = self.window.cwnd.max(self.window.prior_cwnd);
                }
                self.window.recovery = Repairing::No;
                self.window.conserving = false;
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if self.window.recovery != Repairing::Loss {
                    self.save_cwnd();
                }
                self.window.recovery = Repairing::Loss;
                self.window.conserving = false;
                self.window.cwnd = 1.0;
                self.full.bandwidth = 0.0;
                // Linux treats a timeout as the end of a round with a loss.
                self.rounds.start = true;
                self.counts.losses = 1;
                self.look_for_policer(restart.now, false);
                self.counts.losses = 0;
            }
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::paced(self.window.cwnd, Rate::from_bps_f64(self.pacing))
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bbr_state", f64::from(self.state as u8));
        put("bandwidth_bps", self.believed() * self.packet_bits);
        if self.min_rtt != Duration::MAX {
            put("min_rtt_s", self.min_rtt.as_secs_f64());
        }
        put("pacing_gain", self.pacing_gain());
        put(
            "policed",
            f64::from(u8::from(self.policer.as_ref().is_some_and(|p| p.rate().is_some()))),
        );
    }
}

#[cfg(test)]
mod tests;
