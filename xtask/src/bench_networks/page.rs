//! The table in a terminal, and the file of `--json` and `--before`.

use narrows_lab::networks::scores::{self, Score};
use narrows_lab::networks::{BenchNetwork, BenchPart, IntervalValue, Results, paired};
use std::fmt::Write as _;

/// The table of all parts: a column for each protocol, then differences.
pub fn text(
    items: &[BenchNetwork],
    results: &Results,
    protocols: &[String],
    before: Option<&Results>,
) -> String {
    let mut text = String::new();
    for part in BenchPart::ALL {
        let rows = scores::of(part, items);
        if rows.is_empty() {
            continue;
        }
        let count = items.iter().filter(|i| i.part == part).count();
        let _ = write!(text, "\n{:<48}", format!("{} ({count})", part.name()));
        for column in protocols {
            let _ = write!(text, "{column:>18}");
        }
        for title in difference_titles(protocols, before) {
            let _ = write!(text, "{title:>26}");
        }
        text.push('\n');
        for row in &rows {
            let label = format!("{} ({})", row.label, row.keys.len());
            let label = if row.keys.len() == count { row.label.clone() } else { label };
            let _ = write!(text, "{label:<48}");
            for column in protocols {
                let value = row.estimate(results, column);
                let _ = write!(text, "{:>18}", written(value, row.digits, false));
            }
            for value in differences(row, results, protocols, before) {
                let _ = write!(text, "{:>26}", written(value, row.digits, true));
            }
            text.push('\n');
        }
    }
    text
}

fn difference_titles(protocols: &[String], before: Option<&Results>) -> Vec<String> {
    match before {
        Some(_) => protocols.iter().map(|p| format!("{p}: now - before")).collect(),
        None => protocols.iter().skip(1).map(|p| format!("{} - {p}", protocols[0])).collect(),
    }
}

fn differences(
    row: &Score,
    results: &Results,
    protocols: &[String],
    before: Option<&Results>,
) -> Vec<IntervalValue> {
    let of = |results: &Results, protocol: &String| row.values(results, protocol);
    let first = |p: &String| paired(row.statistic, &of(results, &protocols[0]), &of(results, p));
    match before {
        None => protocols.iter().skip(1).map(first).collect(),
        Some(before) => (protocols.iter())
            .map(|p| paired(row.statistic, &of(results, p), &of(before, p)))
            .collect(),
    }
}

fn written(value: IntervalValue, digits: usize, sign: bool) -> String {
    let IntervalValue { value, half } = value;
    match (value.is_finite(), half.is_finite()) {
        (false, _) => "-".into(),
        (true, false) if sign => format!("{value:+.digits$}"),
        (true, false) => format!("{value:.digits$}"),
        (true, true) if sign => format!("{value:+.digits$} ± {half:.digits$}"),
        (true, true) => format!("{value:.digits$} ± {half:.digits$}"),
    }
}

/// Each item in a line, with the figures of each protocol.
pub fn each(items: &[BenchNetwork], results: &Results, protocols: &[String]) -> String {
    let mut text = String::new();
    for item in items {
        let _ = writeln!(text, "{}: {} [{}]", item.key(), item.describe(), item.classes.join(", "));
        let Some(of_item) = results.get(&item.key()) else { continue };
        for (protocol, figures) in protocols.iter().filter_map(|p| Some((p, of_item.get(p)?))) {
            let shown = figures.iter().filter(|(name, _)| *name != "events");
            let list: Vec<String> = shown.map(|(name, x)| format!("{name} {x:.4}")).collect();
            let _ = writeln!(text, "    {protocol:<16} {}", list.join(", "));
        }
    }
    text
}
