//! Means over seeds: `summary.csv` and the table in the terminal.

use crate::columns::{Columns, Values};
use crate::variables::ENDS;
use narrows_lab::buffers;
use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome};
use std::fmt::Write as _;

/// One row per protocol, three columns per measure: mean and ends of the 95% interval.
pub fn means(o: &Outcome) -> Columns {
    let rows = || o.results.iter();
    let mut columns = vec![
        ("protocol".into(), Values::Text(rows().map(|r| r.protocol.clone()).collect())),
        ("group".into(), Values::Text(rows().map(|r| r.group.clone()).collect())),
        ("flows".into(), Values::Whole(rows().map(|r| r.flows as u64).collect())),
        ("seeds".into(), Values::Whole(rows().map(|r| r.seeds as u64).collect())),
    ];
    let estimates: Vec<&Estimates> = rows().map(|r| &r.measures).collect();
    add_estimates(&mut columns, &estimates);
    Columns(columns)
}

/// The same of each flow.
pub fn flows(o: &Outcome) -> Columns {
    let rows = || o.results.iter().flat_map(|r| r.per_flow.iter().map(move |f| (r, f)));
    let mut columns = vec![
        ("protocol".into(), Values::Text(rows().map(|(r, _)| r.protocol.clone()).collect())),
        ("group".into(), Values::Text(rows().map(|(r, _)| r.group.clone()).collect())),
        ("flow".into(), Values::Text(rows().map(|(_, f)| f.0.clone()).collect())),
    ];
    let estimates: Vec<&Estimates> = rows().map(|(_, f)| &f.1).collect();
    add_estimates(&mut columns, &estimates);
    Columns(columns)
}

