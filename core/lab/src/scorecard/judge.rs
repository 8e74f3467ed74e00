//! Decides whether a figure is better or worse than Reno's and CUBIC's.

use crate::stats::estimate;

/// Relative differences up to this would not be noticed by a user.
const NEGLIGIBLE: f64 = 0.05;

/// A figure's rank among those of today's standards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Judgement {
    /// Better than both.
    Better,
    /// Not worse than the worse of the two, and not better than both.
    Alike,
    /// Worse than both.
    Worse,
    /// There is no measured value.
    Unknown,
}

impl Judgement {
    /// Text in tables.
    pub fn name(self) -> &'static str {
        match self {
            Judgement::Better => "better",
            Judgement::Alike => "alike",
            Judgement::Worse => "WORSE",
            Judgement::Unknown => "-",
        }
    }
}

/// Compares values by protocol (the controller, Reno, CUBIC, …) and seed. Two protocols differ if their differences
/// seed by seed have a mean beyond its 95% interval, and by more than a twentieth.
pub fn judge(values: &[Vec<f64>; 4], more_is_better: bool) -> Judgement {
    let against = |other: usize| -> Option<i8> {
        let pairs = values[0].iter().zip(&values[other]);
        let differences: Vec<f64> =
            pairs.map(|(a, b)| if more_is_better { a - b } else { b - a }).collect();
        let d = estimate(differences);
        let large = |v: &[f64]| estimate(v.iter().copied()).mean.abs();
        let scale = large(&values[0]).max(large(&values[other]));
        if !d.mean.is_finite() {
            return None;
        }
        let is_clear = d.mean.abs() > d.toward(0.0) && d.mean.abs() > NEGLIGIBLE * scale;
        Some(if is_clear { d.mean.signum() as i8 } else { 0 })
    };
    match (against(1), against(2)) {
        (Some(1), Some(1)) => Judgement::Better,
        (Some(-1), Some(-1)) => Judgement::Worse,
        (None, _) | (_, None) => Judgement::Unknown,
        _ => Judgement::Alike,
    }
}
