//! A connection's time series, in bounded memory.

use super::qlog::latest;
use super::rows::{MergeRule, Rows};
use narrows_sim::SeriesTable;
use narrows_transport::connection::Stats;

/// Bins for the coefficient of variation: 1 s, for a day at most.
const MAX_BINS: usize = 86_400;

/// The series of one connection.
#[derive(Debug)]
pub struct ConnectionSeries {
    /// When it began, s.
    pub start: f64,
    /// When it was looked at last, s.
    pub end: f64,
    /// Last statistics.
    pub last: Stats,
    rows: Rows,
    /// The figures at the last row.
    recorded: Stats,
    /// Application bytes in every second since the start.
    bins: Vec<f64>,
}

impl ConnectionSeries {
    pub fn new(start: f64) -> ConnectionSeries {
        ConnectionSeries {
            start,
            end: start,
            last: Stats::default(),
            rows: Rows::new(start),
            recorded: Stats::default(),
            bins: Vec::new(),
        }
    }

    /// Adds figures of a time, s; the `last` ones always make a row of their own.
    pub fn add(&mut self, at: f64, stats: &Stats, watched: &[(&'static str, f64)], last: bool) {
        let more = carried(stats).saturating_sub(carried(&self.last));
        let bin = (at - self.start).max(0.0) as usize;
        if bin < MAX_BINS {
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0.0);
            }
            if let Some(bin) = self.bins.get_mut(bin) {
                *bin += more as f64;
            }
        }
        self.last = *stats;
        self.end = self.end.max(at);
        if let Some(length) = self.rows.due(at, last) {
            self.row(at, length, stats, watched);
        }
    }

    fn row(&mut self, at: f64, length: f64, now: &Stats, watched: &[(&'static str, f64)]) {
        let before = std::mem::replace(&mut self.recorded, *now);
        let finite = |x: f64| if x.is_finite() && x < 1e14 { x } else { f64::NAN };
        let bits = |a: u64, b: u64| a.saturating_sub(b) as f64 * 8.0 / length;
        let count = |a: u64, b: u64| a.saturating_sub(b) as f64;
        let c = &now.counters;
        let b = &before.counters;
        let own = [
            ("cwnd", MergeRule::Mean, finite(now.window)),
            ("in_flight", MergeRule::Mean, now.flight as f64),
            ("rtt_s", MergeRule::Mean, latest(&before, now).unwrap_or(f64::NAN)),
            ("goodput_bps", MergeRule::Rate, bits(carried(now), carried(&before))),
            ("sent_bps", MergeRule::Rate, bits(now.bytes_sent, before.bytes_sent)),
            ("received_bps", MergeRule::Rate, bits(now.bytes_received, before.bytes_received)),
            (
                "pacing_bps",
                MergeRule::Mean,
                now.rate.map_or(f64::NAN, |r| finite(r.as_bps() as f64)),
            ),
            ("lost", MergeRule::Count, count(c.lost, b.lost)),
            ("retransmissions", MergeRule::Count, count(c.retransmissions, b.retransmissions)),
        ];
        let watched = watched.iter().map(|(name, value)| (*name, MergeRule::Last, *value));
        self.rows.add(at, own.into_iter().chain(watched));
    }

    /// Application bytes carried, either way.
    pub fn carried(&self) -> u64 {
        carried(&self.last)
    }

    /// Coefficient of variation of goodput over whole seconds; NaN for fewer than two.
    pub fn cov(&self) -> f64 {
        let whole = ((self.end - self.start).max(0.0) as usize).min(self.bins.len());
        let bins = self.bins.get(..whole).unwrap_or_default();
        if bins.len() < 2 {
            return f64::NAN;
        }
        let n = bins.len() as f64;
        let mean = bins.iter().sum::<f64>() / n;
        let variance = bins.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        if mean > 0.0 { variance.sqrt() / mean } else { f64::NAN }
    }

    /// The table for parquet and the report.
    pub fn table(self, name: &str, group: &str) -> SeriesTable {
        self.rows.table("flow", name, group, self.end)
    }
}

/// Application bytes of both directions: acknowledged by the peer, and received here.
fn carried(s: &Stats) -> u64 {
    s.bytes_arrived + s.bytes_taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_recording_stays_small_and_loses_no_bytes() {
        let mut series = ConnectionSeries::new(5.0);
        let mut stats = Stats::default();
        for i in 1..=100_000u64 {
            stats.bytes_arrived = i * 1000;
            stats.counters.lost = i / 10;
            series.add(5.0 + i as f64 * 0.01, &stats, &[("tear_state", i as f64)], i == 100_000);
        }
        assert!(series.cov() < 0.02, "an even stream: {}", series.cov());
        let table = series.table("one", "client");
        let rows = table.time_s.len();
        assert!(rows <= crate::rows::MAX_ROWS);
        assert!(table.columns.iter().all(|c| c.1.len() == rows));
        for (column, _) in &table.columns {
            assert!(
                narrows_report::variables::listed(column).is_some(),
                "{column} has no meaning in the list"
            );
        }
        assert_eq!(table.column("lost").unwrap().iter().sum::<f64>(), 10_000.0);
        let mut bytes = 0.0;
        let mut before = 5.0;
        for (time, rate) in table.time_s.iter().zip(table.column("goodput_bps").unwrap()) {
            bytes += rate * (time - before) / 8.0;
            before = *time;
        }
        assert!((bytes - 1e8).abs() < 1.0, "{bytes}");
        assert_eq!(table.column("tear_state").unwrap().last(), Some(&100_000.0));
    }
}
