//! A finished run as JSON, on its way from the worker that simulated it to the one that makes the report.

use narrows_congestion::CONTROLLERS;
use narrows_lab::execute::{GroupValues, StoredRun};
use narrows_report::variables;
use narrows_sim::SeriesTable;
use serde::{Deserialize, Serialize};

/// Kinds of tables.
const KINDS: [&str; 3] = ["flow", "link", "group"];

/// A run; its numbers are written by their bits, so that they come out as they went in.
#[derive(Serialize, Deserialize, Debug)]
pub struct RunText {
    seed: u64,
    digest: u64,
    groups: Vec<GroupText>,
    capacity_bps: Vec<u64>,
    series: Vec<SeriesText>,
}

#[derive(Serialize, Deserialize, Debug)]
struct GroupText {
    measures: Vec<u64>,
    flows: Vec<Vec<u64>>,
}

#[derive(Serialize, Deserialize, Debug)]
struct SeriesText {
    kind: usize,
    name: String,
    group: String,
    time_s: Vec<u64>,
    columns: Vec<(String, Vec<u64>)>,
}

fn packed(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn unpacked(values: Vec<u64>) -> Vec<f64> {
    values.into_iter().map(f64::from_bits).collect()
}

impl RunText {
    /// Of a run.
    pub fn of(run: &StoredRun) -> RunText {
        let group = |g: &GroupValues| GroupText {
            measures: packed(&g.measures),
            flows: g.flows.iter().map(|f| packed(f)).collect(),
        };
        let table = |t: &SeriesTable| SeriesText {
            kind: KINDS.iter().position(|kind| *kind == t.kind).unwrap_or(0),
            name: t.name.clone(),
            group: t.group.clone(),
            time_s: packed(&t.time_s),
            columns: t.columns.iter().map(|(name, x)| ((*name).to_string(), packed(x))).collect(),
        };
        RunText {
            seed: run.seed,
            digest: run.digest,
            groups: run.groups.iter().map(group).collect(),
            capacity_bps: packed(&run.capacity_bps),
            series: run.series.iter().map(table).collect(),
        }
    }

    /// The run. Columns without a listed variable are left out.
    pub fn run(self) -> StoredRun {
        let group = |g: GroupText| GroupValues {
            measures: unpacked(g.measures),
            flows: g.flows.into_iter().map(unpacked).collect(),
        };
        let table = |t: SeriesText| SeriesTable {
            kind: KINDS.get(t.kind).copied().unwrap_or(KINDS[0]),
            name: t.name,
            group: t.group,
            time_s: unpacked(t.time_s),
            columns: t
                .columns
                .into_iter()
                .filter_map(|(name, x)| Some((listed(&name)?, unpacked(x))))
                .collect(),
        };
        StoredRun {
            seed: self.seed,
            digest: self.digest,
            groups: self.groups.into_iter().map(group).collect(),
            capacity_bps: unpacked(self.capacity_bps),
            series: self.series.into_iter().map(table).collect(),
        }
    }
}

/// The name of a column as the lists have it.
fn listed(name: &str) -> Option<&'static str> {
    let lent = || CONTROLLERS.lent().into_iter().flat_map(|e| e.variables).map(|v| v.name);
    variables::listed(name).map(|v| v.name).or_else(|| lent().find(|n| *n == name))
}
