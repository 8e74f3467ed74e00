//! ST-PD TCP, self-tuning proportional and derivative control: the ST-PD thesis, chapters 3 to 5.
//!
//! Measures delay with every ACK, including duplicates. Controls the window by a PD controller that steers the number
//! of its own packets in the queue to `reference`. Loss alone never reduces the window; only a timeout does. A fuzzy
//! supervisor tunes both gains by the perceived BDP.
//!
//! ```text
//! S = x / RTT, x packets sent since the one now acknowledged left         equation 3.4
//! buf = (RTT - RTTmin) S                                                  equation 3.3
//! err = reference - buf                                                   equation 3.2
//! cwnd += Kp(x) err + Kd(x) (err - previous err)                          equation 3.5
//! ```
//!
//! Additions of Narrows, where the thesis is incomplete (docs/sources.md):
//!
//! - The terms' centres and the gains. Figures 3.4 and 3.5 lost their numbers. These give the thesis's 0.368 and 0.033
//!   at x = 3 and keep every loop delay stable; gains fall with x, as stability requires.
//! - The start-up. The thesis's comparison with Reno implies one as fast as slow start. Afterwards the path is drained
//!   once, so that late flows measure it without the queue of earlier ones (`stpd/startup.rs`).
//! - The limits on the change per ACK.
//! - A timeout clears the error memory.
//! - A sender that does not fill its window does not grow.
//!
//! The gains depend on a whole number of packets only, so they are read from a table made once from
//! the rule base: no logarithm per ACK.

mod startup;

pub use startup::StpdStartup;

use crate::fuzzy::{Rules, Term, centre_of_maximum, fuzzify};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits, bounded, variables};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable, math};
use startup::StpdStart;
use std::sync::OnceLock;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "stpd",
    summary: "steers its own queue to one packet; a fuzzy supervisor tunes the gains",
    source: "the ST-PD thesis, chapters 3 to 5",
    senses: "delay; timeouts",
    sets: "window: proportional and derivative control per ACK; 1 after a timeout",
    params: &[
        Param {
            name: "reference",
            help: "packets of its own to keep in the queue",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 10_000.0, default: 1.0 },
            origin: "the ST-PD thesis, section 3.4.3.1",
        },
        Param {
            name: "supervisor",
            help: "whether the gains follow the BDP: by fuzzy rules, or Ziegler and Nichols' rule",
            kind: ParamKind::Choice(&["fuzzy", "fixed", "ziegler-nichols"]),
            origin: "the ST-PD thesis, sections 3.4.3.1 and 3.4.3.2",
        },
        Param {
            name: "kp",
            help: "proportional gain of supervisor=fixed",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 10.0, default: 0.368 },
            origin: "the ST-PD thesis, section 4.3.3; stability: experiments/s0-f4.5",
        },
        Param {
            name: "kd",
            help: "derivative gain of supervisor=fixed",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 10.0, default: 0.033 },
            origin: "the ST-PD thesis, section 4.3.3; stability: experiments/s0-f4.5",
        },
        Param {
            name: "startup",
            help: "slow start until a queue forms, then the path is drained once; slow start; or PD control at once",
            kind: ParamKind::Choice(&["drain", "slow", "pd"]),
            origin: "an addition (the thesis does not describe it)",
        },
        Param {
            name: "max-rise",
            help: "most that one ACK may add to the window under PD control",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.01, max: 1000.0, default: 1.0 },
            origin: "ours",
        },
        Param {
            name: "max-fall",
            help: "most that one ACK may take from the window under PD control",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.01, max: 1000.0, default: 0.5 },
            origin: "ours",
        },
    ],
    status: Status::Validated(
        "figures 3.8 to 3.13, 3.17 and 4.21 of the thesis; 10% loss differs (docs/validation.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::BACKLOG,
    Variable::new("bdp", "packets", "BDP as estimated by the supervisor"),
    Variable::new("kp", "", "proportional gain"),
    Variable::new("kd", "", "derivative gain"),
];

/// Terms of the BDP in packets (the ST-PD thesis, figure 3.4, has the names; the centres are chosen here).
const PRODUCT: [Term; 5] = [
    Term { name: "extremely small", centre: 1.0 },
    Term { name: "small", centre: 4.0 },
    Term { name: "medium", centre: 12.0 },
    Term { name: "large", centre: 40.0 },
    Term { name: "extremely large", centre: 120.0 },
];

/// The ST-PD thesis, section 3.4.3.2: if the BDP is extremely small, Kp is extremely large, and so on down.
const PROPORTIONAL: Rules<5> = Rules { outputs: [0.83, 0.247, 0.080, 0.025, 0.0085] };
/// If the BDP is extremely small, Kd is extremely small, and so on up.
const DERIVATIVE: Rules<5> = Rules { outputs: [0.010, 0.039, 0.080, 0.140, 0.200] };

/// The largest BDP in the table: the last centre.
const LAST: usize = 120;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Gains {
    kp: f64,
    kd: f64,
}

/// Gains for every whole BDP up to [`LAST`].
type GainTable = [Gains; LAST + 1];

/// The fuzzy supervisor's gains.
fn fuzzy() -> &'static GainTable {
    static TABLE: OnceLock<GainTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|x| {
            let truth = fuzzify(&PRODUCT, x as f64);
            Gains {
                kp: centre_of_maximum(&truth, &PROPORTIONAL),
                kd: centre_of_maximum(&truth, &DERIVATIVE),
            }
        })
    })
}

