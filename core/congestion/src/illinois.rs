//! TCP-Illinois: Liu, Başar and Srikant, Performance Evaluation 65(6-7), 2008, with Linux's
//! constants.
//!
//! Reacts to loss, with a strength that depends on delay. The window grows by alpha per RTT and is
//! reduced by the share beta per loss episode, where alpha falls and beta grows with the queueing
//! delay of the last round:
//!
//! ```text
//! da = mean RTT - smallest RTT, dm = largest RTT - smallest RTT
//! alpha = alpha_max                   da <= dm/100        (paper equation 2)
//!         k1 / (k2 + da)              else, alpha_min at da = dm
//! beta  = beta_min                    da <= dm/10         (paper equation 3)
//!         linear                      between
//!         beta_max                    da >= 8 dm/10
//! ```
//!
//! Below 15 segments it is Reno. After alpha fell, the delay must be low for five rounds before alpha is at its largest
//! again, as in Linux. Departure from Linux: real numbers rather than fixed point.

use crate::undo::BeforeLosses;
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits, bounded, variables};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "illinois",
    summary: "Reno that grows fast and backs off little while the queueing delay is low",
    source: "Liu, Başar and Srikant 2008, constants as in Linux",
    senses: "loss, delay",
    sets: "window: +0.3 to +10 segments per RTT, cut by an eighth to a half per loss episode",
    params: &[
        Param {
            name: "alpha-max",
            help: "segments added per round trip while no queue is seen",
            kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 1000.0, default: 10.0 },
            origin: "paper section 3; Linux ALPHA_MAX",
        },
        Param {
            name: "alpha-min",
            help: "segments added per round trip at the longest queue",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.01, max: 1.0, default: 0.3 },
            origin: "Linux ALPHA_MIN",
        },
        Param {
            name: "beta-min",
            help: "share of the window given up while the queue is short",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.01, max: 0.5, default: 0.125 },
            origin: "paper section 3; Linux BETA_MIN",
        },
        Param {
            name: "beta-max",
            help: "share of the window given up while the queue is long",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.01, max: 0.99, default: 0.5 },
            origin: "paper section 3; Linux BETA_MAX",
        },
        Param {
            name: "threshold",
            help: "window below which it is Reno",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1e6, default: 15.0 },
            origin: "Linux win_thresh",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::new("illinois_alpha", "packets", "segments added to the window per round trip"),
    Variable::new("illinois_beta", "fraction", "share of the window given up at the next loss"),
    variables::MIN_RTT,
];

/// Rounds of low delay before alpha returns to its maximum (Linux THETA).
const LOW_ROUNDS: u32 = 5;

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Illinois {
        alpha_range: (settings.number("alpha-min"), settings.number("alpha-max")),
        beta_range: (settings.number("beta-min"), settings.number("beta-max")),
        threshold: settings.number("threshold"),
        cwnd: bounded(environment.initial_window, 1.0),
        ssthresh: environment.initial_ssthresh,
        alpha: 1.0,
        beta: settings.number("beta-max"),
        delays: Delays::default(),
        low_rounds: 0,
        was_high: false,
        before: BeforeLosses::default(),
    })
}

#[derive(Clone, Debug)]
struct Illinois {
    /// Smallest and largest alpha.
    alpha_range: (f64, f64),
    /// Smallest and largest beta.
    beta_range: (f64, f64),
    threshold: f64,
    cwnd: f64,
    ssthresh: f64,
    alpha: f64,
    beta: f64,
    delays: Delays,
    /// Rounds of low delay since a high one (`rtt_low`).
    low_rounds: u32,
    /// Whether the delay has been high since the last timeout (`rtt_above`).
    was_high: bool,
    before: BeforeLosses,
}

/// Round-trip times in nanoseconds: whole numbers, so that a constant RTT has no delay at all.
#[derive(Clone, Debug, Default)]
struct Delays {
    range: Option<(u64, u64)>,
    sum: u128,
    count: u128,
}

impl Delays {
    fn add(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos();
        let (least, most) = self.range.unwrap_or((rtt, rtt));
        self.range = Some((least.min(rtt), most.max(rtt)));
        self.sum += u128::from(rtt);
        self.count += 1;
    }

    /// Ends a round: mean and largest queueing delay in nanoseconds, where there were samples.
    fn end_round(&mut self) -> Option<(f64, f64)> {
        let (least, most) = self.range?;
        let mean = self.sum.checked_div(self.count)?;
        self.sum = 0;
        self.count = 0;
        Some((mean.saturating_sub(u128::from(least)) as f64, (most - least) as f64))
    }
}

impl Illinois {
    fn end_round(&mut self) {
        let delays = self.delays.end_round();
        if self.cwnd < self.threshold {
            self.alpha = 1.0;
            self.beta = self.beta_range.1;
            return;
        }
        if let Some((mean, most)) = delays {
            self.alpha = self.alpha_at(mean, most);
            self.beta = self.beta_at(mean, most);
        }
    }

