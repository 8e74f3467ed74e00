//! Inputs of measures, and what their definitions share.

use crate::response::Response;
use narrows_sim::result::Roughness;
use narrows_sim::{FlowResult, LimitedTimes, LinkGroup, LinkResult, RunResult};

/// The inputs of a measure of a group.
pub struct GroupInputs<'a> {
    /// All results of the run.
    pub run: &'a RunResult,
    /// Index of the group.
    pub group: usize,
    /// Its bottleneck.
    pub link: &'a LinkResult,
    /// Groups with data through the same bottleneck.
    pub others: &'a [usize],
    /// Response of the group and its flows to changes.
    pub response: &'a Response,
}

/// The inputs of a measure of a single flow.
pub struct FlowInputs<'a> {
    /// The flow's results.
    pub result: &'a FlowResult,
    /// Convergence time in seconds, NaN if it did not converge.
    pub convergence_s: f64,
}

impl std::ops::Deref for FlowInputs<'_> {
    type Target = FlowResult;
    fn deref(&self) -> &FlowResult {
        self.result
    }
}

/// Which direction is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// A larger value is better.
    More,
    /// A smaller value is better.
    Less,
    /// Neither is better, or it depends.
    Neither,
}

/// A measure of a group of flows in one run.
#[non_exhaustive]
pub struct Measure {
    /// Its name in JSON and CSV.
    pub name: &'static str,
    /// Short title for charts.
    pub title: &'static str,
    /// Unit of the value; empty for counts.
    pub unit: &'static str,
    /// A description of one line.
    pub doc: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Whether it exists only with competitors (`--against`).
    pub competition: bool,
    /// Computes it; NaN if it does not exist in the run.
    pub of: fn(&GroupInputs<'_>) -> f64,
    /// Computes it for a single flow over a span in seconds, if that is meaningful.
    pub per_flow: Option<fn(&FlowInputs<'_>, f64) -> f64>,
}

/// The measures of a flow's variation of goodput, and their time scales in seconds.
pub const ROUGHNESS: [(&str, f64); 7] = [
    ("cov_100ms", 0.1),
    ("cov_200ms", 0.2),
    ("cov_500ms", 0.5),
    ("cov_1s", 1.0),
    ("cov_2s", 2.0),
    ("cov_5s", 5.0),
    ("cov_10s", 10.0),
];

impl GroupInputs<'_> {
    pub(super) fn flows(&self) -> impl Iterator<Item = &FlowResult> {
        self.run.groups[self.group].flows.iter()
    }
    pub(super) fn rtt(&self) -> &narrows_sim::Histogram {
        &self.run.groups[self.group].rtt
    }
    pub(super) fn here(&self) -> LinkGroup {
        self.link.groups.get(self.group).copied().unwrap_or_default()
    }
    pub(super) fn goodput(&self, group: usize) -> f64 {
        self.run.groups[group].flows.iter().map(|f| f.goodput_bytes as f64).sum()
    }
}

/// NaN for a division by zero: shown as null, never as infinity.
pub fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { f64::NAN }
}

pub fn mean(x: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    let mut n = 0.0;
    for x in x {
        sum += x;
        n += 1.0;
    }
    ratio(sum, n)
}

pub fn cov(f: &FlowResult) -> f64 {
    f.bins_1s.map_or(f64::NAN, |(mean, deviation)| ratio(deviation, mean))
}

/// Of one flow on one time scale; NaN if it does not exist.
pub fn one_roughness(f: &FlowResult, scale: usize, what: fn(&Roughness) -> f64) -> f64 {
    f.detail.as_ref().and_then(|d| d.roughness.get(scale)).map_or(f64::NAN, what)
}

pub fn mean_roughness(v: &GroupInputs<'_>, scale: usize, what: fn(&Roughness) -> f64) -> f64 {
    mean(v.flows().map(|f| one_roughness(f, scale, what)).filter(|c| c.is_finite()))
}

/// The loss events of a sender, simulated or real. A timeout is an event of its own: episodes are those found without
/// one. Every loss event loses a packet, so there are at most as many as packets: timeouts of handshakes and probes
/// send no data.
pub fn loss_events(episodes: u64, timeouts: u64, sent: u64) -> f64 {
    episodes.saturating_add(timeouts).min(sent) as f64
}

pub fn flow_loss_events(f: &FlowResult) -> f64 {
    loss_events(f.episodes, f.timeouts, f.sent_packets)
}

/// A share of the time of all flows of a group.
pub fn limited(v: &GroupInputs<'_>, of: fn(&LimitedTimes) -> f64) -> f64 {
    ratio(v.flows().map(|f| of(&f.limited)).sum(), v.flows().map(|f| f.limited.total_s()).sum())
}

pub fn completion(f: &FlowResult) -> f64 {
    f.done.map_or(f64::NAN, |done| done.since(f.start).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timeouts that send no data may outnumber the data packets.
    #[test]
    fn a_loss_event_rate_is_no_more_than_one() {
        assert_eq!(loss_events(0, 7, 3), 3.0);
        assert_eq!(loss_events(2, 1, 400), 3.0);
        assert_eq!(loss_events(u64::MAX, 7, 3), 3.0);
    }
}
