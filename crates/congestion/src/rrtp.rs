//! The controller of rrtp: short queues where it is alone, a fair share where it is not.
//!
//! What was sent more or less arrives, waits or is lost. *Estimators* ([`estimate`]) take acknowledgements and outcomes
//! and give numbers; a [`View`] of them is frozen once a round trip. *Policies* read it and return limits. *One
//! experiment* ([`experiment`]) compares rounds that differ in what was sent, whatever for, and sums up how likely others
//! share the bottleneck.
//!
//! ```text
//! startup      doubles the window, or times four where packets' spacing says that the path holds more
//!    | a queue shows, no more arrives, losses
//!    v
//! alone        the bandwidth, and no queue that shows; probes and holds back once in eight rounds
//!    | ^
//!    | | evidence (a cumulative log-likelihood ratio passes 2.5)
//!    v |
//! competitive  CUBIC's window, cut by losses that are not the link's; holds back in two of ten rounds
//! ```
//!
//! In all of them a silence in which everything was lost leaves the window of a first flight, which doubles per round trip
//! up to what the policy allows. In the startup it also begins anew.
//!
//! Parts come from BBR (the largest delivery rate, probes), Copa (NSDI 2018: two modes), Nimbus (SIGCOMM 2022: the queue's
//! answer to the own rate tells of others) and PCC Vivace (NSDI 2018: loss as a function of the own rate). The page
//! docs/rrtp-congestion-control.md describes it so that it can be written anew.
//!
//! Known limits:
//! - Behind a queue of one to six packets, and where delays jitter, most losses of a shared queue count as the link's.
//!   Flows that back off at losses get little there.
//! - Beside BBR it has what a CUBIC has, a tenth to a half.

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
use alone::Alone;
use competitive::Competitive;
use constants::FIRST_FLIGHT;
use estimate::{Path, View};
use experiment::Evidence;
use narrows_base::{Descriptor, Rate, Settings, Status, Variable};
use startup::Startup;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp",
    summary: "short queues where it is alone, a fair share where it is not",
    source: "docs/rrtp-congestion-control.md",
    senses: "delivery rate, queueing delay, losses",
    sets: "pacing rate and window",
    params: &[],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state("rrtp_mode", "policy in force", &["startup", "alone", "competitive"]),
    Variable::state(
        "mode_reason",
        "why this policy came into force",
        &[
            "beginning",
            "silence (everything was lost)",
            "told (the rate)",
            "found (a queue, a limit, or losses)",
            "others (answer to what was sent more or less)",
            "nobody (answers to what was sent more or less)",
        ],
    ),
    variables::BANDWIDTH,
    variables::MIN_RTT,
    Variable::new("rrtp_noise_s", "s", "delay that is no queue to be drained"),
    Variable::new("link_loss_share", "fraction", "packets that the link loses at any rate"),
    Variable::new("loss_burst", "packets", "mean length of the link's bursts of losses"),
];

/// Builds the controller.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Rrtp::new(environment))
}

/// What a policy returns.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Packets in flight.
    window: f64,
    /// Packets per second; `None` lets them leave at once.
    rate: Option<f64>,
}

#[derive(Clone, Debug)]
enum Policy {
    Startup(Startup),
    Alone(Alone),
    Competitive(Competitive),
}

/// In the order of the variable's names.
#[derive(Clone, Copy, Debug)]
enum Reason {
    Beginning,
    Silence,
    Told,
    Found,
    Others,
    Nobody,
}

#[derive(Clone, Debug)]
struct Rrtp {
    packet_bits: f64,
    path: Path,
    evidence: Evidence,
    policy: Policy,
    reason: Reason,
    /// Packets in flight at most after a silence.
    most: f64,
}

impl Rrtp {
    fn new(environment: &Environment) -> Rrtp {
        let first = bounded(environment.initial_window.min(FIRST_FLIGHT), 1.0);
        let mut rrtp = Rrtp {
            packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
            path: Path::default(),
            evidence: Evidence::while_shared(false),
            policy: Policy::Startup(Startup::begin(first)),
            reason: Reason::Beginning,
            most: f64::INFINITY,
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
            self.be_alone(Reason::Told);
        }
    }

    fn be_alone(&mut self, reason: Reason) {
        (self.policy, self.reason) = (Policy::Alone(Alone::begin()), reason);
        self.evidence = Evidence::while_shared(false);
    }

    /// The startup found this bandwidth, packets per second.
    fn end_startup(&mut self, bandwidth: f64) {
        self.path.bandwidth.set(bandwidth);
        self.be_alone(Reason::Found);
    }

