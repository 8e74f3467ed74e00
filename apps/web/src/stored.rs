//! A finished run as text, on its way from the worker that simulated it to the one that makes the report: words
//! separated by commas. Numbers are written by their bits, so that they are read as they were.

use narrows_congestion::CONTROLLERS;
use narrows_lab::execute::{GroupValues, StoredRun};
use narrows_report::variables;
use narrows_sim::SeriesTable;
use std::fmt::Write as _;
use std::str::Split;

/// Kinds of tables.
const KINDS: [&str; 3] = ["flow", "link", "group"];

/// The text of a run.
pub fn text(run: &StoredRun) -> String {
    let mut out = String::new();
    number(&mut out, run.seed);
    number(&mut out, run.digest);
    number(&mut out, run.groups.len() as u64);
    for group in &run.groups {
        list(&mut out, &group.measures);
        number(&mut out, group.flows.len() as u64);
        group.flows.iter().for_each(|flow| list(&mut out, flow));
    }
    list(&mut out, &run.capacity_bps);
    number(&mut out, run.series.len() as u64);
    for table in &run.series {
        let _ = write!(out, "{},{},{},", table.kind, table.name, table.group);
        list(&mut out, &table.time_s);
        number(&mut out, table.columns.len() as u64);
        for (name, values) in &table.columns {
            let _ = write!(out, "{name},");
            list(&mut out, values);
        }
    }
    out
}

fn number(out: &mut String, number: u64) {
    let _ = write!(out, "{number:x},");
}

fn list(out: &mut String, values: &[f64]) {
    number(out, values.len() as u64);
    values.iter().for_each(|value| number(out, value.to_bits()));
}

/// The run of a text; `None` of one that [`text`] did not write. Columns without a listed variable are left out.
pub fn run(text: &str) -> Option<StoredRun> {
    let mut words = Words(text.split(','));
    let seed = words.number()?;
    let digest = words.number()?;
    let groups = words.each(|words| {
        let measures = words.list()?;
        let flows = words.each(Words::list)?;
        Some(GroupValues { measures, flows })
    })?;
    let capacity_bps = words.list()?;
    let series = words.each(|words| {
        let kind = words.word()?;
        let kind = KINDS.into_iter().find(|k| *k == kind)?;
        let name = words.word()?.to_string();
        let group = words.word()?.to_string();
        let time_s = words.list()?;
        let columns = words.each(|words| Some((words.word()?, words.list()?)))?;
        let listed = |(name, values): (&str, Vec<f64>)| Some((listed(name)?, values));
        let columns = columns.into_iter().filter_map(listed).collect();
        Some(SeriesTable { kind, name, group, time_s, columns })
    })?;
    Some(StoredRun { seed, digest, groups, capacity_bps, series })
}

struct Words<'a>(Split<'a, char>);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    fn number(&mut self) -> Option<u64> {
        u64::from_str_radix(self.word()?, 16).ok()
    }

    /// As many as the next number says.
    fn each<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(read(self)?);
        }
        Some(all)
    }

    fn list(&mut self) -> Option<Vec<f64>> {
        self.each(|words| words.number().map(f64::from_bits))
    }
}

/// The name of a column as the lists have it.
fn listed(name: &str) -> Option<&'static str> {
    let lent = || CONTROLLERS.lent().into_iter().flat_map(|e| e.variables).map(|v| v.name);
    variables::listed(name).map(|v| v.name).or_else(|| lent().find(|n| *n == name))
}
