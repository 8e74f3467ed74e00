//! Percentiles of delays in bounded memory, with a relative error of at most 1/64.

use narrows_base::Duration;

/// Buckets per power of two.
const EACH: u64 = 64;
/// Powers of two of microseconds; the longest delay is more than an hour.
const POWERS: u64 = 27;

/// Numbers of packets by their delay, from which quantiles are read.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for DelayHistogram {
    fn default() -> DelayHistogram {
        DelayHistogram { counts: vec![0; (EACH * POWERS) as usize], total: 0 }
    }
}

/// The bucket of a number of microseconds.
fn bucket(micros: u64) -> usize {
    let power = (micros / EACH + 1).ilog2() as u64;
    // Within a power of two all buckets have the same width; below 64 µs each is one microsecond wide.
    let low = EACH * ((1 << power) - 1);
    let index = EACH * power + (micros - low) / (1 << power);
    index.min(EACH * POWERS - 1) as usize
}

/// The lower bound of a bucket, in microseconds.
fn lower_bound(index: u64) -> u64 {
    let power = index / EACH;
    EACH * ((1 << power) - 1) + (index % EACH) * (1 << power)
}

impl DelayHistogram {
    /// Counts a delay.
    pub fn add(&mut self, delay: Duration) {
        if let Some(count) = self.counts.get_mut(bucket(delay.as_nanos() / 1000)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// The delay below which this share of all delays lies; `None` if there are no delays.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let wanted = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let index = self.counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        })?;
        Some(Duration::from_micros(lower_bound(index as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_one_part_in_64() {
        let mut histogram = DelayHistogram::default();
        assert_eq!(histogram.percentile(0.5), None);
        (1..=1000).for_each(|ms| histogram.add(Duration::from_millis(ms)));
        for share in [0.01, 0.5, 0.95, 1.0] {
            let found = histogram.percentile(share).unwrap().as_secs_f64();
            assert!((found / share - 1.0).abs() < 1.0 / 60.0, "{share}: {found}");
        }
        histogram.add(Duration::from_secs(1 << 40));
        assert!(histogram.percentile(1.0).unwrap() > Duration::from_secs(3600));
    }

    #[test]
    fn every_delay_is_in_the_bucket_that_begins_below_it() {
        for micros in (0..100_000).chain([1 << 20, 1 << 26, (1 << 30) + 7]) {
            let index = bucket(micros) as u64;
            assert!(
                lower_bound(index) <= micros && micros < lower_bound(index + 1),
                "{micros}: {index}"
            );
        }
    }
}
