//! Means, quantiles and shares with 95% intervals.

use crate::stats::{self, quantile};
use narrows_base::RandomKey;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 400;

/// A value with its 95% interval.
#[derive(Clone, Copy, Debug)]
pub struct IntervalValue {
    /// The value; NaN without any figure.
    pub value: f64,
    /// Half the width of the interval; NaN if it is unknown.
    pub half: f64,
}

/// A statistic over the figures of several items.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// exp of the mean logarithm.
    GeometricMean,
    /// The value below which this share of the values is.
    Quantile(f64),
    /// The smallest value.
    Least,
    /// Number of values below this.
    CountBelow(f64),
}

impl Statistic {
    fn of(self, sorted: &[f64]) -> f64 {
        let n = sorted.len() as f64;
        match self {
            Statistic::Mean => sorted.iter().sum::<f64>() / n,
            Statistic::GeometricMean => {
                (sorted.iter().map(|x| x.max(1e-12).ln()).sum::<f64>() / n).exp()
            }
            Statistic::Quantile(q) => quantile(sorted, q),
            Statistic::Least => sorted.first().copied().unwrap_or(f64::NAN),
            Statistic::CountBelow(bound) => sorted.iter().filter(|x| **x < bound).count() as f64,
        }
    }

    /// The statistic of these values, without those that are not finite. The interval of a mean is Student's t. For
    /// other statistics it is half the central 95% of a bootstrap.
    pub fn estimate(self, values: &[f64]) -> IntervalValue {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return IntervalValue { value: f64::NAN, half: f64::NAN };
        }
        let value = self.of(&sorted);
        let half = match self {
            Statistic::Mean => stats::estimate(sorted.iter().copied()).half().unwrap_or(f64::NAN),
            Statistic::GeometricMean => {
                let logarithms = sorted.iter().map(|x| x.max(1e-12).ln());
                value * stats::estimate(logarithms).half().unwrap_or(f64::NAN)
            }
            Statistic::Least | Statistic::CountBelow(_) => f64::NAN,
            Statistic::Quantile(_) if sorted.len() < 2 => f64::NAN,
            Statistic::Quantile(_) => spread(sorted.len(), |picks| {
                let mut sample: Vec<f64> = picks.iter().map(|i| sorted[*i]).collect();
                sample.sort_by(f64::total_cmp);
                self.of(&sample)
            }),
        };
        IntervalValue { value, half }
    }
}

/// The difference of a statistic between two lists of values of the same items; items that lack either are left out.
/// The interval is a bootstrap's over the items.
pub fn paired(statistic: Statistic, a: &[f64], b: &[f64]) -> IntervalValue {
    let pairs: Vec<(f64, f64)> = (a.iter().copied().zip(b.iter().copied()))
        .filter(|(a, b)| a.is_finite() && b.is_finite())
        .collect();
    if pairs.is_empty() {
        return IntervalValue { value: f64::NAN, half: f64::NAN };
    }
    let difference = |pairs: &[(f64, f64)]| {
        let of = |side: fn(&(f64, f64)) -> f64| {
            let mut sorted: Vec<f64> = pairs.iter().map(side).collect();
            sorted.sort_by(f64::total_cmp);
            statistic.of(&sorted)
        };
        of(|p| p.0) - of(|p| p.1)
    };
    let value = difference(&pairs);
    let half = if pairs.len() < 2 {
        f64::NAN
    } else {
        spread(pairs.len(), |picks| {
            let sample: Vec<(f64, f64)> = picks.iter().map(|i| pairs[*i]).collect();
            difference(&sample)
        })
    };
    IntervalValue { value, half }
}

/// Half the central 95% of a statistic over resamples of `n` items.
fn spread(n: usize, of: impl Fn(&[usize]) -> f64) -> f64 {
    let key = RandomKey::from_seed(0).named("bootstrap");
    let mut values: Vec<f64> = (0..RESAMPLES)
        .map(|i| {
            let mut random = key.numbered(i as u64).stream();
            let picks: Vec<usize> = (0..n).map(|_| (random.unit() * n as f64) as usize).collect();
            of(&picks)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    (quantile(&values, 0.975) - quantile(&values, 0.025)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_match_their_definitions() {
        let x = [4.0, 1.0, 2.0, 3.0, f64::NAN];
        let of = |s: Statistic| s.estimate(&x).value;
        assert_eq!(of(Statistic::Mean), 2.5);
        assert_eq!(of(Statistic::Quantile(0.5)), 2.5);
        assert_eq!(of(Statistic::Least), 1.0);
        assert_eq!(of(Statistic::CountBelow(4.0)), 3.0);
        assert!((of(Statistic::GeometricMean) - 24f64.powf(0.25)).abs() < 1e-12);
        assert!(Statistic::Mean.estimate(&[]).value.is_nan());
        assert!(Statistic::Quantile(0.5).estimate(&[1.0]).half.is_nan());
    }

    #[test]
    fn a_difference_is_paired() {
        let a: Vec<f64> = (0..50).map(|i| f64::from(i % 7)).collect();
        let b: Vec<f64> = a.iter().map(|x| x - 1.0).collect();
        let d = paired(Statistic::Mean, &a, &b);
        assert!((d.value - 1.0).abs() < 1e-12 && d.half < 1e-12, "{d:?}");
        assert!(paired(Statistic::Mean, &[1.0], &[f64::NAN]).value.is_nan());
    }

    #[test]
    fn a_bootstrap_of_a_median_is_near_the_known_error() {
        let mut random = RandomKey::from_seed(1).stream();
        let x: Vec<f64> = (0..400).map(|_| random.unit()).collect();
        // The median of n uniform values has a standard error of 1 / (2 sqrt n).
        let half = Statistic::Quantile(0.5).estimate(&x).half;
        assert!((0.03..0.075).contains(&half), "{half}");
    }
}
