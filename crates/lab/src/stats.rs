//! Means over seeds and their 95% confidence intervals.

use crate::outcome::Estimate;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean and half-width of the 95% confidence interval by Student's t. Values that are not finite
/// are left out: a seed in which the measure does not exist says nothing about it.
pub fn estimate(values: impl IntoIterator<Item = f64>) -> Estimate {
    let v: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
    let n = v.len() as f64;
    if v.is_empty() {
        return Estimate { mean: f64::NAN, ci95: None };
    }
    // Scaled by the largest, so that no sum of squares overflows.
    let scale = v.iter().fold(0.0f64, |m, x| m.max(x.abs())).max(f64::MIN_POSITIVE);
    let mean = v.iter().map(|x| x / scale).sum::<f64>() / n;
    if v.len() == 1 {
        return Estimate { mean: v[0], ci95: None };
    }
    let variance = v.iter().map(|x| (x / scale - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_t975(v.len() - 1) * (variance / n).sqrt();
    Estimate { mean: mean * scale, ci95: Some(half * scale) }
}

/// The 97.5% quantile of Student's t.
pub fn student_t975(freedom: usize) -> f64 {
    // 1.96 is the limit for many degrees of freedom; the distribution exists for all of them.
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(1.96, |t| t.inverse_cdf(0.975))
}

/// Whether two means are told apart: their difference is beyond its joint 95% interval.
pub fn differ(a: Estimate, b: Estimate) -> bool {
    let half = a.ci95.unwrap_or(0.0).hypot(b.ci95.unwrap_or(0.0));
    (a.mean - b.mean).abs() > half
}

/// Jain's index `(Σx)² / (n Σx²)`: 1 is equal, 1/n is all for one.
pub fn jain(x: &[f64]) -> f64 {
    let most = x.iter().fold(0.0f64, |m, x| m.max(*x));
    if most <= 0.0 {
        return f64::NAN;
    }
    let sum: f64 = x.iter().map(|x| x / most).sum();
    let squares: f64 = x.iter().map(|x| (x / most) * (x / most)).sum();
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
    fn an_interval_is_what_the_textbook_says() {
        let e = estimate([4.0, 5.0, 6.0, f64::NAN]);
        assert_eq!(e.mean, 5.0);
        assert!((e.ci95.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-3);
        assert_eq!(estimate([7.0]), Estimate { mean: 7.0, ci95: None });
        assert!(estimate([]).mean.is_nan());
        assert_eq!(estimate([3.0, 3.0]).ci95, Some(0.0));
    }

    #[test]
    fn jain_is_one_for_equals_and_a_share_for_one() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!(jain(&[0.0, 0.0]).is_nan());
    }
}
