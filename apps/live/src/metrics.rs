//! Counters for Prometheus, in its text format 0.0.4. Labels come from this program or its user, never from a peer, so
//! that peers cannot add series.

pub mod endpoint;
pub mod link;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// A part of the command that has metrics.
pub trait MetricSource: Send + Sync {
    /// Adds its current values.
    fn write(&self, text: &mut Text);
}

/// Prometheus types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// A value that never falls while the process runs. Its name ends in `_total`.
    Counter,
    /// Any other value.
    Gauge,
}

/// The text of an answer.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// Begins a metric; its samples follow.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) -> Samples<'_> {
        let (word, suffix) = match kind {
            MetricKind::Counter => ("counter", "_total"),
            MetricKind::Gauge => ("gauge", ""),
        };
        let name = format!("narrows_{name}{suffix}");
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {word}");
        Samples { text: self, name }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.0
    }
}

/// The samples of one metric.
pub struct Samples<'t> {
    text: &'t mut Text,
    name: String,
}

impl Samples<'_> {
    /// Adds a value with these labels. A value that is not finite is left out.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let escaped =
            |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text.0, "{}{labels} {value}", self.name);
    }
}

/// A counter of events by labels with fixed values.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    values: Mutex<BTreeMap<Vec<&'static str>, u64>>,
}

impl Counter {
    /// A counter whose events have these labels.
    pub fn new(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Counter {
        Counter { name, help, labels, values: Mutex::default() }
    }

    /// Counts `n` more with these values of the labels.
    pub fn add(&self, values: &[&'static str], n: u64) {
        let mut all = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(values.to_vec()).or_default();
        *count = count.saturating_add(n);
    }
}

impl MetricSource for Counter {
    fn write(&self, text: &mut Text) {
        let mut samples = text.family(self.name, MetricKind::Counter, self.help);
        let all = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        for (values, count) in &*all {
            let labels: Vec<_> = self.labels.iter().copied().zip(values.iter().copied()).collect();
            samples.sample(&labels, *count as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_follow_conventions_and_labels_are_escaped() {
        let counter = Counter::new("refusals", "Refused requests.", &["reason"]);
        counter.add(&["too_many"], 2);
        counter.add(&["too_many"], 1);
        let mut text = Text::default();
        counter.write(&mut text);
        let mut rtt = text.family("rtt_seconds", MetricKind::Gauge, "Round-trip time.");
        rtt.sample(&[("link", "a\"b\\c\n")], 0.5);
        rtt.sample(&[], f64::NAN);
        let lines = "# HELP narrows_refusals_total Refused requests.\n\
                     # TYPE narrows_refusals_total counter\n\
                     narrows_refusals_total{reason=\"too_many\"} 3\n\
                     # HELP narrows_rtt_seconds Round-trip time.\n\
                     # TYPE narrows_rtt_seconds gauge\n\
                     narrows_rtt_seconds{link=\"a\\\"b\\\\c\\n\"} 0.5\n";
        assert_eq!(text.finish(), lines);
    }
}
