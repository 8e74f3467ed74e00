//! Statistics of a recorded column over a span of time.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A statistic of the samples in a span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stat {
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Mean of the samples.
    Mean,
    /// Median of the samples.
    Median,
    /// Standard deviation over mean.
    Cov,
    /// Sum of the samples.
    Sum,
    /// First sample.
    First,
    /// Last sample.
    Last,
    /// Share of samples above `level`.
    FractionAbove,
    /// Share of samples below `level`.
    FractionBelow,
    /// Time of the first sample at or above `level`, in seconds.
    TimeAbove,
    /// Time of the first sample at or below `level`, in seconds.
    TimeBelow,
    /// Longest uninterrupted time below `level`, in seconds.
    LongestBelow,
    /// Longest uninterrupted time without change, in seconds.
    LongestStill,
    /// How often the column falls by more than `level` times itself between two samples.
    Falls,
    /// Mean time between such falls, in seconds.
    MeanGap,
    /// How often the column passes `level`, up or down.
    Crossings,
    /// Mean change from sample to sample over the mean: roughness without slow swings.
    Steps,
    /// How often it changes direction; swings below the share `level` of its mean do not count.
    Turns,
    /// Last less first sample over the seconds between them: how fast a count grows.
    Rate,
    /// The most by which it grows within any `level` seconds, per second.
    Fastest,
    /// Of several tables: the smallest mean over the mean of all. 1 is an equal split.
    LeastShare,
    /// Of several tables: the largest mean of one.
    Largest,
    /// Of several tables: the smallest mean of one.
    Smallest,
}

