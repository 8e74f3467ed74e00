//! What a comparison or a scenario found: what tables, JSON and reports are made of.

use narrows_sim::Table;

/// A mean over seeds and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over seeds; NaN if no seed has the measure (shown as `null` and `-`).
    pub mean: f64,
    /// Half-width of the 95% confidence interval (Student t); `None` for one seed.
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
    /// Seeds that finished.
    pub seeds: usize,
    /// The controller's validation status, one line.
    pub status: String,
    /// Named measures, in the order of [`crate::measure::MEASURES`].
    pub measures: Vec<(&'static str, Estimate)>,
    /// Per flow: name and the same kind of named measures.
    pub per_flow: Vec<(String, Vec<(&'static str, Estimate)>)>,
    /// Time series of the first seed.
    pub series: Vec<Table>,
}

impl Outcome {
    /// Whether it was measured on real connections, where nothing has seeds and nobody sees the
    /// bottleneck.
    pub fn is_real(&self) -> bool {
        !matches!(self.command, "compare" | "run")
    }
    /// Whether it is what a relay saw: links and no connections.
    pub fn is_relay(&self) -> bool {
        self.command == "relay"
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
    /// The measure of that name.
    pub fn measure(&self, name: &str) -> Option<Estimate> {
        self.measures.iter().find(|m| m.0 == name).map(|m| m.1)
    }
}
