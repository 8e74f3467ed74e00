//! RED's parameters.

use super::discipline::ECN;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, SpecError, Status};
use std::ops::RangeInclusive;

/// The shortest time between two adaptations of max-p, in seconds.
pub(super) const EPISODE_S: f64 = 0.5;

const fn choice(
    name: &'static str,
    help: &'static str,
    words: &'static [&'static str],
    origin: &'static str,
) -> Param {
    Param { name, help, kind: ParamKind::Choice(words), origin }
}

const fn number(
    name: &'static str,
    help: &'static str,
    unit: Unit,
    range: RangeInclusive<f64>,
    default: f64,
    origin: &'static str,
) -> Param {
    let min = *range.start();
    let max = *range.end();
    Param { name, help, kind: ParamKind::Number { unit, min, max, default }, origin }
}

/// RED's descriptor.
pub(super) const RED: Descriptor = Descriptor {
    name: "red",
    summary: "drops arrivals at random, the likelier the longer the average queue",
    source: "Floyd and Jacobson 1993; ns-2.35 RED; Choi 2006, section 6.2.2",
    senses: "an average of the packets waiting, taken at arrivals",
    sets: "the probability of drops or marks at the tail",
    params: &[
        number(
            "min",
            "average above which it drops; 0: a third of max, or from target-delay",
            Unit::Packets,
            0.0..=1e9,
            0.0,
            "Choi 2006 eq. 6.6; ns-2 thresh_",
        ),
        number(
            "max",
            "average at which the probability is max-p; 0: three times min",
            Unit::Packets,
            0.0..=1e9,
            0.0,
            "Choi 2006 eq. 6.5; ns-2 maxthresh_",
        ),
        number("max-p", "probability at max", Unit::Fraction, 1e-6..=1.0, 0.1, "ns-2 linterm_ 10"),
        number(
            "weight",
            "of the newest queue in the average; 0: time constant 1s, -1: 10 RTTs guessed from \
             the link, -2: 100ms",
            Unit::None,
            -2.0..=1.0,
            -1.0,
            "Choi 2006 eqs. 6.2 to 6.4; ns-2 q_weight_",
        ),
        number(
            "rtt-floor",
            "smallest RTT that weight=-1 assumes; 0s is Choi 2006 eq. 6.2 as printed",
            Unit::Seconds,
            0.0..=100.0,
            0.1,
            "ns-2",
        ),
        number(
            "mean-packet",
            "packet size that turns the rate into packets, and the unit of mode=bytes",
            Unit::Bytes,
            1.0..=65_535.0,
            500.0,
            "ns-2 mean_pktsize_",
        ),
        number(
            "target-delay",
            "without min and max: min is half of the packets that pass in this time, at least 5 packets",
            Unit::Seconds,
            0.0..=100.0,
            0.005,
            "Choi 2006 eq. 6.6; ns-2 targetdelay_",
        ),
        choice(
            "mode",
            "bytes: the average counts bytes, and large packets are dropped more often",
            &["packets", "bytes"],
            "scripts of Choi 2006; ns-2 since October 2004: bytes",
        ),
        choice(
            "gentle",
            "above max the probability rises to 1 at twice max, instead of at once",
            &["on", "off"],
            "ns-2 gentle_, since April 2001",
        ),
        choice(
            "adaptive",
            "moves max-p every 0.5s so that the average stays midway",
            &["off", "on"],
            "Floyd, Gummadi, Shenker 2001; ns-2 adaptive_",
        ),
        choice("wait", "never two drops close together", &["on", "off"], "ns-2 wait_"),
        choice(
            "victim",
            "dropped packet at a full queue: the arrival, or a random one",
            &["tail", "random"],
            "ns-2: tail, unless drop_tail_ is off and drop_rand_ on",
        ),
        choice(
            "cautious",
            "no early drop while the queue is far below its average",
            &["off", "on"],
            "ns-2 cautious_; scripts of Choi 2006: on (1)",
        ),
        ECN,
        number(
            "mark-p",
            "beyond this probability by the average even ECN-capable packets are dropped",
            Unit::Fraction,
            0.0..=1.0,
            0.1,
            "ns-2 use_mark_p_, mark_p_",
        ),
    ],
    status: Status::Validated(
        "its average under constant rates in closed form, within 3% (docs/validation.md)",
    ),
};

/// Checks that the parameters fit together.
///
/// # Errors
/// The lower threshold is above the upper one, or a weight that is neither one nor a convention.
pub(super) fn check(s: &Settings) -> Result<(), SpecError> {
    let min = s.number("min");
    let max = s.number("max");
    let weight = s.number("weight");
    if max > 0.0 && min >= max {
        return Err(SpecError::new(format!("red(min={min},max={max}): max must be above min")));
    }
    if weight < 0.0 && weight != -1.0 && weight != -2.0 {
        return Err(SpecError::new(format!(
            "red(weight={weight}): a weight is between 0 and 1, or 0, -1 or -2 (narrows list red)"
        )));
    }
    Ok(())
}
