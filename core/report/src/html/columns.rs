//! How the report presents measures: which ones, in which units, with how many digits.

use narrows_lab::measure::{MEASURES, Measure};
use narrows_lab::outcome::{Estimate, Outcome};

/// The measures of the table before "all measures" is selected, in this order.
const FIRST: [&str; 15] = [
    "goodput_bps",
    "share",
    "completion_s",
    "queue_packets_mean",
    "rtt_s_mean",
    "rtt_s_p95",
    "loss_rate",
    "retransmissions",
    "timeouts",
    "sndbuf_limited",
    "rwnd_limited",
    "cov_1s",
    "jain",
    "halving_s",
    "takeup_s",
];
/// Of these, the ones that are shown first only where they are not 0.
const WHERE_ANY: [&str; 2] = ["sndbuf_limited", "rwnd_limited"];

/// The measures drawn as bars, in the table's order.
const BARS: [&str; 11] = [
    "goodput_bps",
    "share",
    "completion_s",
    "queue_packets_mean",
    "rtt_s_mean",
    "rtt_s_p95",
    "loss_rate",
    "timeouts",
    "cov_1s",
    "halving_s",
    "takeup_s",
];

/// A measure as this outcome shows it: with one unit for all protocols.
#[derive(Clone, Copy)]
pub(super) struct ShownMeasure {
    /// Measure of the column.
    pub measure: &'static Measure,
    /// In the table before "all measures" is selected.
    pub first: bool,
    /// Drawn as bars.
    pub bars: bool,
    /// Unit; may be empty.
    pub unit: &'static str,
    /// Factor from the measure to the unit.
    pub scale: f64,
}

/// Measures that at least one protocol has. Fairness is shown only for several flows.
pub(super) fn shown(outcome: &Outcome) -> Vec<ShownMeasure> {
    let several = outcome.results.iter().any(|r| r.flows > 1);
    let means = |name| {
        let found = outcome.results.iter().filter_map(move |r| r.measure(name));
        found.map(|e| e.mean).filter(|m| m.is_finite())
    };
    // A link has no goodput; its throughput takes that place.
    let names = FIRST.map(|name| match name {
        "goodput_bps" if outcome.is_link() => "throughput_bps",
        name => name,
    });
    let first = |m: &&Measure| names.iter().position(|f| *f == m.name);
    let mut measures: Vec<&'static Measure> = MEASURES
        .iter()
        .filter(|m| means(m.name).next().is_some() && (several || m.name != "jain"))
        .collect();
    measures.sort_by_key(|m| first(m).unwrap_or(usize::MAX));
    let show = |measure: &'static Measure| {
        let largest = means(measure.name).map(f64::abs).fold(0.0, f64::max);
        let (unit, scale) = unit(measure.unit, largest);
        let bars =
            BARS.contains(&measure.name) || (outcome.is_link() && measure.name == "throughput_bps");
        let is_any = largest > 0.0 || !WHERE_ANY.contains(&measure.name);
        ShownMeasure { measure, first: first(&measure).is_some() && is_any, bars, unit, scale }
    };
    measures.into_iter().map(show).collect()
}

/// The unit to show and its factor, for values of a base unit up to `largest`.
pub(crate) fn unit(base: &'static str, largest: f64) -> (&'static str, f64) {
    match base {
        "bit/s" if largest >= 1e9 => ("Gbit/s", 1e-9),
        "bit/s" if largest >= 1e6 => ("Mbit/s", 1e-6),
        "bit/s" if largest >= 1e3 => ("kbit/s", 1e-3),
        "s" if largest < 2e-3 => ("µs", 1e6),
        "s" if largest < 2.0 => ("ms", 1e3),
        "fraction" => ("%", 100.0),
        "ratio" => ("", 1.0),
        base => (base, 1.0),
    }
}

/// The mean and its interval as text, in the same number of decimals: two digits of the larger part of the interval if
/// there is one, else four digits of the mean.
pub(super) fn estimate_text(estimate: Estimate, scale: f64) -> (String, Option<String>) {
    let mean = estimate.mean * scale;
    if !mean.is_finite() {
        return ("–".into(), None);
    }
    let half = estimate.half().map(|c| c * scale).filter(|c| c.is_finite());
    let digits_after = |value: f64, digits: i32| {
        let exponent = value.abs().log10().floor();
        let exponent = if exponent.is_finite() { exponent as i32 } else { 0 };
        (digits - 1 - exponent).clamp(0, 6) as usize
    };
    let decimals = match half {
        _ if mean == 0.0 && half.unwrap_or(0.0) == 0.0 => 0,
        Some(half) if half > 0.0 => digits_after(half, 2).min(digits_after(mean, 5).max(1)),
        _ if mean.fract() == 0.0 => 0,
        _ => digits_after(mean, 4),
    };
    let mean = format!("{mean:.decimals$}");
    let interval = estimate.interval_text(|x| format!("{:.decimals$}", x * scale));
    (mean, half.map(|_| interval.replace('±', "± ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_follow_the_interval() {
        let text = |mean, half| estimate_text(Estimate::symmetric(mean, half), 1.0);
        assert_eq!(text(1.23456, Some(0.0123)), ("1.235".into(), Some("± 0.012".into())));
        assert_eq!(text(167.89, Some(12.0)), ("168".into(), Some("± 12".into())));
        assert_eq!(text(1.23456, None), ("1.235".into(), None));
        assert_eq!(text(7.0, Some(0.0)), ("7".into(), Some("± 0".into())));
        assert_eq!(text(0.0, None), ("0".into(), None));
        assert_eq!(text(f64::NAN, None), ("–".into(), None));
    }
}
