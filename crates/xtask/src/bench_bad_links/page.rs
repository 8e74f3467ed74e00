//! The tables: on the screen, as JSON, and as a section of `docs/benchmarks.md`.

use super::{BadLinksRow, judge};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

const PAGE: &str = "docs/benchmarks.md";

/// An earlier run's medians.
pub type Before = Map<String, Value>;

fn key(row: &BadLinksRow) -> String {
    format!("{}: {}", row.cell.table, row.cell.name)
}

/// One line per cell and protocol.
pub fn text(rows: &[BadLinksRow], protocols: &[String], before: Option<&Before>) -> String {
    let mut text = String::new();
    let (mut met, mut all) = (0, 0);
    for row in rows {
        for protocol in protocols {
            let mut line = format!("{:<48} {protocol:<10}", key(row));
            for goal in judged(row, protocol, before) {
                let JudgedGoal { name, value, was, bound, good } = goal;
                let was = was.map_or(String::new(), |x| format!(" was {x}"));
                let mark = if good { "ok" } else { "MISSED" };
                let _ = write!(line, "  {name} {value}{was} ({bound}) {mark}");
                (met, all) = (met + u32::from(good), all + 1);
            }
            let _ = writeln!(text, "{line}");
        }
    }
    let _ = writeln!(text, "{met} of {all} goals met");
    text
}

/// A goal with its figure, as text.
struct JudgedGoal {
    name: &'static str,
    value: String,
    was: Option<String>,
    bound: String,
    good: bool,
}

fn judged(row: &BadLinksRow, protocol: &str, before: Option<&Before>) -> Vec<JudgedGoal> {
    let of = |goal| {
        let (value, bound, good) = judge(goal, protocol, &row.medians);
        let (figure, name) = (goal.figure(), goal.figure().name());
        let earlier = || before?.get(&key(row))?.get(protocol)?.get(name)?.as_f64();
        let was = earlier().map(|x| figure.text(x));
        JudgedGoal { name, value: figure.text(value), was, bound, good }
    };
    row.cell.goals.iter().map(of).collect()
}

/// The medians as a file keeps them, for `--before`.
pub fn kept(rows: &[BadLinksRow]) -> Before {
    rows.iter().map(|r| (key(r), json!(r.medians))).collect()
}

/// Writes the section; the rest of the page stays.
pub fn write(
    rows: &[BadLinksRow],
    protocols: &[String],
    before: Option<&Before>,
    seeds: u64,
) -> Result<(), String> {
    crate::section::write(PAGE, "bad links", &section(rows, protocols, before, seeds))
}

fn section(
    rows: &[BadLinksRow],
    protocols: &[String],
    before: Option<&Before>,
    seeds: u64,
) -> String {
    let mut text = format!(
        "## Bad links\n\nSimulated medians over {seeds} seeds of {}. Goals that are missed stand beside the figures; `cargo xtask bench bad-links`\n\
(`--filter`, `--protocols`, `--seeds`, `--json FILE`) prints all of them, and with `--write` this section. `--before FILE`\n\
puts an earlier run's figures before the arrows.\n\
\n\
- *rate*: goodput over the capacity for application bytes, losses subtracted\n\
- *wire*: bytes offered to the link per delivered application byte, times 1 - loss\n\
- *queue*: time to send the queued packets, averaged over time\n\
- *theta*: share of the competing flows\n\
",
        protocols.join(", ")
    );
    let mut table = "";
    for row in rows {
        if row.cell.table != table {
            table = row.cell.table;
            let _ = write!(text, "\n### {}\n\n| cell | figures |\n|---|---|\n", heading(table));
        }
        for protocol in protocols {
            let figures = judged(row, protocol, before).into_iter().map(|goal| {
                let JudgedGoal { name, value, was, bound, good } = goal;
                let was = was.map_or(String::new(), |x| format!("{x} → "));
                let mark = if good { String::new() } else { format!(" (**missed**: {bound})") };
                format!("{name} {was}{value}{mark}")
            });
            let figures: Vec<String> = figures.collect();
            let of = if protocols.len() > 1 { format!(", {protocol}") } else { String::new() };
            let _ = writeln!(text, "| {}{of} | {} |", row.cell.name, figures.join(", "));
        }
    }
    text.push('\n');
    text
}

fn heading(table: &str) -> String {
    let mut letters = table.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}
