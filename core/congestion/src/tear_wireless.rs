//! TEAR for radio links: delay indicates congestion, losses do not (Jayaram 2001, chapters 6 and 7).
//!
//! The state machine, the rounds and the smoothing are [`tear`](super::tear)'s. Instead of loss, a loop with hysteresis
//! over the RTT moves the window: it grows below R1, is halved once per RTT above R2, and in between the last direction
//! continues. The thesis's fixed 800 ms and 1200 ms (`thresholds=fixed`) fit the CDMA networks that it measured, with
//! an idle RTT of 500 ms to 800 ms. By default the thresholds adapt to the path, which the thesis leaves as future
//! work: see `tear/wireless.rs`.
//!
//! Choices: gaps are counted as arrivals. T_timeout applies only to time without arrivals. A reduction waits its RTT in
//! FAST-RECOVERY, so that there is one per RTT. An ECN mark is unambiguous even on radio, and reduces the window. Fixed
//! thresholds apply to the last RTT sample, not to the smoothed RTT.

use crate::tear;
use crate::{Controller, Environment, ReceiverSide, variables};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "tear-wireless",
    summary: "TEAR that goes by delay with hysteresis and ignores losses, for radio links",
    source: "Jayaram 2001, chapters 6 and 7",
    senses: "RTT or one-way delay, ECN marks",
    sets: "rate: the emulated window over the RTT, weighted over eight epochs",
    params: &[
        Param {
            name: "thresholds",
            help: "adaptive: above the path's own delay; fixed: r1 and r2 of RTT",
            kind: ParamKind::Choice(&["adaptive", "fixed"]),
            origin: "Jayaram 2001, section 6.5, has fixed ones, and adaptive ones as future work",
        },
        Param {
            name: "r1",
            help: "fixed thresholds: the window grows below this RTT",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 1e-6, max: 60.0, default: 0.8 },
            origin: "Jayaram 2001, section 6.5",
        },
        Param {
            name: "r2",
            help: "fixed thresholds: the window is cut above this RTT; at least r1",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 1e-6, max: 60.0, default: 1.2 },
            origin: "Jayaram 2001, section 6.5",
        },
        tear::SSTHRESH,
        Param {
            name: "weights",
            help: "of the last eight epochs: shifts (1/2, 1/4 …) or tear (1/6 … 1/30)",
            kind: ParamKind::Choice(&["shifts", "tear"]),
            origin: "Jayaram 2001, tables 6.1 and 3.1",
        },
        tear::DISCOUNT,
        Param {
            name: "bound",
            help: "whether the rate is at most 1.5 times that of arrivals; off is Jayaram 2001",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "an addition; not in Jayaram 2001",
        },
    ],
    status: Status::Differs(
        "fixed thresholds, 64 kbit/s radio: 34 kbit/s in packets of 1500 B, 23 of 576 B; Jayaram 2001, figure 7.1: 40",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::RATE,
    tear::WINDOW,
    tear::THRESHOLD,
    tear::STATE,
    Variable::new(
        "tear_delay_s",
        "s",
        "delay compared with the thresholds: the RTT if they are fixed, else its part above the smallest",
    ),
    Variable::new("tear_r1_s", "s", "delay below which the window grows"),
    Variable::new("tear_r2_s", "s", "delay above which the window is cut"),
    Variable::state("tear_down", "whether the window is being cut", &["no", "yes"]),
];

/// Builds the sender side: TEAR's.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    tear::build(settings, environment)
}

/// Builds the receiver side.
pub fn receiver(settings: &Settings, _environment: &Environment) -> Box<dyn ReceiverSide> {
    let fixed = settings.choice("thresholds") == "fixed";
    let thresholds = || (settings.number("r1"), settings.number("r2"));
    tear::by_delay(settings, fixed.then(thresholds))
}