    /// Equation 2.
    fn alpha_at(&mut self, mean: f64, most: f64) -> f64 {
        let (alpha_min, alpha_max) = self.alpha_range;
        let low = most / 100.0;
        if mean <= low {
            if !self.was_high {
                return alpha_max;
            }
            // One round without delay may be chance.
            self.low_rounds += 1;
            if self.low_rounds < LOW_ROUNDS {
                return self.alpha;
            }
            self.low_rounds = 0;
            self.was_high = false;
            return alpha_max;
        }
        self.was_high = true;
        let span = most - low;
        let mean = mean - low;
        span * alpha_max / (span + mean * (alpha_max / alpha_min - 1.0))
    }

    /// Equation 3.
    fn beta_at(&self, mean: f64, most: f64) -> f64 {
        let (beta_min, beta_max) = self.beta_range;
        let low = most / 10.0;
        let high = most * 0.8;
        if mean <= low {
            beta_min
        } else if mean >= high {
            beta_max
        } else {
            beta_min + (beta_max - beta_min) * (mean - low) / (high - low)
        }
    }

    fn after_loss(&self) -> f64 {
        (self.cwnd * (1.0 - self.beta)).max(2.0)
    }
}

impl Controller for Illinois {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.cumulative.newly_acked > 0 && ack.rtt > Duration::ZERO {
            self.delays.add(ack.rtt);
        }
        if ack.round_start {
            self.end_round();
        }
        if !ack.may_grow() {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd = bounded(self.cwnd + ack.counted as f64, 1.0);
        } else {
            let acked = (ack.cumulative.newly_acked as f64).min(self.cwnd);
            self.cwnd = bounded(self.cwnd + acked * self.alpha / self.cwnd, 1.0);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                self.before.on_recovery(recovery, self.cwnd, self.ssthresh);
                self.ssthresh = self.after_loss();
                self.cwnd = self.ssthresh;
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if restart.backoffs <= 1 {
                    self.before.keep(self.cwnd, self.ssthresh);
                    self.ssthresh = self.after_loss();
                }
                self.cwnd = 1.0;
                self.alpha = 1.0;
                self.beta = self.beta_range.1;
                self.low_rounds = 0;
                self.was_high = false;
                self.delays = Delays { range: self.delays.range, ..Delays::default() };
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                let undone = self.before.undo(spurious, self.cwnd, self.ssthresh);
                (self.cwnd, self.ssthresh) = undone.unwrap_or((self.cwnd, self.ssthresh));
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("illinois_alpha", self.alpha);
        put("illinois_beta", self.beta);
        if let Some((least, _)) = self.delays.range {
            put("min_rtt_s", least as f64 * 1e-9);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{IdealPath, build};
    use crate::scenario_path::SimplePath;
    use narrows_base::{Duration, Time};

    fn avoiding() -> IdealPath {
        let mut s = IdealPath::new(build("illinois"));
        s.acks(56); // a window of 60
        s.recovery();
        s
    }

    #[test]
    fn small_windows_are_renos() {
        let mut s = IdealPath::new(build("illinois"));
        s.acks(12);
        s.recovery();
        assert_eq!(s.window(), 8.0);
        s.acks(9);
        assert!((s.window() - 9.0).abs() < 0.2, "{}", s.window());
    }

    #[test]
    fn growth_is_ten_without_delay_below_one_at_most() {
        let mut s = avoiding();
        let before = s.window();
        s.acks(2 * before as u32);
        assert!(s.window() - before > 10.0, "{} to {}", before, s.window());
        s.rtt = Duration::from_millis(200); // twice the base: the longest so far
        for _ in 0..3 {
            s.acks(s.window() as u32 + 1);
        }
        let before = s.window();
        s.acks(before as u32);
        assert!((0.2..0.9).contains(&(s.window() - before)), "{} to {}", before, s.window());
    }

    #[test]
    fn loss_reduces_by_an_eighth_or_half_with_queue() {
        let mut s = avoiding();
        s.acks(100);
        let before = s.window();
        s.recovery();
        assert!((s.window() / before - 0.875).abs() < 1e-9, "{}", s.window() / before);
        s.rtt = Duration::from_millis(200);
        s.acks(200);
        let before = s.window();
        s.recovery();
        assert!((s.window() / before - 0.5).abs() < 1e-9, "{}", s.window() / before);
    }

    #[test]
    fn long_path_is_filled_better_than_by_reno() {
        let share = |name: &str| {
            let mut path = SimplePath::new(build(name));
            path.rate_bps = 100e6;
            path.delay = Duration::from_millis(100);
            path.queue_limit = 300;
            path.lose = |number| number % 20_000 == 19_999;
            path.utilisation(Time::from_secs_f64(60.0))
        };
        let illinois = share("illinois");
        let reno = share("reno");
        assert!(illinois > 0.85 && reno < illinois - 0.2, "{illinois} beside {reno}");
    }
}
