//! The statistics that the estimates need: intervals of means and shares, and lines.

/// A value and its 95% confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ConfidenceInterval {
    /// Point estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite if only a lower bound was measured.
    pub high: f64,
}

impl ConfidenceInterval {
    /// No less than this.
    pub fn at_least(value: f64) -> ConfidenceInterval {
        ConfidenceInterval { value, low: value, high: f64::INFINITY }
    }
    /// The exact value.
    pub fn exactly(value: f64) -> ConfidenceInterval {
        ConfidenceInterval { value, low: value, high: value }
    }
    /// Whether the truth can be this.
    pub fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }
    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> ConfidenceInterval {
        ConfidenceInterval { value: self.value * by, low: self.low * by, high: self.high * by }
    }
}

/// Of the normal distribution.
const Z: f64 = 1.96;

/// Student's t for 95%, by degrees of freedom from 1.
const T: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];

/// A measured value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredSample {
    pub value: f64,
    pub weight: f64,
    /// Its standard error, estimated from this sample alone.
    pub error: f64,
}

/// With fewer samples, their scatter is less reliable than their own errors.
const FEW: usize = 3;
/// Neighbouring errors are correlated: a line's own error is too small by about this factor.
const ALIKE: f64 = 2.0;

/// Mean of samples, and its interval; no narrower than `floor` of the mean.
pub(crate) fn mean(samples: &[MeasuredSample], floor: f64) -> Option<ConfidenceInterval> {
    let all: f64 = samples.iter().map(|s| s.weight).sum();
    if samples.is_empty() || all <= 0.0 {
        return None;
    }
    let value = samples.iter().map(|s| s.value * s.weight).sum::<f64>() / all;
    let half = if samples.len() < FEW {
        let largest = samples.iter().map(|s| s.error).fold(0.0, f64::max);
        let apart = samples.iter().map(|s| (s.value - value).abs()).fold(0.0, f64::max);
        (Z * ALIKE * largest).max(2.0 * apart).max(2.0 * floor * value)
    } else {
        let off = |s: &MeasuredSample| s.weight * s.weight * (s.value - value) * (s.value - value);
        let n = samples.len() as f64;
        let error = (samples.iter().map(off).sum::<f64>() * n / (n - 1.0)).sqrt() / all;
        T.get(samples.len() - 2).copied().unwrap_or(2.1) * error
    };
    let half = half.max(floor * value);
    Some(ConfidenceInterval { value, low: value - half, high: value + half })
}

/// Wilson's interval of a share: `hits` of `n`, which is below the number of counted packets if neighbours are
/// correlated.
pub(crate) fn wilson(hits: f64, n: f64) -> ConfidenceInterval {
    if n <= 0.0 {
        return ConfidenceInterval { value: 0.0, low: 0.0, high: 1.0 };
    }
    let p = hits / n;
    let z2 = Z * Z;
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
    let low = if hits > 0.0 { (middle - half).max(0.0) } else { 0.0 };
    ConfidenceInterval { value: p, low, high: (middle + half).min(1.0) }
}

/// A line by least squares, and the standard error of its slope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegressionLine {
    pub slope: f64,
    pub slope_error: f64,
}

pub(crate) fn least_squares(points: &[(usize, f64)]) -> Option<RegressionLine> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean_x = points.iter().map(|p| p.0 as f64).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let mut xx = 0.0;
    let mut xy = 0.0;
    let mut yy = 0.0;
    for (x, y) in points {
        let dx = *x as f64 - mean_x;
        let dy = y - mean_y;
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    if xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let rest = (yy - slope * xy).max(0.0);
    Some(RegressionLine { slope, slope_error: (rest / (n - 2.0) / xx).sqrt() })
}

/// The quantile `q` of the values, which need not be in order.
pub(crate) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (q * (sorted.len().max(1) - 1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::RandomKey;

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let mut stream = RandomKey::from_seed(1).stream();
        let mut shares = 0;
        let mut means = 0;
        for _ in 0..2000 {
            let hits = (0..500).filter(|_| stream.chance(0.02)).count();
            shares += usize::from(wilson(hits as f64, 500.0).holds(0.02));
            let mut draw = || (0..12).map(|_| stream.unit()).sum::<f64>();
            let samples: Vec<MeasuredSample> =
                (0..5).map(|_| MeasuredSample { value: draw(), weight: 1.0, error: 0.0 }).collect();
            means += usize::from(mean(&samples, 0.0).unwrap().holds(6.0));
        }
        assert!((1850..=1960).contains(&shares), "{shares}");
        assert!((1860..=1940).contains(&means), "{means}");
    }

    #[test]
    fn a_line_is_found_in_noise() {
        let mut stream = RandomKey::from_seed(2).stream();
        let points: Vec<(usize, f64)> =
            (0..200).map(|i| (i, 3.0 + 0.5 * i as f64 + stream.uniform(-1.0, 1.0))).collect();
        let line = least_squares(&points).unwrap();
        assert!((line.slope - 0.5).abs() < 4.0 * line.slope_error, "{line:?}");
        assert!(line.slope_error < 0.002, "{line:?}");
        assert!(least_squares(&points[..2]).is_none());
    }
}