/// Gains by the frequency response (Ziegler and Nichols 1942), with which the ST-PD thesis begins its tuning (section
/// 3.4.3.1). At a BDP of x packets the loop of ACKs has a delay of x + 1 packets: it oscillates at the proportional gain
/// Ku = 2 sin(pi / (2 (2x + 1))), with a period of 2 (2x + 1). The rule: kp = 0.8 Ku, and an eighth of the period as
/// derivative time.
fn ziegler_nichols() -> &'static GainTable {
    static TABLE: OnceLock<GainTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|x| {
            let half_period = 2.0 * x.max(1) as f64 + 1.0;
            let kp = 0.8 * 2.0 * math::sin(std::f64::consts::PI / (2.0 * half_period));
            Gains { kp, kd: kp * half_period / 4.0 }
        })
    })
}

/// The fuzzy supervisor's gains, proportional and derivative, for a BDP in packets.
pub fn gains(product: u64) -> (f64, f64) {
    let Gains { kp, kd } = Supervisor::Table(fuzzy()).gains(product);
    (kp, kd)
}

#[derive(Clone, Copy, Debug)]
enum Supervisor {
    Table(&'static GainTable),
    Fixed(Gains),
}

impl Supervisor {
    fn gains(self, product: u64) -> Gains {
        match self {
            Supervisor::Fixed(gains) => gains,
            Supervisor::Table(table) => match table.get(product as usize) {
                Some(gains) => *gains,
                // Beyond the last centre the largest stable Kp falls as 1/x.
                None => {
                    let Gains { kp, kd } = table[LAST];
                    Gains { kp: kp * LAST as f64 / product as f64, kd }
                }
            },
        }
    }
}

/// The controller's parameters and gains as numbers, for a driver that repeats its arithmetic (the kernel has no
/// floating point).
#[derive(Clone, Debug)]
pub struct StpdParameters {
    /// Packets of its own to keep in the queue.
    pub reference: f64,
    /// Most that one ACK adds to the window.
    pub max_rise: f64,
    /// Largest reduction of the window by one ACK.
    pub max_fall: f64,
    /// How it begins.
    pub startup: StpdStartup,
    /// Proportional and derivative gain by the BDP in whole packets.
    pub gains: Vec<(f64, f64)>,
    /// Whether the proportional gain falls as 1 / BDP beyond the last of these; the derivative one stays.
    pub falls: bool,
}

/// The numbers of these settings.
pub fn numbers(settings: &Settings) -> StpdParameters {
    let supervisor = supervisor(settings);
    let gains = |x| {
        let Gains { kp, kd } = supervisor.gains(x as u64);
        (kp, kd)
    };
    StpdParameters {
        reference: settings.number("reference"),
        max_rise: settings.number("max-rise"),
        max_fall: settings.number("max-fall"),
        startup: startup(settings),
        gains: (0..=LAST).map(gains).collect(),
        falls: matches!(supervisor, Supervisor::Table(_)),
    }
}

fn startup(settings: &Settings) -> StpdStartup {
    match settings.choice("startup") {
        "drain" => StpdStartup::Drain,
        "slow" => StpdStartup::Slow,
        _ => StpdStartup::Control,
    }
}

fn supervisor(settings: &Settings) -> Supervisor {
    match settings.choice("supervisor") {
        "fixed" => {
            Supervisor::Fixed(Gains { kp: settings.number("kp"), kd: settings.number("kd") })
        }
        "ziegler-nichols" => Supervisor::Table(ziegler_nichols()),
        _ => Supervisor::Table(fuzzy()),
    }
}

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Stpd {
        reference: settings.number("reference"),
        supervisor: supervisor(settings),
        max_rise: settings.number("max-rise"),
        max_fall: settings.number("max-fall"),
        cwnd: bounded(environment.initial_window, 1.0),
        start: StpdStart::new(startup(settings)),
        buffered: 0.0,
        product: 0,
        previous_error: None,
    })
}

#[derive(Clone, Debug)]
struct Stpd {
    reference: f64,
    supervisor: Supervisor,
    max_rise: f64,
    max_fall: f64,
    cwnd: f64,
    start: StpdStart,
    /// Packets of this flow in the queue (`buf`).
    buffered: f64,
    /// Perceived BDP (`x`).
    product: u64,
    previous_error: Option<f64>,
}

impl Controller for Stpd {
    fn on_ack(&mut self, ack: &Ack) {
        let rtt = ack.rtt.as_nanos();
        self.product = ack.sent_since;
        self.buffered = if rtt == 0 {
            0.0
        } else {
            (ack.rtt - ack.estimate.min_rtt).as_nanos() as f64 * self.product as f64 / rtt as f64
        };
        if let Some(cwnd) = self.start.on_ack(self.cwnd, ack, self.buffered) {
            self.cwnd = cwnd;
            self.previous_error = None;
            return;
        }
        let error = self.reference - self.buffered;
        let may_rise = ack.window_limited || ack.in_recovery;
        let Gains { kp, kd } = self.supervisor.gains(self.product);
        let change = kp * error + self.previous_error.map_or(0.0, |before| kd * (error - before));
        self.previous_error = Some(error);
        let change = change.max(-self.max_fall).min(if may_rise { self.max_rise } else { 0.0 });
        self.cwnd = bounded(self.cwnd + change, 1.0);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            // The window stays (the ST-PD thesis, section 4.2).
            CongestionEvent::Losses(_) => self.start.on_loss(self.buffered),
            CongestionEvent::SlowStartRestart(_) => {
                // The ST-PD thesis, section 4.2: a timeout is the safety net and restarts the window.
                self.cwnd = 1.0;
                self.start.on_timeout();
                self.previous_error = None;
                self.buffered = 0.0;
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let Gains { kp, kd } = self.supervisor.gains(self.product);
        put("backlog", self.buffered);
        put("bdp", self.product as f64);
        put("kp", kp);
        put("kd", kd);
    }
}

#[cfg(test)]
#[path = "stpd_tests.rs"]
mod tests;
