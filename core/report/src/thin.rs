//! Thinning a series for drawing: fewer points, the same picture.

/// Indices of the samples to draw, at most `limit` (but at least two), in order.
///
/// The samples between the first and the last are cut into equal spans, and each span keeps its
/// smallest and its largest value, so that no peak or drop is lost. A span without a finite value
/// keeps one sample, so that the gap stays a gap.
///
/// ```
/// use narrows_report::figure::thin;
/// let mut values = vec![1.0; 10_000];
/// values[4321] = 99.0;
/// let kept = thin(&values, 100);
/// assert!(kept.len() <= 100 && kept.contains(&4321));
/// ```
pub fn thin(values: &[f64], limit: usize) -> Vec<usize> {
    let n = values.len();
    if n <= limit.max(2) {
        return (0..n).collect();
    }
    let inner = n - 2;
    let spans = (limit.max(2) - 2) / 2;
    let mut kept = vec![0];
    for span in 0..spans {
        let from = 1 + inner * span / spans;
        let to = 1 + inner * (span + 1) / spans;
        let finite = || (from..to).filter(|&i| values[i].is_finite());
        let low = finite().min_by(|&a, &b| values[a].total_cmp(&values[b]));
        let high = finite().max_by(|&a, &b| values[a].total_cmp(&values[b]));
        match (low, high) {
            (Some(low), Some(high)) => {
                kept.push(low.min(high));
                if low != high {
                    kept.push(low.max(high));
                }
            }
            _ => kept.push(from),
        }
    }
    kept.push(n - 1);
    kept
}

#[cfg(test)]
mod tests {
    use super::thin;

    #[test]
    fn short_series_stay_whole() {
        assert_eq!(thin(&[], 10), Vec::<usize>::new());
        assert_eq!(thin(&[1.0, 2.0, 3.0], 3), [0, 1, 2]);
    }

    #[test]
    fn extremes_ends_and_gaps_stay() {
        let mut values: Vec<f64> = (0..5000).map(|i| (i % 7) as f64).collect();
        values[1234] = -50.0;
        values[2345] = 50.0;
        values[3000..3500].fill(f64::NAN);
        let kept = thin(&values, 200);
        assert!(kept.len() <= 200);
        assert!(kept.windows(2).all(|w| w[0] < w[1]));
        for i in [0, 1234, 2345, 4999] {
            assert!(kept.contains(&i), "{i} is missing");
        }
        assert!(kept.iter().any(|&i| values[i].is_nan()));
    }
}