    fn compete(&mut self, ack: &Ack) {
        let before = self.evidence.bandwidth_before * self.path.rtt;
        let window = bounded(before.max(ack.outstanding as f64), 1.0);
        self.policy = Policy::Competitive(Competitive::begin(window));
        self.reason = Reason::Others;
        self.evidence = Evidence::while_shared(true);
    }

    /// Of the packets that leave now.
    fn gain(&self) -> f64 {
        match &self.policy {
            Policy::Startup(_) => 2.0,
            Policy::Alone(alone) => alone.gain,
            Policy::Competitive(competitive) => competitive.gain(),
        }
    }

    /// A round has ended.
    fn on_round(&mut self, ack: &Ack, view: &View) {
        if let Policy::Startup(startup) = &mut self.policy {
            let unsaturated = View { queued: false, dropped: false, unexplained: false, ..*view };
            self.path.measure(&unsaturated);
            if let Some(bandwidth) = startup.on_round(view, ack, &self.path) {
                self.end_startup(bandwidth);
            }
            return;
        }
        self.path.measure(view);
        self.evidence.on_round(view);
        match &mut self.policy {
            Policy::Startup(_) => {}
            Policy::Alone(alone) => {
                alone.on_round(view);
                if self.evidence.decides() && self.path.jitters() {
                    // What neither follows what is sent nor is a queue's is the path's.
                    self.path.learn_noise();
                    self.evidence = Evidence::while_shared(false);
                } else if self.evidence.decides() {
                    self.compete(ack);
                }
            }
            Policy::Competitive(competitive) => {
                competitive.on_round(view, &self.path);
                if self.evidence.decides() {
                    self.be_alone(Reason::Nobody);
                }
            }
        }
    }

    fn limits(&self) -> Limits {
        match &self.policy {
            Policy::Startup(startup) => startup.limits(&self.path),
            Policy::Alone(alone) => alone.limits(&self.path),
            Policy::Competitive(competitive) => competitive.limits(&self.path),
        }
    }
}

impl Controller for Rrtp {
    fn on_ack(&mut self, ack: &Ack) {
        self.most += ack.newly_delivered as f64;
        let gain = self.gain();
        let view = self.path.on_ack(ack, gain);
        match &mut self.policy {
            Policy::Startup(startup) => startup.on_ack(ack, &self.path),
            Policy::Alone(_) => {}
            Policy::Competitive(competitive) => competitive.on_ack(ack, &self.path),
        }
        if let Some(view) = view {
            self.on_round(ack, &view);
        }
        if let Policy::Startup(startup) = &self.policy
            && let Some(bandwidth) = startup.within_round(&self.path)
        {
            self.end_startup(bandwidth);
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        self.path.on_outcome(outcome);
        if let Policy::Competitive(competitive) = &mut self.policy
            && outcome.lost
        {
            competitive.on_loss(outcome, &self.path);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(_) = event {
            self.most = FIRST_FLIGHT;
            if let Policy::Startup(_) = self.policy {
                self.path = Path::default();
                self.policy = Policy::Startup(Startup::begin(FIRST_FLIGHT));
                self.reason = Reason::Silence;
            }
        }
    }

    fn on_path_event(&mut self, _now: narrows_base::Time, event: &PathEvent) {
        match event {
            PathEvent::Hints(hints) => self.learn(hints),
            PathEvent::Dispersion(told) => {
                if let Policy::Startup(startup) = &mut self.policy {
                    let rate = told.bits / self.packet_bits / crate::positive(told.took);
                    startup.tell(rate, crate::positive(told.rtt));
                }
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let limits = self.limits();
        let window = bounded(limits.window.min(self.most), 1.0);
        let bps = limits.rate.map(|r| Rate::from_bps_f64(bounded(r * self.packet_bits, 1.0)));
        SendLimits { pacing_rate: bps, ..SendLimits::unpaced(window) }
    }

    fn requirements(&self) -> Requirements {
        Requirements::RRTP
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let mode = match self.policy {
            Policy::Startup(_) => 0.0,
            Policy::Alone(_) => 1.0,
            Policy::Competitive(_) => 2.0,
        };
        put("rrtp_mode", mode);
        put("mode_reason", f64::from(self.reason as u8));
        put("bandwidth_bps", self.path.bandwidth.get() * self.packet_bits);
        if let Some(base) = self.path.base() {
            put("min_rtt_s", base);
        }
        put("rrtp_noise_s", self.path.noise());
        put("link_loss_share", self.path.loss.link());
        put("loss_burst", self.path.loss.burst());
    }
}

#[cfg(test)]
mod tests;
