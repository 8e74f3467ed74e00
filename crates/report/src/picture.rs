//! The comparison as one static picture, for pages that cannot run the report: `comparison.svg`.

use crate::figure::{Figure, bars};
use narrows_lab::outcome::{Outcome, ProtocolOutcome};

/// Goodput and round-trip time side by side, with 95% intervals.
pub fn svg(outcome: &Outcome) -> String {
    let mut goodput = bars("Goodput (more is better)").x("goodput", "Mbit/s");
    let mut delay =
        bars("Round-trip time, 95th percentile (less is better)").x("round-trip time", "ms");
    for result in &outcome.results {
        let (value, half) = scaled(result, "goodput_bps", 1e-6);
        goodput = goodput.bar(result.protocol.as_str(), value, half);
        let (value, half) = scaled(result, "rtt_s_p95", 1e3);
        delay = delay.bar(result.protocol.as_str(), value, half);
    }
    Figure::new()
        .panel(goodput)
        .panel(delay)
        .columns(2)
        .panel_size(440, 340)
        .caption(caption(outcome))
        .svg()
}

fn caption(outcome: &Outcome) -> String {
    let seeds = outcome.results.iter().map(|r| r.seeds).max().unwrap_or(0);
    format!("{}; {} s, {seeds} seeds", outcome.path, outcome.duration_s)
}

fn scaled(result: &ProtocolOutcome, name: &str, factor: f64) -> (f64, Option<f64>) {
    let Some(estimate) = result.measure(name) else { return (f64::NAN, None) };
    (estimate.mean * factor, estimate.ci95.map(|half| half * factor))
}
