//! The controller of rrtp: a short queue where the sender is alone, a fair share where the bottleneck is shared.
//!
//! *Estimators* ([`estimate`]) turn acknowledgements and packet outcomes into estimates of the path. At the end of each
//! round trip they are copied into a [`RoundView`]. A *policy* reads it and returns a window and a pacing rate. The
//! *evidence* ([`experiment`]) compares rounds in which the sender sent more or less, and tests whether the bottleneck
//! is shared.
//!
//! ```text
//! startup      doubles the window per round trip, or quadruples it if the spacing of packets shows a larger BDP
//!    | a queue, a plateau of the rate, losses, or a hinted rate
//!    v
//! alone        paces at the bandwidth; one probe in eight rounds, each followed by a round at a lower rate
//!    | ^
//!    | | evidence (a cumulative log-likelihood ratio above 2.5), or jitter (upwards)
//!    v |
//! competitive  CUBIC's window; two of ten rounds at a lower rate
//! ```
//!
//! After persistent congestion the window is that of a first flight. It doubles per round trip up to the window of the
//! policy. In the startup the controller also resets its estimates.
//!
//! Sources of its parts: BBR (largest delivery rate, probes) and Copa (NSDI 2018: two modes). From Nimbus (SIGCOMM
//! 2022) comes the test of other flows by the response of the queue to the sender's rate. From PCC Vivace (NSDI 2018)
//! comes loss as a function of the sender's rate. docs/rrtp-congestion-control.md is the complete specification.
//!
//! Known limits:
//! - Behind a queue of one to six packets, or where delays jitter, most losses of a shared queue count as the link's.
//!   Flows that back off at losses starve there.
//! - Beside BBR it gets 4% to 37% of the link.
//! - Without a hint, a transfer over a clean path takes 4 to 7 round trips longer than its transmission (docs/rrtp.md,
//!   *How much may leave*).

mod alone;
mod competitive;
mod constants;
mod estimate;
mod experiment;
mod limits;
mod startup;

use crate::{
    Ack, CongestionEvent, Controller, Environment, PacketOutcome, PathEvent, PathHints,
    Requirements, SendLimits, bounded, variables,
};
use alone::Alone;
use competitive::Competitive;
use constants::{MIN_WINDOW, UP};
use estimate::{PathModel, RoundView};
use experiment::Evidence;
use limits::PolicyLimits;
use narrows_base::{Descriptor, Rate, Settings, Status, Variable};
use startup::Startup;

/// Name, source and status; there are no parameters.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp",
    summary: "a short queue where it is alone, a fair share where the bottleneck is shared",
    source: "docs/rrtp-congestion-control.md",
    senses: "delivery rate, queueing delay, losses",
    sets: "pacing rate and window",
    params: &[],
    status: Status::NotValidated,
};

/// The variables of its time series.
pub const VARIABLES: &[Variable] = &[
    Variable::state("rrtp_mode", "policy in force", &["startup", "alone", "competitive"]),
    Variable::state(
        "mode_reason",
        "reason for the change to this policy",
        &[
            "start",
            "restart (all packets in flight were lost)",
            "hint (a rate was given)",
            "capacity found (a queue, a plateau of the rate, or losses)",
            "shared queue (the rate follows the packets sent)",
            "own queue (the rate does not follow the packets sent)",
            "jitter (delays do not show a shared queue)",
            "resumed (the last flight of the startup found more capacity)",
            "longer path (the delay stays while the rate changes)",
        ],
    ),
    variables::BANDWIDTH,
    variables::MIN_RTT,
    Variable::new("rrtp_noise_s", "s", "queueing delay that the sender does not try to drain"),
    Variable::new("link_loss_share", "fraction", "packets that the link loses without congestion"),
    Variable::new("loss_burst", "packets", "mean length of the link's loss bursts"),
];

/// Builds the controller.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Rrtp::new(environment))
}

#[derive(Clone, Debug)]
enum Policy {
    Startup(Startup),
    Alone(Alone),
    Competitive(Competitive),
}

/// Reason for the policy in force, in the order of the states of `mode_reason`.
#[derive(Clone, Copy, Debug)]
enum PolicyReason {
    Start,
    Restart,
    Hint,
    CapacityFound,
    SharedQueue,
    QueueIsOwn,
    Jitter,
    Resumed,
    PathIsLonger,
}

#[derive(Clone, Debug)]
struct Rrtp {
    packet_bits: f64,
    /// Packets, at least 1.
    initial_window: f64,
    path: PathModel,
    evidence: Evidence,
    policy: Policy,
    reason: PolicyReason,
    /// Largest window after a restart, packets; infinite before the first.
    restart_limit: f64,
}

impl Rrtp {
    fn new(environment: &Environment) -> Rrtp {
        let initial_window = bounded(environment.initial_window, 1.0);
        let startup = Startup::begin(initial_window, environment.expects_dispersion);
        let mut rrtp = Rrtp {
            packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
            initial_window,
            path: PathModel::default(),
            evidence: Evidence::assuming_shared(false),
            policy: Policy::Startup(startup),
            reason: PolicyReason::Start,
            restart_limit: f64::INFINITY,
        };
        rrtp.on_hints(&environment.hints);
        rrtp
    }

