//! Copa: Arun and Balakrishnan, NSDI 2018.
//!
//! Measures delay. Steers the window towards the rate `1 / (delta dq)`, where `dq` is the queueing delay. That is the
//! standing RTT less the smallest RTT of 10 s. The standing RTT, the smallest of the last half srtt, is hardly
//! sensitive to ACK compression and jitter. Every ACK moves the window by `v / (delta cwnd)`; the velocity `v` doubles
//! each RTT once the direction has been the same for three. Its own window oscillates so that the queue empties every
//! five RTTs; if it does not, competing flows fill it, and `1 / delta` follows AIMD driven by losses until the queue
//! empties again ("competitive mode", section 3).
//!
//! Departure from the paper: a queue of less than two packets also counts as nearly empty. With windows of 50 packets,
//! a tenth of the range is less than that, and single rounds were mistaken for a competitor's queue. Choices that the
//! paper leaves open: after a timeout slow start begins at two segments; RTTs of retransmitted segments are used, too,
//! because they come from timestamps.

use crate::extreme::{Keep, SlidingExtreme};
use crate::{
    Ack, CongestionEvent, Controller, Environment, RecoveryCause, SendLimits, bounded, variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "copa",
    summary: "holds the queue at 1/delta packets per flow and competes if other flows fill it",
    source: "Arun and Balakrishnan 2018",
    senses: "delay; loss in competitive mode",
    sets: "window, and a pacing rate of twice the window per RTT",
    params: &[
        Param {
            name: "delta",
            help: "1 / packets that a flow keeps queued",
            kind: ParamKind::Number { unit: Unit::None, min: 0.001, max: 10.0, default: 0.5 },
            origin: "paper section 2.2",
        },
        Param {
            name: "competitive",
            help: "whether it competes where the queue does not empty",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "paper section 3",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state("copa_mode", "Copa's mode", &["default", "competitive"]),
    Variable::new("copa_delta", "", "1 / packets that the flow aims to keep queued"),
    Variable::new("copa_velocity", "", "factor of the window's change per ACK"),
    Variable::new("queueing_delay_s", "s", "standing RTT less the smallest RTT"),
    variables::MIN_RTT,
];

const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Queueing delay below this share of its range is "nearly empty" (section 3).
const NEARLY_EMPTY: f64 = 0.1;
/// The range is taken over this many RTTs.
const RANGE_RTTS: u64 = 4;
/// In default mode if the queue was nearly empty within this many RTTs.
const EMPTY_RTTS: u32 = 5;
/// Rounds in one direction before the velocity doubles.
const STEADY_ROUNDS: u32 = 3;

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let delta = settings.number("delta");
    Box::new(Copa {
        default_delta: delta,
        may_compete: settings.choice("competitive") == "on",
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        cwnd: bounded(environment.initial_window, 2.0),
        slow_start: true,
        inverse_delta: 1.0 / delta,
        competitive: false,
        rounds_since_empty: 0,
        lost_this_round: false,
        velocity: Velocity { factor: 1.0, up: true, steady: 0, cwnd_before: 0.0 },
        min_rtt: SlidingExtreme::new(Keep::Smallest),
        standing_rtt: SlidingExtreme::new(Keep::Smallest),
        max_rtt: SlidingExtreme::new(Keep::Largest),
        before: None,
    })
}

#[derive(Clone, Debug)]
struct Copa {
    default_delta: f64,
    may_compete: bool,
    packet_bits: f64,
    cwnd: f64,
    slow_start: bool,
    /// Packets that the flow aims to keep queued.
    inverse_delta: f64,
    competitive: bool,
    rounds_since_empty: u32,
    lost_this_round: bool,
    velocity: Velocity,
    min_rtt: SlidingExtreme,
    standing_rtt: SlidingExtreme,
    max_rtt: SlidingExtreme,
    before: Option<InForce>,
}

/// State that a loss episode may change.
#[derive(Clone, Copy, Debug)]
struct InForce {
    cwnd: f64,
    slow_start: bool,
    inverse_delta: f64,
}

#[derive(Clone, Debug)]
struct Velocity {
    factor: f64,
    up: bool,
    /// Rounds in the same direction.
    steady: u32,
    /// The window one round ago.
    cwnd_before: f64,
}

impl Velocity {
    fn end_round(&mut self, cwnd: f64) {
        let up = cwnd > self.cwnd_before;
        self.cwnd_before = cwnd;
        if up != self.up {
            self.up = up;
            self.steady = 0;
            self.factor = 1.0;
            return;
        }
        self.steady += 1;
        if self.steady >= STEADY_ROUNDS {
            self.factor = (self.factor * 2.0).min(1e6);
        }
    }
}

impl Copa {
    fn sample(&mut self, now: Time, rtt: f64, srtt: Duration) {
        self.min_rtt.add(now, MIN_RTT_WINDOW, rtt);
        self.standing_rtt.add(now, Duration::from_nanos(srtt.as_nanos() / 2), rtt);
        let range = Duration::from_nanos(srtt.as_nanos().saturating_mul(RANGE_RTTS));
        self.max_rtt.add(now, range, rtt);
    }

    fn in_force(&self) -> InForce {
        let Copa { cwnd, slow_start, inverse_delta, .. } = *self;
        InForce { cwnd, slow_start, inverse_delta }
    }

    fn standing(&self) -> f64 {
        self.standing_rtt.get().unwrap_or(0.0)
    }

    fn queueing_delay(&self) -> f64 {
        (self.standing() - self.min_rtt.get().unwrap_or(0.0)).max(0.0)
    }

    fn end_round(&mut self) {
        if self.may_compete && self.rounds_since_empty >= EMPTY_RTTS {
            self.competitive = true;
        }
        self.rounds_since_empty = self.rounds_since_empty.saturating_add(1);
        if self.competitive {
            let aim = if self.lost_this_round {
                self.inverse_delta / 2.0
            } else {
                self.inverse_delta + 1.0
            };
            self.inverse_delta = bounded(aim, 1.0 / self.default_delta);
        }
        self.lost_this_round = false;
        if !self.slow_start {
            self.velocity.end_round(self.cwnd);
        }
    }

    fn look_for_an_empty_queue(&mut self) {
        let (Some(least), Some(most)) = (self.min_rtt.get(), self.max_rtt.get()) else { return };
        let nearly_empty = (NEARLY_EMPTY * (most - least)).max(1.5 * self.standing() / self.cwnd);
        if self.queueing_delay() <= nearly_empty {
            self.rounds_since_empty = 0;
            if self.competitive {
                self.competitive = false;
                self.inverse_delta = 1.0 / self.default_delta;
            }
        }
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack) {
        let rtt = ack.rtt.as_secs_f64();
        if ack.newly_delivered == 0 || rtt <= 0.0 {
            return;
        }
        self.sample(ack.now, rtt, ack.estimate.srtt);
        self.look_for_an_empty_queue();
        if ack.round_start {
            self.end_round();
        }
        // Rates in segments per second: cwnd / standing RTT against 1 / (delta dq).
        let queueing = self.queueing_delay();
        let below = self.cwnd * queueing <= self.inverse_delta * self.standing();
        let delivered = ack.newly_delivered as f64;
        if self.slow_start && !below {
            self.slow_start = false;
            self.velocity.cwnd_before = self.cwnd;
        }
        if self.slow_start {
            if ack.window_limited {
                self.cwnd = bounded(self.cwnd + delivered, 2.0);
            }
            return;
        }
        let step = self.velocity.factor * self.inverse_delta / self.cwnd * delivered;
        if below && ack.window_limited {
            if !self.velocity.up {
                // The direction changed within the round, so the velocity no longer applies.
                self.velocity.factor = 1.0;
            }
            self.cwnd = bounded(self.cwnd + step.min(self.cwnd), 2.0);
        } else if !below {
            if self.velocity.up {
                self.velocity.factor = 1.0;
            }
            self.cwnd = bounded(self.cwnd - step.min(self.cwnd / 2.0), 2.0);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                let is_loss = recovery.cause == RecoveryCause::Loss;
                self.before = is_loss.then(|| self.in_force());
                self.lost_this_round = true;
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if restart.backoffs <= 1 {
                    self.before = Some(self.in_force());
                }
                self.lost_this_round = true;
                self.cwnd = 2.0;
                self.slow_start = true;
                self.velocity = Velocity { factor: 1.0, up: true, steady: 0, cwnd_before: 0.0 };
            }
            CongestionEvent::SpuriousLosses(spurious) if spurious.undo => {
                if let Some(before) = self.before.take() {
                    self.lost_this_round = false;
                    self.cwnd = self.cwnd.max(before.cwnd);
                    self.slow_start &= before.slow_start;
                    if self.competitive {
                        self.inverse_delta = self.inverse_delta.max(before.inverse_delta);
                    }
                }
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let standing = self.standing();
        let rate = 2.0 * self.cwnd * self.packet_bits / standing;
        let pacing_rate = (standing > 0.0).then(|| Rate::from_bps_f64(rate));
        SendLimits { pacing_rate, ..SendLimits::unpaced(self.cwnd) }
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("copa_mode", f64::from(u8::from(self.competitive)));
        put("copa_delta", 1.0 / self.inverse_delta);
        put("copa_velocity", self.velocity.factor);
        put("queueing_delay_s", self.queueing_delay());
        if let Some(least) = self.min_rtt.get() {
            put("min_rtt_s", least);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::build;
    use crate::scenario_path::SimplePath;
    use narrows_base::Time;

    /// Section 2.3: in equilibrium the queue swings between 0 and 2.5 / delta packets.
    #[test]
    fn alone_it_fills_the_path_with_five_packets_queued() {
        let mut path = SimplePath::new(build("copa"));
        path.run(Time::from_secs_f64(10.0));
        path.most_waiting = 0;
        let used = path.utilisation(Time::from_secs_f64(100.0));
        assert!(used > 0.95, "{used}");
        assert!(path.most_waiting <= 5, "{}", path.most_waiting);
    }

    #[test]
    fn a_smaller_delta_queues_more() {
        let waiting = |spec: &str| {
            let mut path = SimplePath::new(build(spec));
            path.run(Time::from_secs_f64(10.0));
            path.most_waiting = 0;
            path.run(Time::from_secs_f64(30.0));
            path.most_waiting
        };
        assert!(waiting("copa(delta=0.1)") > 2 * waiting("copa"));
    }

    #[test]
    fn random_loss_does_not_slow_it() {
        let mut path = SimplePath::new(build("copa"));
        path.lose = |number| number % 50 == 49;
        assert!(path.utilisation(Time::from_secs_f64(30.0)) > 0.9);
    }

    #[test]
    fn a_rate_that_falls_is_followed_within_seconds() {
        let mut path = SimplePath::new(build("copa"));
        path.run(Time::from_secs_f64(10.0));
        path.rate_bps = 2e6;
        path.run(Time::from_secs_f64(14.0));
        path.most_waiting = 0;
        path.run(Time::from_secs_f64(20.0));
        assert!(path.most_waiting < 10, "{}", path.most_waiting);
    }
}
