//! Verdicts: the stated value, the measured value, and whether they agree.

use super::experiment::{Claim, Experiment};
use super::run::Observed;
use narrows_lab::outcome::Estimate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Ours is in the accepted range.
    Reproduced,
    /// It is not, and the page says why.
    Differs,
    /// Nobody could get the stated number; the page gives the bound.
    Impossible,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::Impossible => "impossible",
        })
    }
}

/// A judged claim, as `result.json` keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// What is claimed.
    pub claim: String,
    /// The paper's number.
    pub stated: String,
    /// The accepted range.
    pub accepted: String,
    /// Ours.
    pub ours: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why we differ, or why it is impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Judges every claim.
///
/// # Errors
/// A claim that differs without saying why, says why although it does not differ, is called
/// impossible although we get it, or measures nothing.
pub fn judge(e: &Experiment, observed: &Observed) -> Result<Vec<Judged>, String> {
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

/// Judges one claim by what was measured.
///
/// # Errors
/// As [`judge`].
pub fn one(claim: &Claim, measured: Estimate) -> Result<Judged, String> {
    let x = measured.mean;
    if !x.is_finite() {
        return Err("its measure has no value; the table, column or span may be wrong".into());
    }
    let inside = claim.min.is_none_or(|min| x >= min) && claim.max.is_none_or(|max| x <= max);
    let ours = shown(measured, &claim.unit);
    let (verdict, why) = match (inside, &claim.impossible, &claim.why) {
        (true, None, None) => (Verdict::Reproduced, None),
        (true, Some(_), _) => return Err(format!("is called impossible, but we get {ours}")),
        (true, None, Some(_)) => return Err(format!("says why we differ, but we get {ours}")),
        (false, Some(bound), _) => (Verdict::Impossible, Some(bound.clone())),
        (false, None, Some(why)) => (Verdict::Differs, Some(why.clone())),
        (false, None, None) => {
            return Err(format!(
                "we get {ours}, outside {}: find out and say why",
                accepted(claim)
            ));
        }
    };
    Ok(Judged {
        claim: claim.text.clone(),
        stated: claim.stated.clone(),
        accepted: accepted(claim),
        ours,
        verdict,
        why,
    })
}

/// The accepted range as text.
fn accepted(claim: &Claim) -> String {
    let unit = if claim.unit.is_empty() { String::new() } else { format!(" {}", claim.unit) };
    match (claim.min, claim.max) {
        (Some(a), Some(b)) => format!("{a} to {b}{unit}"),
        (Some(a), None) => format!("at least {a}{unit}"),
        (None, Some(b)) => format!("at most {b}{unit}"),
        (None, None) => "anything".into(),
    }
}

/// A number with its interval, rounded as its interval deserves, at most four digits.
pub fn shown(x: Estimate, unit: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    match x.ci95 {
        Some(half) if half > 0.0 => format!("{} ± {}{unit}", digits(x.mean), digits2(half)),
        _ => format!("{}{unit}", digits(x.mean)),
    }
}

/// Four significant digits, without an exponent where that is readable.
pub fn digits(x: f64) -> String {
    significant(x, 4)
}
fn digits2(x: f64) -> String {
    significant(x, 2)
}

fn significant(x: f64, n: i32) -> String {
    if !x.is_finite() {
        return "-".into();
    }
    if x == 0.0 {
        return "0".into();
    }
    // Through text, so that no logarithm of the machine decides about a digit.
    let scientific = format!("{:.*e}", (n - 1) as usize, x);
    let exponent: i32 = scientific.split('e').nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    let decimals = n - 1 - exponent;
    if !(-7..=9).contains(&decimals) {
        return scientific;
    }
    let text = format!("{:.*}", decimals.max(0) as usize, scientific.parse::<f64>().unwrap_or(x));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}
