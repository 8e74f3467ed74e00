//! Quantiles of many values in little memory: a thin face over HDR histograms.

/// Values in nanoseconds, counted with three significant digits.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    sum: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        // Two significant digits in buckets, 0.8% at worst; grows by itself.
        let counts = hdrhistogram::Histogram::new(2).expect("two digits are legal");
        Histogram { counts, sum: 0.0 }
    }
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts.saturating_record(value);
        self.sum += value as f64;
    }
    /// Counts all values of another.
    pub fn add(&mut self, other: &Histogram) {
        // Both grow by themselves, so every value fits.
        let _ = self.counts.add(&other.counts);
        self.sum += other.sum;
    }
    /// How many values.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }
    /// Exact mean; `None` if there is no value.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum / self.count() as f64)
    }
    /// Smallest value, to the histogram's precision.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.counts.min())
    }
    /// The value at quantile `q` in [0, 1].
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.counts.value_at_quantile(q))
    }
}