impl Stat {
    /// Whether it speaks of a level.
    pub fn needs_level(self) -> bool {
        use Stat::*;
        matches!(
            self,
            FractionAbove
                | FractionBelow
                | TimeAbove
                | TimeBelow
                | LongestBelow
                | Falls
                | MeanGap
                | Crossings
                | Turns
                | Fastest
        )
    }
    /// Whether it compares several tables: `Quantity::compared`.
    pub fn compares(self) -> bool {
        matches!(self, Stat::LeastShare | Stat::Largest | Stat::Smallest)
    }
    /// Of these samples, equally spaced; NaN samples are left out.
    pub fn of(self, time: &[f64], values: &[f64], level: f64) -> f64 {
        let known: Vec<(f64, f64)> =
            time.iter().copied().zip(values.iter().copied()).filter(|s| s.1.is_finite()).collect();
        let n = known.len() as f64;
        if known.is_empty() {
            return f64::NAN;
        }
        let all = || known.iter().map(|s| s.1);
        let share = |test: &dyn Fn(f64) -> bool| all().filter(|v| test(*v)).count() as f64 / n;
        let when =
            |test: &dyn Fn(f64) -> bool| known.iter().find(|s| test(s.1)).map_or(f64::NAN, |s| s.0);
        let sum: f64 = all().sum();
        match self {
            Stat::Min => all().fold(f64::INFINITY, f64::min),
            Stat::Max => all().fold(f64::NEG_INFINITY, f64::max),
            Stat::Mean => sum / n,
            Stat::Median => {
                let mut sorted: Vec<f64> = all().collect();
                sorted.sort_by(f64::total_cmp);
                (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
            }
            Stat::Cov => {
                let mean = sum / n;
                (all().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt() / mean
            }
            Stat::Sum => sum,
            Stat::First => known[0].1,
            Stat::Last => known[known.len() - 1].1,
            Stat::FractionAbove => share(&|v| v > level),
            Stat::FractionBelow => share(&|v| v < level),
            Stat::TimeAbove => when(&|v| v >= level),
            Stat::TimeBelow => when(&|v| v <= level),
            Stat::LongestBelow => longest(&known, |_, now| now < level),
            Stat::LongestStill => longest(&known, |before, now| now == before),
            Stat::Falls => falls(&known, level).count() as f64,
            Stat::Rate => {
                let first = known[0];
                let last = known[known.len() - 1];
                (last.1 - first.1) / (last.0 - first.0)
            }
            Stat::Fastest => fastest(&known, level),
            Stat::Crossings => {
                known.windows(2).filter(|w| (w[0].1 > level) != (w[1].1 > level)).count() as f64
            }
            Stat::Steps => {
                let steps: f64 = known.windows(2).map(|w| (w[1].1 - w[0].1).abs()).sum();
                steps / (n - 1.0) / (sum / n)
            }
            Stat::Turns => turns(all(), level * sum / n) as f64,
            // `Quantity::compared` handles these, since they need several tables.
            Stat::LeastShare | Stat::Largest | Stat::Smallest => f64::NAN,
            Stat::MeanGap => {
                let at: Vec<f64> = falls(&known, level).collect();
                match at[..] {
                    [first, .., last] => (last - first) / (at.len() - 1) as f64,
                    _ => f64::NAN,
                }
            }
        }
    }
}

/// When a column falls by more than `level` times itself.
fn falls(samples: &[(f64, f64)], level: f64) -> impl Iterator<Item = f64> {
    samples.windows(2).filter(move |w| w[1].1 < w[0].1 * (1.0 - level)).map(|w| w[1].0)
}

/// The most by which a count grows within any `span` seconds, per second; NaN for shorter tables.
fn fastest(samples: &[(f64, f64)], span: f64) -> f64 {
    let mut first = 0;
    let growths = samples.iter().enumerate().filter_map(|(i, last)| {
        while samples[first].0 < last.0 - span - 1e-9 && first < i {
            first += 1;
        }
        let whole = last.0 - samples[first].0 > span - 1e-9;
        whole.then(|| (last.1 - samples[first].1) / span)
    });
    growths.fold(f64::NAN, f64::max)
}

/// Changes of direction, where only swings of at least `swing` count.
fn turns(values: impl Iterator<Item = f64>, swing: f64) -> usize {
    let mut count = 0;
    let mut up = None;
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for v in values {
        low = low.min(v);
        high = high.max(v);
        let turned = match up {
            Some(true) | None if v <= high - swing => Some(false),
            Some(false) | None if v >= low + swing => Some(true),
            _ => continue,
        };
        if turned != up {
            count += usize::from(up.is_some());
            up = turned;
            low = v;
            high = v;
        }
    }
    count
}

/// The longest time over which `test(before, now)` holds from sample to sample.
fn longest(samples: &[(f64, f64)], test: impl Fn(f64, f64) -> bool) -> f64 {
    let mut max = 0.0f64;
    let mut since = samples[0].0;
    let mut before = samples[0].1;
    for &(t, v) in samples {
        if !test(before, v) {
            since = t;
        }
        max = max.max(t - since);
        before = v;
    }
    max
}

/// Means over bins of `width` seconds; each bin is dated at its end.
pub fn binned(time: &[f64], values: &[f64], width: f64) -> (Vec<f64>, Vec<f64>) {
    let mut bins: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (t, v) in time.iter().zip(values) {
        if *t > 0.0 && v.is_finite() {
            // A sample describes the interval before it, so a bin includes its end.
            let bin = bins.entry((t / width - 1e-9).max(0.0) as u64).or_default();
            *bin = (bin.0 + v, bin.1 + 1.0);
        }
    }
    bins.into_iter().map(|(k, (sum, n))| ((k + 1) as f64 * width, sum / n)).unzip()
}

/// Growth of a count over bins of `width` seconds, per second; each bin is dated at its end. The first has none.
pub fn grown(time: &[f64], values: &[f64], width: f64) -> (Vec<f64>, Vec<f64>) {
    let mut last: BTreeMap<u64, f64> = BTreeMap::new();
    for (t, v) in time.iter().zip(values) {
        if *t > 0.0 && v.is_finite() {
            // A bin includes its end, as above.
            last.insert((t / width - 1e-9).max(0.0) as u64, *v);
        }
    }
    let ends: Vec<(f64, f64)> =
        last.into_iter().map(|(k, v)| ((k + 1) as f64 * width, v)).collect();
    ends.windows(2).map(|w| (w[1].0, (w[1].1 - w[0].1) / (w[1].0 - w[0].0))).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stat: Stat, values: &[f64], level: f64) -> f64 {
        let time: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
        stat.of(&time, values, level)
    }

    #[test]
    fn crossings_count_both_directions() {
        assert_eq!(of(Stat::Crossings, &[0.0, 1.0, 1.0, 0.0, f64::NAN, 0.0, 1.0], 0.5), 3.0);
        assert_eq!(of(Stat::Crossings, &[1.0, 2.0], 0.5), 0.0);
    }

    #[test]
    fn steps_see_ripples_and_not_slopes() {
        assert_eq!(of(Stat::Steps, &[8.0, 12.0, 8.0, 12.0], 0.0), 0.4);
        assert!((of(Stat::Steps, &[9.0, 10.0, 11.0], 0.0) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn count_grows_fastest_where_a_span_crosses_its_step() {
        let counts = [0.0, 1.0, 2.0, 2.0, 2.0, 9.0, 10.0];
        assert_eq!(of(Stat::Fastest, &counts, 2.0), 4.0, "8 within the last 2 s, and 7 before");
        assert!(of(Stat::Fastest, &counts, 7.0).is_nan());
    }

    #[test]
    fn growth_is_a_difference_of_the_ends_of_bins() {
        let time: Vec<f64> = (0..=8).map(|i| f64::from(i) * 0.5).collect();
        let counts = [0.0, 1.0, 4.0, 4.0, 4.0, 5.0, 5.0, 9.0, 11.0];
        assert_eq!(grown(&time, &counts, 1.0), (vec![2.0, 3.0, 4.0], vec![0.0, 1.0, 6.0]));
    }

    #[test]
    fn turns_leave_out_small_swings() {
        // Mean 10, so a swing counts from 2: up to 14, down to 6, up to 12.
        let zigzag = [8.0, 12.0, 11.0, 14.0, 9.0, 6.0, 7.0, 6.0, 12.0, 15.0];
        assert_eq!(of(Stat::Turns, &zigzag, 0.2), 2.0);
        assert_eq!(of(Stat::Turns, &zigzag, 0.05), 6.0, "and the ripples of 1");
        assert_eq!(of(Stat::Turns, &[10.0, 10.0, 10.0], 0.2), 0.0);
        assert_eq!(of(Stat::Turns, &[1.0, 5.0, 9.0], 0.2), 0.0, "a climb is no turn");
    }
}
