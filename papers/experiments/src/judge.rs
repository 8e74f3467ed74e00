//! Verdicts: the stated value, the measured value, and whether they agree.

use super::cause::DifferenceCause;
use super::experiment::{Claim, EVERY, Experiment, OverSeeds};
use super::interval::{IntervalPosition, place, shown};
use super::measured::MeasuredValue;
use super::run::RunResults;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Result of a claim's check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval of the measured value lies in the accepted range.
    Reproduced,
    /// All of it lies outside, and the page gives the reason.
    Differs,
    /// An edge of the range lies in the interval, also after the last stage of seeds.
    Undecided,
    /// The stated number is impossible; the page gives the bound.
    Impossible,
    /// The scenario was fitted to the stated value: not counted.
    #[serde(rename = "set up to hold")]
    Given,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::Undecided => "undecided",
            Verdict::Impossible => "impossible",
            Verdict::Given => "set up to hold",
        })
    }
}

/// A checked claim, as `result.json` stores it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckedClaim {
    /// Text of the claim.
    pub claim: String,
    /// The paper's number.
    pub stated: String,
    /// The accepted range.
    pub accepted: String,
    /// The measured value with its interval.
    pub ours: String,
    /// The number of runs, each with a seed of its own; 0 for a model.
    #[serde(default)]
    pub seeds: usize,
    /// Result of the check.
    pub verdict: Verdict,
    /// Why the result differs, or why the stated number is impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The kind of cause, if the result differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<DifferenceCause>,
    /// The row that shows the cause, as `s0-f4.8#14`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The row that judges the same statement with the chosen settings. If there is one, this row is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// Checks every claim.
///
/// # Errors
/// A claim that differs without a reason, has a reason although it does not differ, is called impossible although it
/// was reproduced, or has no measured value.
pub fn judge(e: &Experiment, observed: &RunResults) -> Result<Vec<CheckedClaim>, String> {
    let mut faults = Vec::new();
    let mut judged = Vec::new();
    for (claim, ours) in e.file.claim.iter().zip(&observed.claims) {
        match one(claim, *ours) {
            Ok(x) => judged.push(x),
            Err(fault) => faults.push(format!("{}: claim '{}': {fault}", e.file.id, claim.text)),
        }
    }
    if faults.is_empty() { Ok(judged) } else { Err(faults.join("\n")) }
}

/// Checks one claim against its measured value.
///
/// # Errors
/// As [`judge`].
pub fn one(claim: &Claim, measured: MeasuredValue) -> Result<CheckedClaim, String> {
    if !measured.value.value.is_finite() {
        return Err("its measure has no value; the table, column or span may be wrong".into());
    }
    let ours = shown(measured.value, claim.shown_unit());
    let reason = || claim.impossible.clone().or(claim.why.clone());
    let (verdict, why) = match (place(claim.range(), measured.value), &claim.impossible, &claim.why)
    {
        (IntervalPosition::Inside, None, None) if claim.given => (Verdict::Given, None),
        (IntervalPosition::Across, ..) => (Verdict::Undecided, reason()),
        _ if claim.given => {
            return Err(format!("is set up to hold ('given'), but we get {ours}"));
        }
        (IntervalPosition::Inside, None, None) => (Verdict::Reproduced, None),
        (IntervalPosition::Inside, Some(_), _) => {
            return Err(format!("is called impossible, but we get {ours}"));
        }
        (IntervalPosition::Inside, None, Some(_)) => {
            return Err(format!("has a reason for a difference, but the result is {ours}"));
        }
        (IntervalPosition::Outside, Some(_), _) => (Verdict::Impossible, reason()),
        (IntervalPosition::Outside, None, Some(_)) => (Verdict::Differs, reason()),
        (IntervalPosition::Outside, None, None) => {
            return Err(format!(
                "we get {ours}, outside {}: find out and say why",
                accepted(claim)
            ));
        }
    };
    Ok(CheckedClaim {
        claim: claim.text.clone(),
        stated: claim.stated.clone(),
        accepted: accepted(claim),
        ours,
        seeds: measured.seeds,
        verdict,
        why,
        cause: (verdict == Verdict::Differs).then_some(claim.cause),
        shown: claim.shown.clone().filter(|_| verdict == Verdict::Differs),
        beside: claim.beside.clone(),
    })
}

/// A claim's verdict by its range alone: reasons, `given` and `impossible` play no part.
pub fn by_range(claim: &Claim, measured: MeasuredValue) -> Verdict {
    match place(claim.range(), measured.value) {
        IntervalPosition::Inside => Verdict::Reproduced,
        IntervalPosition::Across => Verdict::Undecided,
        IntervalPosition::Outside => Verdict::Differs,
    }
}

/// The accepted range as text.
fn accepted(claim: &Claim) -> String {
    let unit = if claim.unit.is_empty() { String::new() } else { format!(" {}", claim.unit) };
    let range = match (claim.min, claim.max) {
        (Some(a), Some(b)) => format!("{a} to {b}{unit}"),
        (Some(a), None) => format!("at least {a}{unit}"),
        (None, Some(b)) => format!("at most {b}{unit}"),
        (None, None) => "anything".into(),
    };
    match claim.over_seeds {
        OverSeeds::Every => format!("{range} in at least {EVERY} of runs"),
        OverSeeds::Some => format!("{range} in at least one run"),
        OverSeeds::NotEvery => format!("{range} in at most {EVERY} of runs"),
        OverSeeds::Mean | OverSeeds::Valid | OverSeeds::Median => range,
    }
}
