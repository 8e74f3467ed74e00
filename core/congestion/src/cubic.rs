//! CUBIC: RFC 9438; slow start by HyStart++, RFC 9406.
//!
//! Reacts to loss (and to delay in the first slow start). Sets the window to a cubic function of the time since the
//! last loss, flat around the window where that loss happened, and never below Reno's window:
//!
//! ```text
//!  W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)     equations 1 and 2
//!  W_est += alpha acked / cwnd,        alpha = 3 (1 - beta) / (1 + beta)      equation 4
//! ```
//!
//! Windows in segments, t in seconds. Time in which the application, not the window, limited the sender does not count
//! (section 5.8). A reduction is computed from FlightSize, but from no more than the window in force: FlightSize
//! includes data that arrived behind a hole, so 0.7 of it may exceed the window. Preset `ns2` uses the window, see
//! [`Dialect::halve`]. Left out: undoing a spurious cut (section 4.9) over TCP, where the recovery kinds do not detect it, and
//! the reaction to ECN.

use crate::hystart::{HyStartReaction, Hystart};
use crate::linux;
use crate::{
    Ack, CongestionEvent, Controller, Dialect, Environment, RecoveryCause, SendLimits, Sent,
    bounded,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Time, Variable, math};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "cubic",
    summary: "window as a cubic function of the time since the last loss: the Internet's default",
    source: "RFC 9438; slow start RFC 9406",
    senses: "loss; delay in the first slow start",
    sets: "window: cubic growth, 0.7 of it after a loss",
    params: &[
        Param {
            name: "c",
            help: "how steep the cubic is, in segments per second cubed",
            kind: ParamKind::Number { unit: Unit::None, min: 1e-3, max: 1000.0, default: 0.4 },
            origin: "RFC 9438 section 5",
        },
        Param {
            name: "beta",
            help: "factor applied to the window at a loss",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.1, max: 0.95, default: 0.7 },
            origin: "RFC 9438 section 4.6",
        },
        Param {
            name: "fast-convergence",
            help: "whether a flow with a shrinking window leaves capacity to new ones",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "RFC 9438 section 4.7",
        },
        Param {
            name: "hystart",
            help: "whether a rise in delay ends the first slow start",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "RFC 9438 section 4.10, RFC 9406",
        },
        crate::linux::like(&["preset", "rfc", "linux"]),
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::new("w_max", "packets", "window at the last reduction (W_max of RFC 9438)"),
    Variable::new("w_est", "packets", "window that Reno would have since (W_est of RFC 9438)"),
];

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    if linux::is_meant(settings, environment) {
        let on = |name: &str| settings.choice(name) == "on";
        let c = settings.number("c");
        let beta = settings.number("beta");
        let options = linux::cubic::Options::new(c, beta, on("hystart"), on("fast-convergence"));
        return linux::cubic::build(options, environment);
    }
    let beta = settings.number("beta");
    Box::new(Cubic {
        c: settings.number("c"),
        beta,
        reno_alpha: 3.0 * (1.0 - beta) / (1.0 + beta),
        fast_convergence: settings.choice("fast-convergence") == "on",
        dialect: environment.dialect,
        hystart: (settings.choice("hystart") == "on").then(Hystart::new),
        cwnd: bounded(environment.initial_window, 1.0),
        ssthresh: environment.initial_ssthresh,
        w_max: 0.0,
        cwnd_prior: 0.0,
        after_loss: false,
        epoch: None,
        last_ack: None,
        before: None,
    })
}

/// An epoch of congestion avoidance, from a loss or the end of slow start to the next loss.
#[derive(Clone, Debug)]
struct Epoch {
    /// When it began, shifted by the time in which the window was not the limit.
    began: Time,
    /// When the cubic function reaches `w_max`, in seconds from `began`.
    k: f64,
    /// The window at which the cubic function is flat.
    w_max: f64,
    /// Reno's window at this time.
    w_est: f64,
}

#[derive(Clone, Debug)]
struct Cubic {
    c: f64,
    beta: f64,
    reno_alpha: f64,
    fast_convergence: bool,
    dialect: Dialect,
    /// Present until the first slow start ends.
    hystart: Option<Hystart>,
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    cwnd_prior: f64,
    /// Whether the next epoch follows a recovery rather than a timeout or HyStart++.
    after_loss: bool,
    epoch: Option<Epoch>,
    last_ack: Option<Time>,
    before: Option<Box<BeforeLoss>>,
}

/// State that a loss episode changed (RFC 9438 section 4.9.2).
#[derive(Clone, Debug)]
struct BeforeLoss {
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    cwnd_prior: f64,
    after_loss: bool,
    epoch: Option<Epoch>,
    hystart: Option<Hystart>,
}

impl Cubic {
    /// Section 4.2; section 4.8 (after a timeout) and 4.10 (after slow start without loss): K = 0.
    fn begin(&mut self, now: Time) -> Epoch {
        let w_max = if self.after_loss { self.w_max.max(self.cwnd) } else { self.cwnd };
        let k = if self.after_loss { math::cbrt((w_max - self.cwnd) / self.c) } else { 0.0 };
        if !self.after_loss {
            self.w_max = w_max;
        }
        Epoch { began: now, k, w_max, w_est: self.cwnd }
    }