    fn on_hints(&mut self, hints: &PathHints) {
        if let Some(rtt) = hints.rtt {
            self.path.hint_rtt(crate::positive(rtt));
        }
        if let Some(loss) = hints.loss {
            self.path.loss.hinted = loss.clamp(0.0, 1.0);
        }
        if let Some(rate) = hints.rate {
            self.path.bandwidth.set(bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3));
            self.begin_alone(PolicyReason::Hint);
        }
    }

    fn begin_alone(&mut self, reason: PolicyReason) {
        (self.policy, self.reason) = (Policy::Alone(Alone::begin()), reason);
        self.evidence = Evidence::assuming_shared(false);
    }

    /// Ends the startup with this bandwidth, packets per second.
    fn end_startup(&mut self, bandwidth: f64) {
        self.path.bandwidth.set(bandwidth);
        self.begin_alone(PolicyReason::CapacityFound);
    }

    /// Whether the startup ended too early: its last flight arrived without more losses, and most of it at its rate.
    fn refutes_end_of_startup(&self, view: &RoundView) -> bool {
        matches!(self.reason, PolicyReason::CapacityFound)
            && view.round.gain > UP
            && view.follows()
            && !view.dropped
    }

    fn resume_startup(&mut self, view: &RoundView) {
        let window = view.round.rate * self.path.base().unwrap_or(0.0);
        self.policy = Policy::Startup(Startup::resume(bounded(window, MIN_WINDOW)));
        self.reason = PolicyReason::Resumed;
    }

    fn begin_competitive(&mut self, ack: &Ack) {
        let before = self.evidence.bandwidth_before * self.path.rtt;
        let window = bounded(before.max(ack.outstanding as f64), 1.0);
        self.policy = Policy::Competitive(Competitive::begin(window));
        self.reason = PolicyReason::SharedQueue;
        self.evidence = Evidence::assuming_shared(true);
    }

    /// Gain of the packets that leave now.
    fn gain(&self) -> f64 {
        match &self.policy {
            Policy::Startup(_) => 2.0,
            Policy::Alone(alone) => alone.gain,
            Policy::Competitive(competitive) => competitive.gain(),
        }
    }

    /// Updates the bandwidth, the evidence and the policy at the end of a round.
    fn on_round(&mut self, ack: &Ack, view: &RoundView) {
        if let Policy::Startup(startup) = &mut self.policy {
            let unsaturated =
                RoundView { queued: false, dropped: false, unexplained: false, ..*view };
            self.path.measure(&unsaturated);
            if let Some(bandwidth) = startup.on_round(view, ack, &self.path) {
                self.end_startup(bandwidth);
            }
            return;
        }
        self.path.measure(view);
        if self.refutes_end_of_startup(view) {
            self.resume_startup(view);
            return;
        }
        self.evidence.on_round(view);
        match &mut self.policy {
            Policy::Startup(_) => {}
            Policy::Alone(alone) => {
                alone.on_round(view, &self.path);
                if self.evidence.path_is_longer() && !self.path.jitters() {
                    self.path.lengthen();
                    self.begin_alone(PolicyReason::PathIsLonger);
                } else if self.evidence.refutes() && self.path.jitters() {
                    // Jitter of the path resembles a shared queue: count it as noise.
                    self.path.learn_noise();
                    self.evidence = Evidence::assuming_shared(false);
                } else if self.evidence.refutes() {
                    self.begin_competitive(ack);
                }
            }
            Policy::Competitive(competitive) => {
                competitive.on_round(&self.path);
                let jitters = self.path.jitters();
                if jitters || self.evidence.refutes() {
                    let reason =
                        if jitters { PolicyReason::Jitter } else { PolicyReason::QueueIsOwn };
                    self.begin_alone(reason);
                }
            }
        }
    }

    fn limits(&self) -> PolicyLimits {
        match &self.policy {
            Policy::Startup(startup) => startup.limits(&self.path),
            Policy::Alone(alone) => alone.limits(&self.path),
            Policy::Competitive(competitive) => competitive.limits(&self.path),
        }
    }
}

impl Controller for Rrtp {
    fn on_ack(&mut self, ack: &Ack) {
        self.restart_limit += ack.newly_delivered as f64;
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
            competitive.on_loss(outcome);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(_) = event {
            self.restart_limit = self.initial_window;
            if let Policy::Startup(_) = self.policy {
                self.path = PathModel::default();
                self.policy = Policy::Startup(Startup::begin(self.initial_window, false));
                self.reason = PolicyReason::Restart;
            }
        }
    }

    fn on_path_event(&mut self, _now: narrows_base::Time, event: &PathEvent) {
        match event {
            PathEvent::Hints(hints) => self.on_hints(hints),
            PathEvent::Dispersion(dispersion) => {
                if let Policy::Startup(startup) = &mut self.policy {
                    let rate =
                        dispersion.bits / self.packet_bits / crate::positive(dispersion.took);
                    startup.on_dispersion(rate, crate::positive(dispersion.rtt));
                }
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let limits = self.limits();
        let window = bounded(limits.window.min(self.restart_limit), 1.0);
        let bps = limits.rate.map(|r| Rate::from_bps_f64(bounded(r * self.packet_bits, 1.0)));
        SendLimits { pacing_rate: bps, ..SendLimits::unpaced(window) }
    }

    fn requirements(&self) -> Requirements {
        Requirements { packet_numbers: false, ..Requirements::RRTP }
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
