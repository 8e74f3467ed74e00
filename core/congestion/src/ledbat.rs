//! LEDBAT++: Balasubramanian, Ertugay, Havey and Bagnulo, draft-irtf-iccrg-ledbat-plus-plus; for background transfers
//! that give way to all other traffic.
//!
//! Measures round-trip delay and loss. Below the target delay the window grows as Reno's, slower by a gain of 1/16 or
//! more; above it, it shrinks in proportion to the excess; a loss halves it. So that several flows measure the same
//! base delay and a newcomer does not displace the others, each flow periodically reduces its window to two packets for
//! two RTTs (sections 4.1 to 4.4):
//!
//! ```text
//! gain  = 1 / min(16, ceil(2 target / base))
//! delay = smallest of the last four RTTs - base, base the smallest of ten minutes
//! W    += gain / W                                            per ACK, delay <= target
//! W    += max(gain - W (delay / target - 1), -W / 2) / W      per ACK, delay > target
//! ```
//!
//! Slow start adds `gain` per ACK; the first one ends at three quarters of the target. The pause ends with a slow start
//! to the window before it, and the next begins after nine times as long as it took.

use crate::extreme::{Keep, SlidingExtreme};
use crate::undo::BeforeLosses;
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits, bounded, variables};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "ledbat++",
    summary: "a background transfer: gives way to every flow that fills a queue",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01",
    senses: "delay, loss",
    sets: "window: at most +1 segment per RTT; down with the delay above its target",
    params: &[
        Param {
            name: "target",
            help: "queueing delay above which it shrinks",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 0.001, max: 10.0, default: 0.06 },
            origin: "draft section 4.5 (60 ms)",
        },
        Param {
            name: "slowdown",
            help: "whether it pauses now and then to measure the base delay",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "draft section 4.4",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::new("queueing_delay_s", "s", "standing RTT less the smallest RTT"),
    Variable::state(
        "ledbat_phase",
        "phase of the window",
        &["slow start", "avoidance", "pause", "return"],
    ),
    variables::MIN_RTT,
];

const BASE_WINDOW: Duration = Duration::from_secs(600);
/// The smallest of this many RTT samples counts.
const FILTER: usize = 4;
/// Window during a pause, and its length in RTTs.
const PAUSE_WINDOW: f64 = 2.0;
const PAUSE_RTTS: f64 = 2.0;
/// Time between two pauses, as a multiple of the duration of the last one, from its start until the
/// window was full again.
const DUTY: f64 = 9.0;
const MIN_WINDOW: f64 = 2.0;
const MAX_GAIN_DIVISOR: f64 = 16.0;

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Ledbat {
        target: settings.number("target"),
        pauses: settings.choice("slowdown") == "on",
        // Section 4.1: no more than two at first.
        cwnd: bounded(environment.initial_window, 1.0).min(MIN_WINDOW),
        ssthresh: environment.initial_ssthresh,
        before: BeforeLosses::default(),
        phase: LedbatPhase::SlowStart { first: true },
        next_pause: None,
        base: SlidingExtreme::new(Keep::Smallest),
        recent: [f64::INFINITY; FILTER],
        samples: 0,
    })
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum LedbatPhase {
    SlowStart {
        /// Whether this is the first slow start, the only one that ends by delay.
        first: bool,
    },
    Avoidance,
    Pause {
        began: Time,
    },
    /// Slow start back to the window before the pause.
    Return {
        began: Time,
    },
}

#[derive(Clone, Debug)]
struct Ledbat {
    target: f64,
    pauses: bool,
    cwnd: f64,
    ssthresh: f64,
    before: BeforeLosses,
    phase: LedbatPhase,
    next_pause: Option<Time>,
    base: SlidingExtreme,
    /// The last RTTs in seconds, as a ring.
    recent: [f64; FILTER],
    samples: usize,
}

impl Ledbat {
    fn delay(&self) -> f64 {
        let recent = self.recent.iter().copied().fold(f64::INFINITY, f64::min);
        self.base.get().map_or(0.0, |base| (recent - base).max(0.0))
    }

    fn gain(&self) -> f64 {
        let base = self.base.get().unwrap_or(self.target);
        1.0 / (2.0 * self.target / base).ceil().clamp(1.0, MAX_GAIN_DIVISOR)
    }

    fn grow(&mut self, delivered: f64) {
        let gain = self.gain();
        let delay = self.delay();
        let target = self.target;
        let per_window = if delay <= target {
            gain
        } else {
            (gain - self.cwnd * (delay / target - 1.0)).max(-self.cwnd / 2.0)
        };
        let delivered = delivered.min(self.cwnd);
        self.cwnd = bounded(self.cwnd + per_window * delivered / self.cwnd, MIN_WINDOW);
    }

