//! The outcome of a comparison or a scenario, from which tables, JSON and reports are made.

use narrows_base::Variable;
use narrows_sim::Table;

/// A mean over seeds and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over seeds; NaN if no seed has the measure (shown as `null` and `-`).
    pub mean: f64,
    /// Half-width of the 95% confidence interval; `None` for one seed, for one trajectory, and where
    /// the values do not say enough for an interval ([`crate::interval`]).
    pub ci95: Option<f64>,
}

/// Everything that `compare` or `run` found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `compare` or `run`; of what really happened `speed`, `get`, `put`, `serve` or `relay`.
    pub command: &'static str,
    /// The exact command line, to repeat it.
    pub command_line: String,
    /// First seed.
    pub seed: u64,
    /// The link's specification in full, or the scenario's name.
    pub link: String,
    /// What a reader should know of the path: one line (rate, base RTT, BDP, buffer, loss).
    pub path: String,
    /// Simulated seconds.
    pub duration_s: f64,
    /// Measures count from here.
    pub warmup_s: f64,
    /// Bottleneck capacity in bit/s.
    pub capacity_bps: f64,
    /// One per protocol (`compare`) or group of flows (`run`), in the order asked for.
    pub results: Vec<ProtocolOutcome>,
    /// What to use and why, in a sentence or two; empty for `run`.
    pub recommendation: String,
    /// Things that a reader must know: interrupted, refused, not validated.
    pub notes: Vec<String>,
    /// Variables in the series of controllers that were lent: nobody finds them by name afterwards.
    pub variables: Vec<Variable>,
}

/// What one protocol did.
#[derive(Clone, Debug)]
pub struct ProtocolOutcome {
    /// As the user wrote it.
    pub protocol: String,
    /// The group of flows that it is in a scenario; `main` in `compare`.
    pub group: String,
    /// A number over all events of all seeds: equal for equal scenario and seeds.
    pub digest: u64,
    /// How many flows.
    pub flows: usize,
    /// How many flows compete with them at the same bottleneck.
    pub rivals: usize,
    /// Seeds that finished; 1 where further ones would have been the same run again.
    pub seeds: usize,
    /// All seeds gave the same run, event for event: one trajectory, whose certainty nobody knows.
    pub one_trajectory: bool,
    /// The controller's validation status, one line.
    pub status: String,
    /// Named measures, in the order of [`crate::measure::MEASURES`].
    pub measures: Vec<(&'static str, Estimate)>,
    /// What each seed gave; empty for what really happened.
    pub by_seed: Vec<SeedValues>,
    /// Per flow: name and the same kind of named measures.
    pub per_flow: Vec<(String, Vec<(&'static str, Estimate)>)>,
    /// Time series of the first seed.
    pub series: Vec<Table>,
}

/// What one seed gave.
#[derive(Clone, Debug)]
pub struct SeedValues {
    /// The seed.
    pub seed: u64,
    /// Values of the outcome's `measures`, in their order; NaN where the run has none.
    pub values: Vec<f64>,
}

impl Outcome {
    /// Whether it was measured on real connections, where nothing has seeds and nobody sees the
    /// bottleneck.
    pub fn is_real(&self) -> bool {
        !matches!(self.command, "compare" | "run")
    }
    /// Whether it is what a relay or an emulated link saw: the ways of a link and no connections.
    pub fn is_link(&self) -> bool {
        matches!(self.command, "relay" | "link")
    }
}

impl ProtocolOutcome {
    /// What tables and charts call it: the protocol, and its group where that says more.
    pub fn title(&self) -> String {
        if self.group.is_empty() || self.group == "main" || self.group == self.protocol {
            self.protocol.clone()
        } else {
            format!("{} ({})", self.protocol, narrows_base::text::shown(&self.group))
        }
    }
    /// What each seed gave of a measure: seed and value.
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
