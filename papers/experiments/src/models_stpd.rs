//! The ST-PD thesis's model of its loop, with its results under the names of experiments.

use super::{Arguments, Model};
use crate::stpd_model::{Loop, LoopStart};

const LOOP: &[&str] = &["m", "kp", "kd", "clocked"];

/// Arguments: `m` is the round-trip time in packet times. `clocked` is 0 for the thesis's equations and 1 for a loop in
/// which ACKs clock packets out. `rest` is 1 for no arrivals before time 0, 0 for equilibrium.
pub(super) const MODELS: &[Model] = &[
    Model {
        name: "stpd_arrivals",
        summary: "arrivals per packet time at time n, a packet having been lost at p (never: p < 0)",
        source: "S0 equation 4.17",
        arguments: &["m", "kp", "kd", "rest", "p", "n"],
        of: |a| {
            let n = a["n"].max(0.0) as usize;
            let loss = (a["p"] >= 0.0).then_some(a["p"] as usize);
            s0(a).arrivals(start(a), loss, n + 1)[n]
        },
    },
    Model {
        name: "stpd_throughput",
        summary: "share of the link that is used if one packet of 1 / loss is lost, as the mean over its places",
        source: "S0 equation 4.19",
        arguments: &["m", "kp", "kd", "rest", "loss"],
        of: |a| s0(a).throughput(start(a), (1.0 / a["loss"]).round() as usize),
    },
    Model {
        name: "stpd_largest_loss_rate",
        summary: "the loss rate up to which the loop settles (within 5%) from one loss before the next",
        source: "integrated from S0 equation 4.17",
        arguments: &["m", "kp", "kd"],
        of: |a| s0(a).largest_loss_rate().unwrap_or(f64::NAN),
    },
    Model {
        name: "stpd_pole",
        summary: "the loop's pole of that number, by falling real part; its imaginary part if imaginary = 1",
        source: "roots of S0 equation 4.17's denominator",
        arguments: &["m", "kp", "kd", "clocked", "number", "imaginary"],
        of: |a| {
            let poles = any(a).characteristic().roots();
            let pole = poles.get((a["number"] as usize).wrapping_sub(1));
            pole.map_or(f64::NAN, |z| if a["imaginary"] > 0.0 { z.im } else { z.re })
        },
    },
    Model {
        name: "stpd_largest_pole",
        summary: "the largest modulus of the loop's poles; stable below 1",
        source: "as stpd_pole",
        arguments: LOOP,
        of: |a| any(a).characteristic().largest_modulus(),
    },
    Model {
        name: "stpd_largest_kp",
        summary: "the largest kp with which the loop is stable",
        source: "as stpd_pole",
        arguments: &["m", "kd", "clocked"],
        of: |a| loop_of(a, 0.0, a["kd"]).largest_stable_kp(),
    },
    Model {
        name: "stpd_supervised_largest_kp",
        summary: "the same, clocked by ACKs, with the supervisor's kd for a BDP of m packets",
        source: "as stpd_pole",
        arguments: &["m"],
        of: |a| {
            let delay = delay(a);
            let (_, kd) = supervised(a);
            Loop { delay, kp: 0.0, kd, clocked_by_acks: true }.largest_stable_kp()
        },
    },
    Model {
        name: "stpd_supervised_kp",
        summary: "the supervisor's kp for a BDP of m packets",
        source: "docs/sources.md; S0 section 3.4.3.2",
        arguments: &["m"],
        of: |a| supervised(a).0,
    },
];

fn delay(a: &Arguments) -> usize {
    a["m"].max(1.0) as usize
}
fn loop_of(a: &Arguments, kp: f64, kd: f64) -> Loop {
    Loop { delay: delay(a), kp, kd, clocked_by_acks: a["clocked"] > 0.0 }
}
fn any(a: &Arguments) -> Loop {
    loop_of(a, a["kp"], a["kd"])
}
fn s0(a: &Arguments) -> Loop {
    Loop::of_s0(delay(a), a["kp"], a["kd"])
}
fn start(a: &Arguments) -> LoopStart {
    if a["rest"] > 0.0 { LoopStart::Rest } else { LoopStart::Equilibrium }
}
fn supervised(a: &Arguments) -> (f64, f64) {
    narrows_congestion::stpd_gains(a["m"].max(0.0) as u64)
}
