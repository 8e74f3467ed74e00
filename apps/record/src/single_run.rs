//! Measures of a single, not repeatable run.

use narrows_lab::measure::MEASURES;
use narrows_lab::outcome::Estimate;

/// Every measure that has a value, by its name; there is one run, and so no interval.
pub fn estimates(of: impl Fn(&str) -> f64) -> Vec<(&'static str, Estimate)> {
    MEASURES
        .iter()
        .map(|m| (m.name, Estimate::symmetric(of(m.name), None)))
        .filter(|m| m.1.mean.is_finite())
        .collect()
}