    fn avoid_congestion(&mut self, ack: &Ack) {
        let mut epoch = match self.epoch.take() {
            Some(epoch) => epoch,
            None => self.begin(ack.now),
        };
        let acked = ack.cumulative.newly_acked as f64;
        // Section 4.3: as fast as Reno once the window of the last loss is reached.
        let alpha = if epoch.w_est < self.cwnd_prior { self.reno_alpha } else { 1.0 };
        epoch.w_est = bounded(epoch.w_est + alpha * acked / self.cwnd, 1.0);
        let t = ack.now.since(epoch.began).as_secs_f64();
        let cubic = |t: f64| self.c * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + epoch.w_max;
        if cubic(t) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            // Sections 4.4 and 4.5, concave and convex: towards where the cubic will be one RTT
            // from now, at most half as much again per round trip.
            let target =
                cubic(t + ack.estimate.srtt.as_secs_f64()).clamp(self.cwnd, 1.5 * self.cwnd);
            let step = (target - self.cwnd) * (acked / self.cwnd).min(1.0);
            self.cwnd = bounded(self.cwnd + step, 1.0);
        }
        self.epoch = Some(epoch);
    }

    /// Section 4.6, and fast convergence, section 4.7.
    fn cut(&mut self, flight: u64, most: f64) {
        let mut before = BeforeLoss {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
            after_loss: self.after_loss,
            epoch: None,
            hystart: None,
        };
        self.cwnd_prior = self.cwnd;
        self.w_max = if self.fast_convergence && self.cwnd < self.w_max {
            self.cwnd * (1.0 + self.beta) / 2.0
        } else {
            self.cwnd
        };
        let base = match self.dialect {
            // Section 4.6 reduces FlightSize, so that an idle sender's unused window does not count, and mentions
            // implementations that use cwnd. FlightSize alone fails at two consecutive losses. At the end of a
            // recovery, most of the packets sent during it have arrived; behind a lost retransmission, all packets
            // until the timeout have. So the reduction starts from no more than the window (RFC 5681 section 3.1: "no
            // more than").
            Dialect::Rfc | Dialect::Linux => (flight as f64).min(most),
            Dialect::Ns2 => self.cwnd,
        };
        self.ssthresh = bounded(base * self.beta, 2.0);
        before.epoch = self.epoch.take();
        before.hystart = self.hystart.take();
        self.before = Some(Box::new(before));
    }

    /// Undoes the last reduction, which turned out to be spurious.
    fn undo(&mut self) {
        let Some(before) = self.before.take() else { return };
        let BeforeLoss { cwnd, ssthresh, w_max, cwnd_prior, after_loss, epoch, hystart } = *before;
        if cwnd > self.cwnd {
            self.cwnd = cwnd;
            self.ssthresh = ssthresh;
            self.w_max = w_max;
            self.cwnd_prior = cwnd_prior;
            self.after_loss = after_loss;
            self.epoch = epoch;
            self.hystart = hystart;
        }
    }

    /// Shifts the epoch's start by time in which the window was not filled.
    fn excuse(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.began += idle;
        }
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &Sent) {
        // The first packet after an idle time (section 5.8).
        if let (1, Some(last)) = (sent.outstanding, self.last_ack) {
            self.excuse(sent.now.since(last));
            self.last_ack = Some(sent.now);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let since_last = self.last_ack.map_or(Duration::ZERO, |last| ack.now.since(last));
        self.last_ack = Some(ack.now);
        if !ack.window_limited {
            self.excuse(since_last);
        }
        if !ack.may_grow() {
            return;
        }
        if self.cwnd >= self.ssthresh {
            self.avoid_congestion(ack);
            return;
        }
        match self.hystart.as_mut().map_or(HyStartReaction::Grow(1.0), |h| h.on_ack(ack)) {
            HyStartReaction::Grow(segments) => self.cwnd = bounded(self.cwnd + segments, 1.0),
            HyStartReaction::Leave => {
                self.ssthresh = self.cwnd;
                self.hystart = None;
            }
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                self.cut(recovery.flight, self.cwnd);
                self.cwnd = self.ssthresh;
                self.after_loss = true;
                if recovery.cause == RecoveryCause::EcnCe {
                    self.before = None;
                }
            }
            CongestionEvent::SlowStartRestart(restart) => {
                // Section 4.8; RFC 5681 section 3.1: a second timeout of the same segment keeps ssthresh.
                if restart.backoffs <= 1 {
                    // In the slow start after another timeout, ssthresh is the window last in force.
                    self.cut(restart.flight, self.cwnd.max(self.ssthresh));
                }
                self.cwnd = 1.0;
                self.after_loss = false;
                self.epoch = None;
            }
            CongestionEvent::SpuriousLosses(spurious) if spurious.undo => self.undo(),
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("w_max", self.w_max);
        put("w_est", self.epoch.as_ref().map_or(0.0, |e| e.w_est));
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
