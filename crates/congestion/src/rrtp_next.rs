//! RRTP's controller: short queues where it is alone, a fair share where it is not.

mod alone;
mod competitive;
mod constants;
mod estimate;
mod experiment;
mod startup;

use crate::{
    Ack, CongestionEvent, Controller, Environment, PacketOutcome, PathEvent, PathHints,
    Requirements, SendLimits, bounded, variables,
};
use constants::{FIRST_FLIGHT, MIN_WINDOW};
use estimate::{Path, Round};
use experiment::Evidence;
use narrows_base::{Descriptor, Rate, Settings, Status, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp-next",
    summary: "short queues where it is alone, a fair share where it is not (after S3)",
    source: "docs/rrtp-congestion-control.md",
    senses: "delivery rate, queueing delay, losses",
    sets: "pacing rate and window",
    params: &[],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state(
        "rrtp_state",
        "what the sender is at",
        &[
            "startup (looks for the rate)",
            "default (holds the queue short)",
            "competitive (takes its share)",
        ],
    ),
    variables::BANDWIDTH,
    variables::MIN_RTT,
];

/// Builds the controller.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Rrtp::new(environment))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Alone,
    Competitive,
}

/// What a policy returns.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Packets in flight.
    window: f64,
    /// Packets per second; `None` lets them leave at once.
    rate: Option<f64>,
}

/// Estimates at the end of a round.
#[derive(Clone, Copy, Debug)]
struct View {
    round: Round,
    /// A queue stood all the time, or packets were dropped.
    saturated: bool,
    queued: bool,
    /// More was lost in a longer queue, without a probe, than the link loses.
    yields: bool,
}

#[derive(Clone, Debug)]
struct Rrtp {
    packet_bits: f64,
    mode: Mode,
    path: Path,
    evidence: Evidence,
    startup: startup::Startup,
    alone: alone::Alone,
    /// Packets in flight at most while a silence is made up for.
    most: f64,
    competitive: competitive::Competitive,
}

impl Rrtp {
    fn new(environment: &Environment) -> Rrtp {
        let first = bounded(environment.initial_window.min(FIRST_FLIGHT), 1.0);
        let mut rrtp = Rrtp {
            packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
            mode: Mode::Startup,
            path: Path::default(),
            evidence: Evidence::default(),
            startup: startup::Startup::new(first),
            alone: alone::Alone::default(),
            most: f64::INFINITY,
            competitive: competitive::Competitive::default(),
        };
        rrtp.learn(&environment.hints);
        rrtp
    }

    fn learn(&mut self, hints: &PathHints) {
        if let Some(rtt) = hints.rtt {
            self.path.tell_rtt(crate::positive(rtt));
        }
        if let Some(loss) = hints.loss {
            self.path.loss.told = loss.clamp(0.0, 1.0);
        }
        if let Some(rate) = hints.rate {
            self.path.bandwidth.set(bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3));
            self.begin_alone();
        }
    }

    fn begin_alone(&mut self) {
        self.mode = Mode::Alone;
        self.alone = alone::Alone::default();
        self.evidence.begin(false);
    }

    fn begin_competitive(&mut self, outstanding: f64) {
        self.mode = Mode::Competitive;
        let before = self.evidence.rate_before * self.path.rtt;
        self.competitive = competitive::Competitive::begin(outstanding.max(before));
        self.evidence.begin(true);
    }

    fn gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => 2.0,
            Mode::Alone => self.alone.gain(),
            Mode::Competitive => self.competitive.gain(),
        }
    }
}

impl Controller for Rrtp {
    fn on_ack(&mut self, ack: &Ack) {
        self.most += ack.newly_delivered as f64;
        let gain = self.gain();
        let ended = self.path.on_ack(ack, gain);
        let view = ended.map(|round| self.path.view(round));
        if let Some(v) = view.filter(|_| TRACE.with(|t| *t)) {
            let r = v.round;
            eprintln!("{:7.3} {:?} g{:.2} ack{:.0} lost{:.0} rate{:.1} bw{:.1} q{:.1}/{:.1} noise{:.1} sat{} link{:.3} b{:.1} ev{:.1} out{} most{:.0} win{:.0} leaps{:.2}", ack.now.as_secs_f64(), self.mode, r.gain, r.delivered, r.lost, r.rate, self.path.bandwidth.get(), r.queue_min*1e3, r.queue_mean*1e3, self.path.noise()*1e3, v.saturated as u8, self.path.loss.link(), self.path.loss.burst(), self.evidence.sum, ack.outstanding, self.most, self.send_limits().cwnd, self.path.leaps);
        }
        match self.mode {
            Mode::Startup => {
                if self.startup.on_ack(ack, &mut self.path, view) {
                    self.begin_alone();
                }
            }
            Mode::Alone => {
                if let Some(view) = view {
                    let before = self.path.bandwidth.get();
                    self.path.measure(&view);
                    self.evidence.on_round(&view, &self.path, before);
                    self.alone.on_round(&view, before);
                    if self.evidence.decides() && self.path.jitters() {
                        self.path.learn_noise();
                        self.evidence.begin(false);
                    } else if self.evidence.decides() {
                        self.begin_competitive(ack.outstanding as f64);
                    }
                }
            }
            Mode::Competitive => {
                self.competitive.on_ack(ack, &self.path);
                if let Some(view) = view {
                    let before = self.path.bandwidth.get();
                    self.path.measure(&view);
                    self.evidence.on_round(&view, &self.path, before);
                    self.competitive.on_round(&view, &self.path);
                    if self.evidence.decides() {
                        self.begin_alone();
                    }
                }
            }
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        self.path.on_outcome(outcome);
        if outcome.lost && self.mode == Mode::Competitive && !outcome.radio {
            self.competitive.on_loss(outcome, &self.path);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(_) = event {
            self.most = FIRST_FLIGHT;
            if self.mode == Mode::Startup {
                self.path.forget();
                self.startup = startup::Startup::new(MIN_WINDOW);
            }
        }
    }

    fn on_path_event(&mut self, _now: narrows_base::Time, event: &PathEvent) {
        match event {
            PathEvent::Hints(hints) => self.learn(hints),
            PathEvent::Dispersion(d) if self.mode == Mode::Startup => {
                self.startup.tell(d.bits / self.packet_bits / crate::positive(d.took));
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let limits = match self.mode {
            Mode::Startup => self.startup.limits(&self.path),
            Mode::Alone => self.alone.limits(&self.path),
            Mode::Competitive => self.competitive.limits(&self.path),
        };
        let bps = limits.rate.map(|r| Rate::from_bps_f64(bounded(r * self.packet_bits, 1.0)));
        SendLimits { pacing_rate: bps, ..SendLimits::unpaced(bounded(limits.window.min(self.most), 1.0)) }
    }

    fn requirements(&self) -> Requirements {
        Requirements::RRTP
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rrtp_state", f64::from(self.mode as u8));
        put("bandwidth_bps", self.path.bandwidth.get() * self.packet_bits);
        if let Some(base) = self.path.base() {
            put("min_rtt_s", base);
        }
    }
}
thread_local! { static TRACE: bool = std::env::var("H8").is_ok(); }
