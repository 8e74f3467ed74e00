//! The outcome of a comparison or a scenario, from which tables, JSON and reports are made.

use narrows_base::Variable;
use narrows_sim::SeriesTable;
use std::fmt;

/// A mean over seeds and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over seeds; NaN if no seed has the measure (shown as `null` and `-`).
    pub mean: f64,
    /// Distances of the ends of its 95% confidence interval; `None` for one seed and for one trajectory
    /// ([`crate::interval`]).
    distances: Option<Distances>,
}

/// Distances from a mean. They are stored instead of the ends, so that a half-width keeps its digits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Distances {
    below: f64,
    above: f64,
}

/// The ends of a confidence interval. An end is no further than the quantity can be, so the mean need not be its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// A mean with an interval of this half-width.
    pub fn symmetric(mean: f64, half: Option<f64>) -> Estimate {
        Estimate { mean, distances: half.map(|half| Distances { below: half, above: half }) }
    }
    /// A mean with an interval of these ends.
    pub fn with_ends(mean: f64, ends: Option<Interval>) -> Estimate {
        let distances = ends.map(|e| Distances { below: mean - e.low, above: e.high - mean });
        Estimate { mean, distances }
    }
    /// Its 95% confidence interval.
    pub fn ci95(&self) -> Option<Interval> {
        let ends = |d: Distances| Interval { low: self.mean - d.below, high: self.mean + d.above };
        self.distances.map(ends)
    }
    /// The larger distance of an end of the interval from the mean: a half-width that contains the interval.
    pub fn half(&self) -> Option<f64> {
        self.distances.map(|d| d.below.max(d.above))
    }
    /// The distance from the mean of the end on the side of `value`; 0 without an interval.
    pub fn toward(&self, value: f64) -> f64 {
        self.distances.map_or(0.0, |d| if value > self.mean { d.above } else { d.below })
    }
    /// `±0.17`, or `+0.07 −0.31` if the mean is not the middle; empty without an interval.
    pub fn interval_text(&self, number: impl Fn(f64) -> String) -> String {
        let Some(d) = self.distances else { return String::new() };
        let above = number(d.above);
        let below = number(d.below);
        if above == below { format!("±{above}") } else { format!("+{above} −{below}") }
    }
    /// The same estimate in another unit, `factor` (above zero) of it to one of this.
    pub fn times(&self, factor: f64) -> Estimate {
        let scaled = |d: Distances| Distances { below: d.below * factor, above: d.above * factor };
        Estimate { mean: self.mean * factor, distances: self.distances.map(scaled) }
    }
    /// The interval cut to the values that the quantity can have.
    pub fn within(&self, min: f64, largest: f64) -> Estimate {
        let cut = |d: Distances| Distances {
            below: d.below.min(self.mean - min).max(0.0),
            above: d.above.min(largest - self.mean).max(0.0),
        };
        Estimate { mean: self.mean, distances: self.distances.map(cut) }
    }
}

/// The recommended protocol, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommendation {
    /// The protocol to use; empty if none suits the aim.
    pub protocol: String,
    /// The command that uses it; `None` if nothing needs to be done.
    pub command: Option<String>,
    /// What it achieves, how to use it, its gain and its alternatives: a sentence each. Empty if there was no question.
    pub sentences: Vec<String>,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join(" "))
    }
}

impl Recommendation {
    /// No protocol, with the reason.
    pub(crate) fn none(sentence: String) -> Recommendation {
        Recommendation { sentences: vec![sentence], ..Recommendation::default() }
    }
}

/// All results of `compare` or `run`.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `compare` or `run`; for measurements of real connections `speed`, `get`, `put`, `serve` or `relay`.
    pub command: &'static str,
    /// The exact command line, to repeat it.
    pub command_line: String,
    /// First seed.
    pub seed: u64,
    /// The link's specification in full, or the scenario's name.
    pub link: String,
    /// The path in one line (rate, base RTT, BDP, buffer, loss).
    pub path: String,
    /// Simulated seconds.
    pub duration_s: f64,
    /// Measures start at this time.
    pub warmup_s: f64,
    /// Bottleneck capacity in bit/s.
    pub capacity_bps: f64,
    /// One per protocol (`compare`) or group of flows (`run`), in the given order.
    pub results: Vec<ProtocolOutcome>,
    /// Recommended protocol and reasons; empty for `run`.
    pub recommendation: Recommendation,
    /// Notes for the reader: interrupted, refused, not validated.
    pub notes: Vec<String>,
    /// Variables in the series of lent controllers, which can no longer be found by name.
    pub variables: Vec<Variable>,
}

/// The results of one protocol.
#[derive(Clone, Debug)]
pub struct ProtocolOutcome {
    /// Its specification as given.
    pub protocol: String,
    /// Its group of flows in a scenario; `main` in `compare`.
    pub group: String,
    /// A digest of all events of all seeds: equal for equal scenarios and seeds.
    pub digest: u64,
    /// Number of flows.
    pub flows: usize,
    /// Number of flows that compete with them at the same bottleneck.
    pub rivals: usize,
    /// Finished seeds; 1 if further ones would have repeated the same run.
    pub seeds: usize,
    /// All seeds gave the same run, event for event: one trajectory of unknown uncertainty.
    pub one_trajectory: bool,
    /// The controller's validation status, one line.
    pub status: String,
    /// Named measures, in the order of [`crate::measure::MEASURES`].
    pub measures: Vec<(&'static str, Estimate)>,
    /// Values of each seed; empty for measurements of real connections.
    pub by_seed: Vec<SeedValues>,
    /// Per flow: its name and its measures, in the form of `measures`.
    pub per_flow: Vec<(String, Vec<(&'static str, Estimate)>)>,
    /// Time series of the first seed.
    pub series: Vec<SeriesTable>,
}

/// Values of one seed.
#[derive(Clone, Debug)]
pub struct SeedValues {
    /// The seed of all random draws.
    pub seed: u64,
    /// Values of the outcome's `measures`, in their order; NaN if the run does not have it.
    pub values: Vec<f64>,
}

impl Outcome {
    /// Whether it was measured on real connections, without seeds and without a view of the bottleneck.
    pub fn is_real(&self) -> bool {
        !matches!(self.command, "compare" | "run")
    }
    /// Whether it was measured by a relay or an emulated link: the directions of a link, without connections.
    pub fn is_link(&self) -> bool {
        matches!(self.command, "relay" | "link")
    }
}

impl ProtocolOutcome {
    /// Its title in tables and charts: the protocol, and its group if that adds information.
    pub fn title(&self) -> String {
        if self.group.is_empty() || self.group == "main" || self.group == self.protocol {
            self.protocol.clone()
        } else {
            format!("{} ({})", self.protocol, narrows_base::text::shown(&self.group))
        }
    }
    /// A measure's values by seed.
    pub fn seeds_of(&self, name: &str) -> impl Iterator<Item = (u64, f64)> {
        let at = self.measures.iter().position(|m| m.0 == name);
        let value = move |s: &SeedValues| at.and_then(|i| s.values.get(i)).map(|v| (s.seed, *v));
        self.by_seed.iter().filter_map(value)
    }
    /// The measure of that name.
    pub fn measure(&self, name: &str) -> Option<Estimate> {
        self.measures.iter().find(|m| m.0 == name).map(|m| m.1)
    }
}