    /// Moves between slow start, avoidance and pauses.
    fn change_phase(&mut self, now: Time, srtt: f64) {
        let seconds = |s: f64| Duration::from_secs_f64(s.min(1e6));
        match self.phase {
            LedbatPhase::SlowStart { first } => {
                let delayed = first && self.delay() > 0.75 * self.target;
                if delayed || self.cwnd >= self.ssthresh {
                    self.phase = LedbatPhase::Avoidance;
                    if first {
                        self.ssthresh = self.cwnd;
                        self.next_pause = Some(now + seconds(PAUSE_RTTS * srtt));
                    }
                }
            }
            LedbatPhase::Avoidance => {
                if self.pauses && self.next_pause.is_some_and(|at| now >= at) {
                    self.ssthresh = self.cwnd;
                    self.cwnd = PAUSE_WINDOW;
                    self.phase = LedbatPhase::Pause { began: now };
                }
            }
            LedbatPhase::Pause { began } => {
                if now.since(began).as_secs_f64() >= PAUSE_RTTS * srtt {
                    self.phase = LedbatPhase::Return { began };
                }
            }
            LedbatPhase::Return { began } => {
                if self.cwnd >= self.ssthresh {
                    let took = now.since(began).as_secs_f64();
                    self.next_pause = Some(now + seconds(DUTY * took));
                    self.phase = LedbatPhase::Avoidance;
                }
            }
        }
    }

    fn halve(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW);
        self.cwnd = self.ssthresh;
    }
}

impl Controller for Ledbat {
    fn on_ack(&mut self, ack: &Ack) {
        let rtt = ack.rtt.as_secs_f64();
        if rtt > 0.0 {
            self.base.add(ack.now, BASE_WINDOW, rtt);
            self.recent[self.samples % FILTER] = rtt;
            self.samples = self.samples.wrapping_add(1);
        }
        self.change_phase(ack.now, ack.estimate.srtt.as_secs_f64());
        let delivered = ack.newly_delivered as f64;
        let slow_start =
            matches!(self.phase, LedbatPhase::SlowStart { .. } | LedbatPhase::Return { .. });
        if self.phase == LedbatPhase::Avoidance && !ack.in_recovery {
            // The window may always shrink, but grows only if it was used.
            if self.delay() > self.target || ack.window_limited {
                self.grow(delivered);
            }
        } else if slow_start && ack.may_grow() {
            let most = if self.phase == (LedbatPhase::SlowStart { first: true }) {
                f64::INFINITY
            } else {
                self.ssthresh.max(self.cwnd)
            };
            self.cwnd = bounded((self.cwnd + self.gain() * delivered).min(most), MIN_WINDOW);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                self.before.on_recovery(recovery, self.cwnd, self.ssthresh);
                match self.phase {
                    // The window is small already: the lost packets were sent before.
                    LedbatPhase::Pause { .. } => {
                        self.ssthresh = (self.ssthresh / 2.0).max(MIN_WINDOW)
                    }
                    LedbatPhase::SlowStart { first: true } => {
                        self.halve();
                        self.phase = LedbatPhase::Avoidance;
                        let pause =
                            Duration::from_nanos(recovery.srtt.as_nanos().saturating_mul(2));
                        self.next_pause = Some(recovery.now + pause);
                    }
                    _ => self.halve(),
                }
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if restart.backoffs <= 1 {
                    self.before.keep(self.cwnd, self.ssthresh);
                    self.ssthresh = (self.cwnd / 2.0).max(MIN_WINDOW);
                }
                self.cwnd = 1.0;
                self.phase = LedbatPhase::SlowStart { first: false };
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
        put("queueing_delay_s", if self.samples > 0 { self.delay() } else { 0.0 });
        let phase: u8 = match self.phase {
            LedbatPhase::SlowStart { .. } => 0,
            LedbatPhase::Avoidance => 1,
            LedbatPhase::Pause { .. } => 2,
            LedbatPhase::Return { .. } => 3,
        };
        put("ledbat_phase", f64::from(phase));
        if let Some(base) = self.base.get() {
            put("min_rtt_s", base);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{IdealPath, build};
    use crate::scenario_path::SimplePath;
    use narrows_base::{Duration, Time};

    fn standing(spec: &str) -> (f64, f64) {
        let mut path = SimplePath::new(build(spec));
        path.run(Time::from_secs_f64(60.0));
        path.most_waiting = 0;
        let used = path.utilisation(Time::from_secs_f64(120.0));
        (used, path.most_waiting as f64 * 8000.0 / path.rate_bps)
    }

    #[test]
    fn alone_it_keeps_the_queue_near_its_target() {
        let (used, longest) = standing("ledbat++");
        assert!(used > 0.85, "{used}");
        assert!((0.04..0.09).contains(&longest), "{longest} s");
        let (_, longest) = standing("ledbat++(target=20ms)");
        assert!(longest < 0.04, "{longest} s");
    }

    #[test]
    fn delay_above_target_reduces_window_at_most_half_per_round() {
        let mut s = IdealPath::new(build("ledbat++(slowdown=off)"));
        for _ in 0..400 {
            s.acks(1);
        }
        s.recovery();
        let before = s.window();
        s.rtt = Duration::from_millis(400); // five times the target above the base
        s.acks(4 + before as u32);
        assert!((0.4..0.7).contains(&(s.window() / before)), "{before} to {}", s.window());
    }

    #[test]
    fn periodic_slowdown_takes_a_tenth_of_the_time() {
        let mut path = SimplePath::new(build("ledbat++"));
        path.run(Time::from_secs_f64(30.0));
        path.least_window = f64::INFINITY;
        path.most_window = 0.0;
        path.run(Time::from_secs_f64(90.0));
        assert_eq!(path.least_window, 2.0, "paused");
        assert!(path.most_window > 50.0, "{}", path.most_window);
    }
}
