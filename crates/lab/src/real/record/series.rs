//! A connection's figures over time, in bounded memory.

use super::qlog::latest;
use narrows_flow::connection::Stats;
use narrows_sim::Table;

/// Rows at most: then neighbours become one, and rows come half as often.
const ROWS_MOST: usize = 4096;
/// Of one connection; controllers show fewer numbers.
const COLUMNS_MOST: usize = 32;
/// Between two rows at first, s.
const STEP: f64 = 0.01;
/// Rows of the finished table are so far apart, if it is long enough for a hundred of them, s.
const SHOWN: f64 = 0.1;
/// Bins for the coefficient of variation: 1 s, for a day at most.
const BINS_MOST: usize = 86_400;

/// How two neighbours become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Mean, weighted with the rows' lengths.
    Rate,
    /// Sum.
    Count,
    /// Mean of those that exist.
    Mean,
    /// The later of those that exist.
    Last,
}

#[derive(Debug)]
struct Column {
    name: &'static str,
    kind: Kind,
    values: Vec<f64>,
}

/// The series of one connection.
#[derive(Debug)]
pub struct Series {
    /// When it began, s.
    pub start: f64,
    /// When it was looked at last, s.
    pub end: f64,
    /// The last figures.
    pub last: Stats,
    time: Vec<f64>,
    length: Vec<f64>,
    columns: Vec<Column>,
    step: f64,
    /// The figures at the last row.
    told: Stats,
    told_at: f64,
    /// Application bytes in every second since the start.
    bins: Vec<f64>,
}

impl Series {
    pub fn new(start: f64) -> Series {
        Series {
            start,
            end: start,
            last: Stats::default(),
            time: Vec::new(),
            length: Vec::new(),
            columns: Vec::new(),
            step: STEP,
            told: Stats::default(),
            told_at: start,
            bins: Vec::new(),
        }
    }

    /// Figures at a time, s; the `last` ones make a row of their own however soon they come.
    pub fn add(&mut self, at: f64, stats: &Stats, watched: &[(&'static str, f64)], last: bool) {
        let more = carried(stats).saturating_sub(carried(&self.last));
        let bin = (at - self.start).max(0.0) as usize;
        if bin < BINS_MOST {
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0.0);
            }
            if let Some(bin) = self.bins.get_mut(bin) {
                *bin += more as f64;
            }
        }
        (self.last, self.end) = (*stats, self.end.max(at));
        let length = at - self.told_at;
        // A sampler that wakes a little early is not late by a whole row.
        if length <= 0.0 || (length < 0.9 * self.step && !last) {
            return;
        }
        self.row(at, length, stats, watched);
        if self.time.len() >= ROWS_MOST {
            self.halve();
            self.step *= 2.0;
        }
    }

