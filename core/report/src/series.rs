//! `series.parquet` (or `.csv`): all time series of an outcome, for pandas, polars, DuckDB or R.
//!
//! One row per protocol, flow or link, and sample time; one column per variable, empty where a
//! variable does not apply:
//!
//! ```text
//! protocol  kind  name    group  time_s  cwnd  ssthresh  …  queue  drops
//! reno      flow  reno-0  reno   0.1     4.0             …
//! reno      link  1>2            0.1                     …  0      0
//! ```
//!
//! Rows this wide need no pivot, store each time once, and in Parquet an empty column costs a few bytes. Units and
//! meanings of the columns are in Arrow's schema (`pyarrow.parquet.read_schema`). The exact command, the first seed and
//! the version are in the file's key-value metadata.

use crate::columns::{Columns, Values};
use narrows_lab::outcome::{Outcome, ProtocolOutcome};
use narrows_sim::SeriesTable;

/// The file's name: Parquet where that is built in.
pub const SERIES_FILE: &str = match cfg!(feature = "parquet") {
    true => "series.parquet",
    false => "series.csv",
};

/// The columns before the variables; those before `time_s` are texts.
const FIXED: [&str; 5] = ["protocol", "kind", "name", "group", "time_s"];

/// All series of the outcome as one table.
pub fn table(outcome: &Outcome) -> Columns {
    let tables = || outcome.results.iter().flat_map(|r| r.series.iter().map(move |t| (r, t)));
    let text = |of: fn((&ProtocolOutcome, &SeriesTable)) -> String| {
        let repeated = tables().flat_map(|(r, t)| std::iter::repeat_n(of((r, t)), t.time_s.len()));
        Values::Text(repeated.collect())
    };
    let times = tables().flat_map(|(_, t)| t.time_s.iter().copied()).collect();
    let fixed: [Values; 5] = [
        text(|(r, _)| r.protocol.clone()),
        text(|(_, t)| t.kind.to_string()),
        text(|(_, t)| t.name.clone()),
        text(|(_, t)| t.group.clone()),
        Values::Number(times),
    ];
    let mut columns: Vec<_> = FIXED.iter().map(ToString::to_string).zip(fixed).collect();
    for variable in variables(outcome) {
        let values = tables().flat_map(|(_, t)| {
            let column = t.column(variable).unwrap_or(&[]);
            (0..t.time_s.len()).map(|row| column.get(row).copied().unwrap_or(f64::NAN))
        });
        columns.push((variable.to_string(), Values::Number(values.collect())));
    }
    Columns(columns)
}

/// Command, seed and version that reproduce the numbers, for a file's metadata.
pub fn about(outcome: &Outcome) -> [(&'static str, String); 4] {
    [
        ("narrows.command", outcome.command_line.clone()),
        ("narrows.seed", outcome.seed.to_string()),
        ("narrows.version", crate::VERSION.to_string()),
        ("narrows.link", outcome.link.clone()),
    ]
}

/// All variables, in the order in which they first occur.
fn variables(outcome: &Outcome) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (name, _) in outcome.results.iter().flat_map(|r| &r.series).flat_map(|t| &t.columns) {
        if !found.contains(name) && !FIXED.contains(name) {
            found.push(*name);
        }
    }
    found
}
