//! The result of a sweep in the terminal: a grid for two parameters, otherwise one line per point.

use super::report::scaled;
use narrows_lab::measure::{MEASURES, Measure};
use narrows_lab::outcome::Estimate;
use narrows_lab::sweep::SweepOutcome;
use narrows_lab::sweep::grid::Parameter;
use std::fmt::Write as _;

/// Most lines of a long table, most columns of a grid.
const LINES: usize = 60;
const COLUMNS: usize = 12;

/// The table, its heading first: a grid only where it fits into `width` columns, if a terminal has them.
pub fn table(o: &SweepOutcome<'_>, width: Option<usize>) -> String {
    let measure = &MEASURES[o.measure];
    let (unit, scale) = scaled(measure, largest(o));
    let mut out = heading(o, measure, unit);
    let varied: Vec<usize> =
        (0..o.sweep.grid.parameters.len()).filter(|p| values(o, *p) > 1).collect();
    let fits = |grid: &String| {
        width.is_none_or(|width| grid.lines().all(|line| line.chars().count() <= width))
    };
    let grid = match varied[..] {
        [rows, columns] if values(o, columns) <= COLUMNS => Some(grid(o, rows, columns, scale)),
        _ => None,
    };
    out += &grid.filter(fits).unwrap_or_else(|| long(o, &varied, scale));
    out
}

fn values(o: &SweepOutcome<'_>, parameter: usize) -> usize {
    o.sweep.grid.parameters[parameter].values.len()
}

fn cell(o: &SweepOutcome<'_>, point: usize) -> Estimate {
    o.estimates[point][o.group][o.measure]
}

fn largest(o: &SweepOutcome<'_>) -> f64 {
    let means = o.finished().map(|p| cell(o, p).mean.abs());
    means.filter(|m| m.is_finite()).fold(0.0, f64::max)
}

fn heading(o: &SweepOutcome<'_>, measure: &Measure, unit: &str) -> String {
    let s = o.sweep;
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let plural = if s.seeds == 1 { "" } else { "s" };
    let constant = s.grid.parameters.iter().filter(|p| p.values.len() == 1);
    let constant: Vec<String> = constant.map(|p| format!("{} = {}", p.name, p.values[0])).collect();
    let constant =
        if constant.is_empty() { String::new() } else { format!("; {}", constant.join(", ")) };
    format!(
        "{}: {} of {}{unit} ({}); {} seed{plural} from {}{constant}\n\n",
        o.scenario, measure.name, s.groups[o.group], measure.doc, s.seeds, s.seed
    )
}

/// Digits that three significant ones of the largest value need.
fn decimals(o: &SweepOutcome<'_>, scale: f64) -> usize {
    let most = largest(o) * scale;
    if most <= 0.0 { 0 } else { (2 - most.log10().floor() as i32).clamp(0, 6) as usize }
}

fn number(x: f64, decimals: usize) -> String {
    if !x.is_finite() {
        return "-".into();
    }
    if x.abs() >= 1e7 { format!("{x:.2e}") } else { format!("{x:.decimals$}") }
}

fn grid(o: &SweepOutcome<'_>, rows: usize, columns: usize, scale: f64) -> String {
    let row: &Parameter = &o.sweep.grid.parameters[rows];
    let column: &Parameter = &o.sweep.grid.parameters[columns];
    let digits = decimals(o, scale);
    let mut lines = vec![vec![format!("{} \\ {}", row.name, column.name)]];
    lines[0].extend(column.values.iter().cloned());
    lines.extend(row.values.iter().map(|v| vec![v.clone()]));
    for point in 0..o.sweep.points.len() {
        // In the order of the grid: rows, and columns within them.
        let at = o.sweep.grid.indices(point)[rows];
        let mean = if o.seeds(point) > 0 { cell(o, point).mean * scale } else { f64::NAN };
        lines[at + 1].push(number(mean, digits));
    }
    aligned(&lines, 1)
}

fn long(o: &SweepOutcome<'_>, varied: &[usize], scale: f64) -> String {
    let digits = decimals(o, scale);
    let parameters = &o.sweep.grid.parameters;
    let mut head: Vec<String> = varied.iter().map(|p| parameters[*p].name.clone()).collect();
    head.extend(["protocol".into(), MEASURES[o.measure].name.to_string(), String::new()]);
    let mut lines = vec![head];
    for point in o.finished().take(LINES) {
        let at = o.sweep.grid.indices(point);
        let mut line: Vec<String> =
            varied.iter().map(|p| parameters[*p].values[at[*p]].clone()).collect();
        let e = cell(o, point);
        line.push(o.sweep.points[point].groups[o.group].0.clone());
        line.push(number(e.mean * scale, digits));
        line.push(match o.deterministic[point] {
            true => "deterministic".into(),
            false => e.interval_text(|x| number(x * scale, digits)),
        });
        lines.push(line);
    }
    let mut out = aligned(&lines, varied.len() + 1);
    let more = o.finished().count().saturating_sub(LINES);
    if more > 0 {
        let _ = writeln!(out, "… and {more} more points in points.csv");
    }
    out
}

/// The first columns are aligned left, the rest right; an interval is close to its mean.
fn aligned(lines: &[Vec<String>], left: usize) -> String {
    let width = |c: usize| {
        lines.iter().filter_map(|l| l.get(c)).map(|t| t.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (c, (cell, w)) in line.iter().zip(&widths).enumerate() {
            let gap = if c == 0 { "" } else { "  " };
            let _ = match c < left {
                true => write!(text, "{gap}{cell:<w$}"),
                false => write!(text, "{gap}{cell:>w$}"),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}
