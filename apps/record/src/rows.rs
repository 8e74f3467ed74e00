//! A table in bounded memory: when it is full, neighbouring rows are merged.

use narrows_sim::SeriesTable;

/// Most rows: then neighbours are merged, and new rows are half as frequent.
pub const MAX_ROWS: usize = 4096;
/// Columns at most; controllers show fewer numbers.
const MAX_COLUMNS: usize = 32;
/// Between two rows at first, s.
const STEP: f64 = 0.01;
/// Distance of rows of the finished table, s, if it is long enough for a hundred of them.
const SHOWN: f64 = 0.1;

/// How two neighbours become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeRule {
    /// Mean, weighted with the rows' lengths.
    Rate,
    /// Sum over the row.
    Count,
    /// Mean of those that exist.
    Mean,
    /// The later of those that exist.
    Last,
    /// The largest of those that exist.
    Most,
}

#[derive(Debug)]
struct SeriesColumn {
    name: &'static str,
    kind: MergeRule,
    values: Vec<f64>,
}

/// Rows of named columns.
#[derive(Debug)]
pub struct Rows {
    start: f64,
    time: Vec<f64>,
    length: Vec<f64>,
    columns: Vec<SeriesColumn>,
    step: f64,
    /// When the last row was.
    told_at: f64,
}

impl Rows {
    /// From this time on, s.
    pub fn new(start: f64) -> Rows {
        let time = Vec::new();
        let length = Vec::new();
        let columns = Vec::new();
        Rows { start, time, length, columns, step: STEP, told_at: start }
    }

    /// Length of a row that ends at this time, s, if a row is due. The `last` row is always due.
    pub fn due(&self, at: f64, last: bool) -> Option<f64> {
        let length = at - self.told_at;
        // A sampler that wakes a little early is not late by a whole row.
        (length > 0.0 && (last || length >= 0.9 * self.step)).then_some(length)
    }

    /// Adds a row; columns are in the order of their first occurrence.
    pub fn add(
        &mut self,
        at: f64,
        values: impl IntoIterator<Item = (&'static str, MergeRule, f64)>,
    ) {
        let length = at - std::mem::replace(&mut self.told_at, at);
        let rows = self.time.len();
        for (name, kind, value) in values {
            let at = match self.columns.iter().position(|c| c.name == name) {
                Some(at) => at,
                None if self.columns.len() < MAX_COLUMNS => {
                    self.columns.push(SeriesColumn { name, kind, values: vec![f64::NAN; rows] });
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
        if self.time.len() >= MAX_ROWS {
            self.halve();
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
        self.step *= 2.0;
    }

    /// The table for parquet and the report.
    pub fn table(mut self, kind: &'static str, name: &str, group: &str, end: f64) -> SeriesTable {
        let shown = SHOWN.min((end - self.start) / 100.0);
        while self.step * 2.0 <= shown {
            self.halve();
        }
        let columns = self.columns.into_iter().map(|c| (c.name, c.values)).collect();
        let name = name.to_string();
        let group = group.to_string();
        SeriesTable { kind, name, group, time_s: self.time, columns }
    }
}

/// Combines values of neighbouring rows, which had these lengths.
fn joined(kind: MergeRule, values: &[f64], lengths: &[f64]) -> f64 {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    match kind {
        MergeRule::Last => finite().next_back().unwrap_or(f64::NAN),
        MergeRule::Most => finite().fold(f64::NAN, f64::max),
        MergeRule::Count => finite().sum(),
        MergeRule::Mean => match finite().count() {
            0 => f64::NAN,
            n => finite().sum::<f64>() / n as f64,
        },
        MergeRule::Rate => {
            let all: f64 = lengths.iter().sum();
            let sum: f64 = values.iter().zip(lengths).map(|(v, l)| v * l).sum();
            if all > 0.0 { sum / all } else { f64::NAN }
        }
    }
}
