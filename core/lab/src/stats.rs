//! Means over seeds and their 95% confidence intervals.

use crate::outcome::Estimate;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// Mean and half-width of the 95% confidence interval by Student's t. Values that are not finite are left out: the
/// measure does not exist in such a seed.
pub fn estimate(values: impl IntoIterator<Item = f64>) -> Estimate {
    estimate_within(values, 0.05)
}

/// As [`estimate`], with an interval that misses the mean with the probability `error`: less than 5% if the same runs
/// are tested more than once.
pub fn estimate_within(values: impl IntoIterator<Item = f64>, error: f64) -> Estimate {
    let v: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
    let n = v.len() as f64;
    if v.is_empty() {
        return Estimate::symmetric(f64::NAN, None);
    }
    // Scaled by the largest, so that no sum of squares overflows.
    let scale = v.iter().fold(0.0f64, |m, x| m.max(x.abs())).max(f64::MIN_POSITIVE);
    let mean = v.iter().map(|x| x / scale).sum::<f64>() / n;
    if v.len() == 1 {
        return Estimate::symmetric(v[0], None);
    }
    let variance = v.iter().map(|x| (x / scale - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_t(1.0 - error / 2.0, v.len() - 1) * (variance / n).sqrt();
    Estimate::symmetric(mean * scale, Some(half * scale))
}

/// The 97.5% quantile of Student's t.
pub fn student_t975(freedom: usize) -> f64 {
    student_t(0.975, freedom)
}

fn student_t(quantile: f64, freedom: usize) -> f64 {
    // The distribution exists for all degrees of freedom from one on.
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::NAN, |t| t.inverse_cdf(quantile))
}

/// The value below which the share `q` of sorted values is, interpolated; NaN without any.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let low = sorted[at.floor() as usize];
    let high = sorted[at.ceil() as usize];
    // Both may be infinite.
    if low == high { low } else { low + (at - at.floor()) * (high - low) }
}

/// Wilson's score interval of a share of `n` runs. `error` is the probability with which it may miss
/// (E. B. Wilson, Journal of the American Statistical Association 22, 1927).
pub fn wilson(share: f64, n: usize, error: f64) -> (f64, f64) {
    let z = Normal::standard().inverse_cdf(1.0 - error / 2.0);
    let n = n.max(1) as f64;
    let zz = z * z;
    let centre = (share + zz / (2.0 * n)) / (1.0 + zz / n);
    let half = z / (1.0 + zz / n) * (share * (1.0 - share) / n + zz / (4.0 * n * n)).sqrt();
    // It reaches 0 and 1 if no run or every run counts; rounding must not exceed them.
    ((centre - half).clamp(0.0, share), (centre + half).clamp(share, 1.0))
}

/// The distribution-free interval of a median: the values of rank k and n + 1 - k. k is the largest number for which
/// fewer than k of n fair coins fall heads with a probability of at most `error`/2. `None` for too few values.
pub fn median_interval(values: &[f64], error: f64) -> Option<(f64, f64)> {
    let mut v: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    let coins = Binomial::new(0.5, v.len() as u64).ok()?;
    let k = (1..=v.len() / 2).rev().find(|k| coins.cdf(*k as u64 - 1) <= error / 2.0)?;
    Some((v[k - 1], v[v.len() - k]))
}

/// Whether two means differ significantly: their difference is beyond its joint 95% interval.
pub fn differ(a: Estimate, b: Estimate) -> bool {
    (a.mean - b.mean).abs() > a.toward(b.mean).hypot(b.toward(a.mean))
}

/// Jain's index `(Σx)² / (n Σx²)`: 1 if all are equal, 1/n if one has everything.
pub fn jain(x: &[f64]) -> f64 {
    let max = x.iter().fold(0.0f64, |m, x| m.max(*x));
    if max <= 0.0 {
        return f64::NAN;
    }
    let sum: f64 = x.iter().map(|x| x / max).sum();
    let squares: f64 = x.iter().map(|x| (x / max) * (x / max)).sum();
    sum * sum / (x.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (freedom, t) in [(1, 12.706), (2, 4.303), (9, 2.262), (30, 2.042), (1000, 1.962)] {
            assert!(
                (student_t975(freedom) - t).abs() < 6e-4,
                "{freedom}: {}",
                student_t975(freedom)
            );
        }
    }

    #[test]
    fn interval_matches_the_textbook() {
        let e = estimate([4.0, 5.0, 6.0, f64::NAN]);
        assert_eq!(e.mean, 5.0);
        assert!((e.half().unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-3);
        assert_eq!(estimate([7.0]), Estimate::symmetric(7.0, None));
        assert!(estimate([]).mean.is_nan());
        assert_eq!(estimate([3.0, 3.0]).half(), Some(0.0));
    }

    #[test]
    fn shares_and_medians_have_the_textbooks_intervals() {
        // 10 of 10 runs: the lower limit is n / (n + z²).
        let (low, high) = wilson(1.0, 10, 0.05);
        assert!((low - 10.0 / (10.0 + 3.8415)).abs() < 1e-4 && high == 1.0, "{low} {high}");
        // 3 of 10: .1078 to .6032.
        let (low, high) = wilson(0.3, 10, 0.05);
        assert!((low - 0.1078).abs() < 1e-4 && (high - 0.6032).abs() < 1e-4, "{low} {high}");
        // Ten values: ranks 2 and 9 contain the median with 97.9%.
        let ten = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 30.0, 99.0];
        assert_eq!(median_interval(&ten, 0.05), Some((2.0, 30.0)));
        assert_eq!(median_interval(&ten[..5], 0.05), None);
    }

    #[test]
    fn quantile_interpolates_between_neighbours() {
        let x = [1.0, 2.0, 4.0, f64::INFINITY, f64::INFINITY];
        assert_eq!([0.0, 0.25, 0.375].map(|q| quantile(&x, q)), [1.0, 2.0, 3.0]);
        assert_eq!(quantile(&x, 0.9), f64::INFINITY);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn jain_is_one_for_equals_and_a_share_for_one() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!(jain(&[0.0, 0.0]).is_nan());
    }
}
