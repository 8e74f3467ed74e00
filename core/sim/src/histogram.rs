//! Quantiles of many values in bounded memory: a thin wrapper of HDR histograms.

/// Values in nanoseconds, counted with three significant digits.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Allocated at the first value, since it takes 16 kB.
    counts: Option<hdrhistogram::Histogram<u64>>,
    sum: f64,
    min: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: None, sum: 0.0, min: u64::MAX }
    }
}

#[cold]
fn empty() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new(3).expect("three digits are legal")
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // Grows by itself, so every value fits.
        let _ = self.counts.get_or_insert_with(empty).record(value);
        self.sum += value as f64;
        self.min = self.min.min(value);
    }
    /// Adds all values of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        // Both grow by themselves, so every value fits.
        if let Some(more) = &other.counts {
            let _ = self.counts.get_or_insert_with(empty).add(more);
        }
        self.sum += other.sum;
        self.min = self.min.min(other.min);
    }
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(0, hdrhistogram::Histogram::len)
    }
    /// Exact mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum / self.count() as f64)
    }
    /// Exact smallest value; `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }
    /// The value at quantile `q` in [0, 1]; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let counts = self.counts.as_ref().filter(|c| !c.is_empty())?;
        Some(counts.value_at_quantile(q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits_and_the_mean_exactly() {
        let mut a = Histogram::default();
        let mut b = Histogram::default();
        assert_eq!((a.min(), a.mean(), a.quantile(0.5)), (None, None, None));
        for ms in 1..=1000u64 {
            let half = if ms % 2 == 0 { &mut a } else { &mut b };
            half.record(ms * 1_000_000);
        }
        a.add(&b);
        assert_eq!((a.count(), a.min()), (1000, Some(1_000_000)));
        assert_eq!(a.mean(), Some(500_500_000.0));
        let p95 = a.quantile(0.95).unwrap() as f64;
        assert!((p95 / 950e6 - 1.0).abs() < 0.001, "{p95}");
    }
}