type Estimates = Vec<(&'static str, Estimate)>;

fn add_estimates(columns: &mut Vec<(String, Values)>, rows: &[&Estimates]) {
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in rows.iter().copied().flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    for name in names {
        let of = |row: &Estimates| row.iter().find(|m| m.0 == name).map(|m| m.1);
        let mean = |row: &&Estimates| of(row).map_or(f64::NAN, |e| e.mean);
        columns.push((name.into(), Values::Number(rows.iter().map(mean).collect())));
        for (end_name, end) in ENDS {
            let value = |row: &&Estimates| of(row).and_then(|e| e.ci95()).map_or(f64::NAN, end);
            let values = Values::Number(rows.iter().map(value).collect());
            columns.push((format!("{name}_{end_name}"), values));
        }
    }
}

/// The means as `summary.csv`.
pub fn csv(o: &Outcome) -> String {
    means(o).csv()
}

/// Shortest length of names. Names are shortened to it before a column is left out.
const MIN_NAME: usize = 12;
/// Columns that a narrow table leaves out, by their heads, in this order. Intervals are named by their mean's head.
const LEFT_OUT: &[[&str; 2]] = &[
    ["sent", "again"],
    ["time-", "outs"],
    ["limited", "by"],
    ["RTT", "±"],
    ["RTT 95%", "ms"],
    ["rough-", "ness"],
    ["used", "%"],
    ["queue", "packets"],
    ["goodput", "±"],
];

/// A column: two lines of heading, and a cell.
struct SummaryColumn {
    head: [&'static str; 2],
    side: ColumnSide,
    cell: Cell,
}

type Cell = Box<dyn Fn(&ProtocolOutcome) -> String>;

/// Names to the left, numbers to the right, intervals next to their means.
#[derive(Clone, Copy, PartialEq)]
enum ColumnSide {
    Left,
    Right,
    Interval,
}

/// The table, aligned. With `width`, it has at most that many columns, and a line below lists the parts left out.
pub fn table(o: &Outcome, width: Option<usize>) -> String {
    let scale = scale(o);
    let mut columns = vec![SummaryColumn {
        head: ["", "protocol"],
        side: ColumnSide::Left,
        cell: Box::new(ProtocolOutcome::title),
    }];
    let mut add = |head, (mean, half): (Cell, Option<Cell>)| {
        columns.push(SummaryColumn { head, side: ColumnSide::Right, cell: mean });
        if let Some(cell) = half {
            columns.push(SummaryColumn { head: ["", ""], side: ColumnSide::Interval, cell });
        }
    };
    let number = |name, factor, significant, interval| {
        number(name, factor, decimals(o, name, factor, significant), interval)
    };
    let has =
        |name: &str| o.results.iter().any(|r| r.measure(name).is_some_and(|e| e.mean.is_finite()));
    if has("finished") {
        add(["complete", "in s"], number("completion_s", 1.0, 4, true));
        add(["finished", "%"], number("finished", 100.0, 3, false));
    } else {
        add(["goodput", scale.1], number("goodput_bps", 1.0 / scale.0, 4, true));
        add(["used", "%"], number("utilisation", 100.0, 3, false));
    }
    add(["lost", "%"], number("loss_rate", 100.0, 3, false));
    if has("frozen_frames") {
        add(["frozen", "%"], number("frozen_frames", 100.0, 3, false));
    }
    if has("layers_shown") {
        add(["layers", "shown"], number("layers_shown", 1.0, 3, false));
    }
    add(["RTT", "ms"], number("rtt_s_mean", 1e3, 3, true));
    add(["RTT 95%", "ms"], number("rtt_s_p95", 1e3, 3, false));
    add(["queue", "packets"], number("queue_packets_mean", 1.0, 3, false));
    add(["sent", "again"], number("retransmissions", 1.0, 3, false));
    add(["time-", "outs"], number("timeouts", 1.0, 2, false));
    if has("cwnd_limited") {
        let by = |r: &ProtocolOutcome| buffers::limited_by(r).unwrap_or("-").into();
        add(["limited", "by"], (Box::new(by), None));
    }
    if has("share") {
        add(["share", "%"], number("share", 100.0, 3, false));
    } else if o.results.iter().any(|r| r.flows > 1) {
        add(["", "Jain"], number("jain", 1.0, 3, false));
    } else {
        add(["rough-", "ness"], number("cov_1s", 1.0, 3, false));
    }
    let mut missing: Vec<&str> = Vec::new();
    let mut next = LEFT_OUT.iter();
    while width.is_some_and(|w| narrowest(&columns, &o.results) > w) {
        let Some(head) = next.next() else { break };
        missing.extend(leave_out(&mut columns, head));
    }
    let mut text = render(&columns, &o.results, width);
    if !missing.is_empty() {
        let line =
            format!("Left out for lack of space: {}; summary.csv has all.", missing.join(", "));
        text += &format!("\n{}\n", wrapped(&line, width.unwrap_or(usize::MAX)));
    }
    text
}

/// Removes the column with this head, or the interval next to it. Returns its name, if it was present.
fn leave_out(columns: &mut Vec<SummaryColumn>, head: &[&'static str; 2]) -> Option<&'static str> {
    let interval = head[1] == "±";
    let at = columns.iter().position(|c| c.head == *head || interval && c.head[0] == head[0])?;
    let is_interval = |c: Option<&SummaryColumn>| c.is_some_and(|c| c.side == ColumnSide::Interval);
    if interval {
        return is_interval(columns.get(at + 1)).then(|| {
            columns.remove(at + 1);
            if head[0] == "RTT" { "intervals of RTT" } else { "intervals of goodput" }
        });
    }
    columns.remove(at);
    if is_interval(columns.get(at)) {
        columns.remove(at);
    }
    Some(match head[0] {
        "sent" => "sent again",
        "time-" => "timeouts",
        "limited" => "limited by",
        "rough-" => "roughness",
        name => name,
    })
}

/// Smallest width of the table, with names shortened.
fn narrowest(columns: &[SummaryColumn], rows: &[ProtocolOutcome]) -> usize {
    let widths = widths(columns, &cells(columns, rows));
    numbers(columns, &widths) + widths[0].min(MIN_NAME)
}

/// Scale of rates for the whole table, so that its rows compare.
fn scale(o: &Outcome) -> (f64, &'static str) {
    let goodputs = o.results.iter().filter_map(|r| r.measure("goodput_bps")).map(|e| e.mean);
    match goodputs.fold(0.0, f64::max) {
        x if x >= 2e9 => (1e9, "Gbit/s"),
        x if x >= 1e6 => (1e6, "Mbit/s"),
        x if x >= 2e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

/// The cells of a measure, and of its interval if wanted.
fn number(
    name: &'static str,
    factor: f64,
    decimals: usize,
    interval: bool,
) -> (Cell, Option<Cell>) {
    let get = move |r: &ProtocolOutcome| r.measure(name).filter(|e| e.mean.is_finite());
    let show = move |x: f64| {
        if x.abs() >= 1e7 { format!("{x:.2e}") } else { format!("{x:.decimals$}") }
    };
    let mean: Cell = Box::new(move |r| get(r).map_or("-".into(), |e| show(e.mean * factor)));
    let half: Option<Cell> = interval.then(|| {
        Box::new(move |r: &ProtocolOutcome| {
            get(r).map_or(String::new(), |e| e.interval_text(|x| show(x * factor)))
        }) as Cell
    });
    (mean, half)
}

/// Decimals with which a column's largest number has `significant` significant digits.
fn decimals(o: &Outcome, name: &str, factor: f64, significant: i32) -> usize {
    let values = o.results.iter().filter_map(|r| r.measure(name)).map(|e| (e.mean * factor).abs());
    let most = values.filter(|x| x.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return 0;
    }
    (significant - 1 - most.log10().floor() as i32).clamp(0, 6) as usize
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Per column, the cells of all rows.
fn cells(columns: &[SummaryColumn], rows: &[ProtocolOutcome]) -> Vec<Vec<String>> {
    columns.iter().map(|c| rows.iter().map(|r| (c.cell)(r)).collect()).collect()
}

fn widths(columns: &[SummaryColumn], cells: &[Vec<String>]) -> Vec<usize> {
    let of = |(column, cells): (&SummaryColumn, &Vec<String>)| {
        let heads = column.head.iter().map(|h| h.chars().count());
        cells.iter().map(|c| c.chars().count()).chain(heads).max().unwrap_or(0)
    };
    columns.iter().zip(cells).map(of).collect()
}

/// Width of all columns but the names, with the gaps before them.
fn numbers(columns: &[SummaryColumn], widths: &[usize]) -> usize {
    let gap = |c: &SummaryColumn| if c.side == ColumnSide::Interval { 1 } else { 2 };
    columns.iter().zip(widths).skip(1).map(|(c, w)| w + gap(c)).sum()
}

fn render(columns: &[SummaryColumn], rows: &[ProtocolOutcome], width: Option<usize>) -> String {
    let mut out = String::new();
    let mut cells = cells(columns, rows);
    let mut widths = widths(columns, &cells);
    // Long names give way, so that the numbers stay on their line.
    if let Some(width) = width {
        let room = width.saturating_sub(numbers(columns, &widths)).max(MIN_NAME);
        for name in &mut cells[0] {
            *name = shortened(name, room);
        }
        widths[0] = widths[0].min(room);
    }
    let mut line = |texts: &[&str]| {
        let mut s = String::new();
        for (i, text) in texts.iter().enumerate() {
            let w = widths[i];
            let _ = match columns[i].side {
                ColumnSide::Left => write!(s, "{text:<w$}"),
                ColumnSide::Right => write!(s, "  {text:>w$}"),
                ColumnSide::Interval => write!(s, " {text:<w$}"),
            };
        }
        out.push_str(s.trim_end());
        out.push('\n');
    };
    for h in 0..2 {
        line(&columns.iter().map(|c| c.head[h]).collect::<Vec<_>>());
    }
    for r in 0..rows.len() {
        line(&cells.iter().map(|c| c[r].as_str()).collect::<Vec<_>>());
    }
    out
}

/// Text in lines of at most `most` characters.
pub fn wrapped(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let n = word.chars().count();
        if used > 0 && used + 1 + n > most {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += n;
    }
    out
}
