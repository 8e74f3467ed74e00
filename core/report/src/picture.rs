//! Static pictures: the comparison, for pages that cannot run the report (`comparison.svg`), and columns over time, for
//! papers.

use crate::figure::{Figure, bars, lines};
use crate::variables;
use narrows_base::SpecError;
use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome};

/// Width and height of a figure in the column of a paper, in pixels of 1/96 inch: 85 mm by 58 mm.
const COLUMN: (u32, u32) = (322, 220);

/// Goodput and round-trip time side by side, with 95% intervals.
pub fn svg(outcome: &Outcome) -> String {
    let mut goodput = bars("Goodput (more is better)").x("goodput", "Mbit/s");
    let mut delay =
        bars("Round-trip time, 95th percentile (less is better)").x("round-trip time", "ms");
    for result in &outcome.results {
        goodput = goodput.bar(result.protocol.as_str(), scaled(result, "goodput_bps", 1e-6));
        delay = delay.bar(result.protocol.as_str(), scaled(result, "rtt_s_p95", 1e3));
    }
    Figure::new()
        .panel(goodput)
        .panel(delay)
        .columns(2)
        .panel_size(440, 340)
        .caption(caption(outcome))
        .svg()
}

/// A column of the time series over time, in the width of a paper's column: of each flow, or of each link or group if no
/// flow has it.
///
/// # Errors
/// No series has the column.
pub fn over_time(outcome: &Outcome, column: &str) -> Result<String, SpecError> {
    let tables = || outcome.results.iter().flat_map(|r| r.series.iter().map(move |t| (r, t)));
    let has = |kind: &&str| tables().any(|(_, t)| t.kind == *kind && t.column(column).is_some());
    let Some(kind) = ["flow", "link", "group"].into_iter().find(has) else {
        let mut names: Vec<&str> =
            tables().flat_map(|(_, t)| t.columns.iter().map(|c| c.0)).collect();
        names.sort_unstable();
        names.dedup();
        return Err(SpecError::unknown("column", column, &names));
    };
    let unit = variables::find(outcome, column).map_or("", |v| v.unit);
    let mut panel = lines("").x("time", "s").y(column, unit);
    let mut least = 0.0_f64;
    let mut most = 0.0_f64;
    for (result, table) in tables().filter(|(_, t)| t.kind == kind) {
        let Some(values) = table.column(column) else { continue };
        for value in values.iter().filter(|v| v.is_finite()) {
            least = least.min(*value);
            most = most.max(*value);
        }
        let alone = result.series.iter().filter(|t| t.kind == kind).count() == 1;
        let of_one = if alone { String::new() } else { format!(" {}", table.name) };
        let points = table.time_s.iter().copied().zip(values.iter().copied());
        panel = panel.line(format!("{}{of_one}", result.protocol), points.collect());
    }
    if most > least {
        panel = panel.y_range(least, most * 1.05);
    }
    Ok(Figure::new().panel(panel).panel_size(COLUMN.0, COLUMN.1).svg())
}

fn caption(outcome: &Outcome) -> String {
    let seeds = outcome.results.iter().map(|r| r.seeds).max().unwrap_or(0);
    format!("{}; {} s, {seeds} seeds", outcome.path, outcome.duration_s)
}

fn scaled(result: &ProtocolOutcome, name: &str, factor: f64) -> Estimate {
    let none = Estimate::symmetric(f64::NAN, None);
    result.measure(name).map_or(none, |estimate| estimate.times(factor))
}