    fn row(&mut self, at: f64, length: f64, now: &Stats, watched: &[(&'static str, f64)]) {
        let before = std::mem::replace(&mut self.told, *now);
        self.told_at = at;
        let finite = |x: f64| if x.is_finite() && x < 1e14 { x } else { f64::NAN };
        let bits = |a: u64, b: u64| a.saturating_sub(b) as f64 * 8.0 / length;
        let count = |a: u64, b: u64| a.saturating_sub(b) as f64;
        let (c, b) = (&now.counters, &before.counters);
        let own = [
            ("cwnd", Kind::Mean, finite(now.window)),
            ("in_flight", Kind::Mean, now.flight as f64),
            ("rtt_s", Kind::Mean, latest(&before, now).unwrap_or(f64::NAN)),
            ("goodput_bps", Kind::Rate, bits(carried(now), carried(&before))),
            ("sent_bps", Kind::Rate, bits(now.bytes_sent, before.bytes_sent)),
            ("received_bps", Kind::Rate, bits(now.bytes_received, before.bytes_received)),
            ("pacing_bps", Kind::Mean, now.rate.map_or(f64::NAN, |r| finite(r.as_bps() as f64))),
            ("lost", Kind::Count, count(c.lost, b.lost)),
            ("retransmissions", Kind::Count, count(c.retransmissions, b.retransmissions)),
        ];
        let rows = self.time.len();
        let watched = watched.iter().map(|(name, value)| (*name, Kind::Last, *value));
        for (name, kind, value) in own.into_iter().chain(watched) {
            let at = match self.columns.iter().position(|c| c.name == name) {
                Some(at) => at,
                None if self.columns.len() < COLUMNS_MOST => {
                    self.columns.push(Column { name, kind, values: vec![f64::NAN; rows] });
                    self.columns.len() - 1
                }
                None => continue,
            };
            // A name shown twice keeps its first value.
            if let Some(column) = self.columns.get_mut(at).filter(|c| c.values.len() == rows) {
                column.values.push(value);
            }
        }
        self.time.push(at);
        self.length.push(length);
        for column in &mut self.columns {
            column.values.resize(rows + 1, f64::NAN);
        }
    }

    /// Makes one row of every two.
    fn halve(&mut self) {
        for column in &mut self.columns {
            let pairs = column.values.chunks(2).zip(self.length.chunks(2));
            column.values = pairs.map(|(v, l)| joined(column.kind, v, l)).collect();
        }
        self.time = self.time.chunks(2).filter_map(|t| t.last().copied()).collect();
        self.length = self.length.chunks(2).map(|l| l.iter().sum()).collect();
    }

    /// Application bytes carried, either way.
    pub fn carried(&self) -> u64 {
        carried(&self.last)
    }

    /// Mean and standard deviation of goodput over whole seconds, bytes; none with fewer than two.
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
    pub fn table(mut self, name: &str, group: &str) -> Table {
        let shown = SHOWN.min((self.end - self.start) / 100.0);
        while self.step * 2.0 <= shown {
            self.halve();
            self.step *= 2.0;
        }
        let columns = self.columns.into_iter().map(|c| (c.name, c.values)).collect();
        let (name, group) = (name.to_string(), group.to_string());
        Table { kind: "flow", name, group, time_s: self.time, columns }
    }
}

/// Application bytes that arrived there and came here.
fn carried(s: &Stats) -> u64 {
    s.bytes_arrived + s.bytes_taken
}

/// One value of one or two neighbours, which lasted so long.
fn joined(kind: Kind, values: &[f64], lengths: &[f64]) -> f64 {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    match kind {
        Kind::Last => finite().next_back().unwrap_or(f64::NAN),
        Kind::Count => finite().sum(),
        Kind::Mean => match finite().count() {
            0 => f64::NAN,
            n => finite().sum::<f64>() / n as f64,
        },
        Kind::Rate => {
            let all: f64 = lengths.iter().sum();
            let sum: f64 = values.iter().zip(lengths).map(|(v, l)| v * l).sum();
            if all > 0.0 { sum / all } else { f64::NAN }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_recording_stays_small_and_loses_no_bytes() {
        let mut series = Series::new(5.0);
        let mut stats = Stats::default();
        for i in 1..=100_000u64 {
            stats.bytes_arrived = i * 1000;
            stats.counters.lost = i / 10;
            series.add(5.0 + i as f64 * 0.01, &stats, &[("phase", i as f64)], i == 100_000);
        }
        assert!(series.time.len() <= ROWS_MOST);
        assert!(series.cov() < 0.02, "an even stream: {}", series.cov());
        let table = series.table("one", "client");
        let rows = table.time_s.len();
        assert!(table.columns.iter().all(|c| c.1.len() == rows));
        assert_eq!(table.column("lost").unwrap().iter().sum::<f64>(), 10_000.0);
        let (mut bytes, mut before) = (0.0, 5.0);
        for (time, rate) in table.time_s.iter().zip(table.column("goodput_bps").unwrap()) {
            bytes += rate * (time - before) / 8.0;
            before = *time;
        }
        assert!((bytes - 1e8).abs() < 1.0, "{bytes}");
        assert_eq!(table.column("phase").unwrap().last(), Some(&100_000.0));
    }
}
