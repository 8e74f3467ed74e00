//! Samples over time in bounded memory: the newest unchanged, older ones merged in pairs, and those again.

use std::collections::VecDeque;

/// Default number of rows of each level.
pub const LEVEL_ROWS: usize = 1024;
/// Most levels: the oldest row of the last one stands for 2^19 samples.
const MAX_LEVELS: usize = 20;

/// How two values of a column are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// Mean, for a level such as cwnd.
    Mean,
    /// Sum, for a count per sample such as drops.
    Sum,
    /// The later value, for a running count or a state.
    Last,
    /// The larger value.
    Max,
}

impl Merge {
    /// NaN counts as absent.
    fn apply(self, a: f32, b: f32) -> f32 {
        match self {
            _ if a.is_nan() => b,
            _ if b.is_nan() => a,
            Merge::Mean => f32::midpoint(a, b),
            Merge::Sum => a + b,
            Merge::Last => b,
            Merge::Max => a.max(b),
        }
    }
}

/// Rows of the same age: times, and the values of each row in column order.
#[derive(Debug, Default)]
struct HistoryLevel {
    times: VecDeque<i64>,
    values: VecDeque<f32>,
}

/// The samples of one flow or link.
#[derive(Debug)]
pub struct SampleHistory {
    merges: Vec<Merge>,
    /// Most rows of each level.
    rows: usize,
    levels: Vec<HistoryLevel>,
    pushed: u64,
}

impl SampleHistory {
    /// Without samples; one merge per column.
    pub fn new(merges: Vec<Merge>) -> SampleHistory {
        SampleHistory::with_rows(merges, LEVEL_ROWS)
    }

    /// As [`new`](SampleHistory::new), with `rows` rows of each level, at least 2.
    pub fn with_rows(merges: Vec<Merge>, rows: usize) -> SampleHistory {
        SampleHistory {
            merges,
            rows: rows.max(2),
            levels: vec![HistoryLevel::default()],
            pushed: 0,
        }
    }

    /// Number of samples so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Adds a sample at `time_us`, not before the last one. Columns that `row` lacks are absent.
    pub fn push(&mut self, time_us: i64, row: &[f32]) {
        self.pushed += 1;
        let width = self.merges.len();
        let Some(first) = self.levels.first_mut() else { return };
        first.times.push_back(time_us);
        // Copies whole slices: this runs for every flow 60 times a second.
        first.values.extend(row.get(..width).unwrap_or(row));
        first.values.extend(std::iter::repeat_n(f32::NAN, width.saturating_sub(row.len())));
        if first.times.len() > self.rows {
            self.merge();
        }
    }

    /// Merges the two oldest rows of each level that is too long.
    fn merge(&mut self) {
        let width = self.merges.len();
        for at in 0..MAX_LEVELS {
            let Some(level) = self.levels.get_mut(at).filter(|l| l.times.len() > self.rows) else {
                return;
            };
            level.times.pop_front();
            // A merged row has the later time: counts cover the time up to it.
            let Some(time_us) = level.times.pop_front() else { return };
            let both: Vec<f32> = level.values.drain(..2 * width).collect();
            let (older, later) = both.split_at(width);
            if at + 1 == self.levels.len() && at + 1 < MAX_LEVELS {
                self.levels.push(HistoryLevel::default());
            }
            // Rows older than the last level are dropped.
            let Some(next) = self.levels.get_mut(at + 1) else { return };
            next.times.push_back(time_us);
            let pairs = self.merges.iter().zip(older.iter().zip(later));
            next.values.extend(pairs.map(|(merge, (a, b))| merge.apply(*a, *b)));
        }
    }

    /// Number of stored rows.
    pub fn len(&self) -> usize {
        self.levels.iter().map(|l| l.times.len()).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.pushed == 0
    }

    /// Number of rows after the first `seen` samples; `None` if older rows have been merged since, so that all rows are
    /// needed.
    pub fn missing(&self, seen: u64) -> Option<usize> {
        let lacking = usize::try_from(self.pushed.checked_sub(seen)?).ok()?;
        let newest = self.levels.first().map_or(0, |l| l.times.len());
        (lacking <= newest && seen > 0).then_some(lacking)
    }

    /// The times of the newest `n` rows, oldest first.
    pub fn times(&self, n: usize) -> impl Iterator<Item = i64> + '_ {
        self.newest(n).flat_map(|(level, from)| level.times.range(from..).copied())
    }

    /// A column of the newest `n` rows, oldest first.
    pub fn column(&self, column: usize, n: usize) -> impl Iterator<Item = f32> + '_ {
        let width = self.merges.len().max(1);
        self.newest(n).flat_map(move |(level, from)| {
            let from = (from * width + column).min(level.values.len());
            level.values.range(from..).step_by(width).copied()
        })
    }

    /// The levels of the newest `n` rows, each with its first row. Most updates need one row of the first level.
    fn newest(&self, n: usize) -> impl Iterator<Item = (&HistoryLevel, usize)> {
        let mut left = n;
        let mut needed = Vec::new();
        for level in &self.levels {
            let take = level.times.len().min(left);
            left -= take;
            needed.push((level, level.times.len() - take));
            if left == 0 {
                break;
            }
        }
        needed.into_iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(samples: u64) -> SampleHistory {
        let mut history =
            SampleHistory::new(vec![Merge::Mean, Merge::Sum, Merge::Last, Merge::Max]);
        for i in 0..samples {
            let x = i as f32;
            history.push(i as i64, &[7.0, 1.0, x, if i == 5 { 99.0 } else { 0.0 }]);
        }
        history
    }

    /// An hour at 60 samples a second needs a few thousand rows, for any data.
    #[test]
    fn memory_is_bounded_over_216_000_samples() {
        let history = filled(216_000);
        assert!(history.len() <= LEVEL_ROWS * 10, "{}", history.len());
        assert_eq!(history.pushed(), 216_000);
    }

    /// Merged rows keep sums of drops, peaks, means and times.
    #[test]
    fn merging_keeps_sums_peaks_means_and_order() {
        let history = filled(100_000);
        let all = history.len();
        assert_eq!(history.column(1, all).sum::<f32>(), 100_000.0, "counts");
        assert_eq!(history.column(3, all).fold(0.0, f32::max), 99.0, "a peak of long ago");
        assert!(history.column(0, all).all(|x| x == 7.0), "a constant");
        let times: Vec<i64> = history.times(all).collect();
        assert!(times.is_sorted() && times.last() == Some(&99_999));
        assert!(
            history.column(2, all).map(|x| x as i64).eq(times),
            "the last value belongs to the last time"
        );
    }

    /// A reader gets the rows that it lacks; a slow one must read all rows.
    #[test]
    fn followers_get_only_new_events() {
        let history = filled(10_000);
        assert_eq!(history.missing(9_990), Some(10));
        assert_eq!(history.times(10).collect::<Vec<_>>(), (9_990..10_000).collect::<Vec<_>>());
        assert_eq!(history.missing(10_000), Some(0));
        assert_eq!(history.missing(5_000), None, "merged since");
        assert_eq!(history.missing(0), None, "has nothing");
        assert_eq!(history.missing(10_001), None, "of another feed");
    }

    #[test]
    fn missing_values_do_not_spoil_means() {
        assert_eq!(Merge::Mean.apply(f32::NAN, 3.0), 3.0);
        assert_eq!(Merge::Sum.apply(2.0, f32::NAN), 2.0);
        let mut history = SampleHistory::new(vec![Merge::Mean; 2]);
        history.push(0, &[1.0]);
        assert!(history.column(1, 1).all(f32::is_nan));
    }
}
