//! A scenario: links, groups of flows, changes, and how often it is repeated.
//!
//! Both commands run scenarios: `compare` makes one of its flags, `run` reads one from a file
//! ([`crate::scenario_file`]). That is why a saved comparison repeats to the digest.

use crate::access_link::AccessLink;
use crate::link_direction::LinkDirection;
use narrows_base::{Duration, Spec, SpecError};
use narrows_congestion::PathHints;
pub use narrows_link::LinkChange;
use narrows_sim::SourceSpec;
use narrows_sim::protocol::Preset;

/// A simulation and its repetitions.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name in tables and reports.
    pub name: String,
    /// First seed.
    pub seed: u64,
    /// Number of seeds, counted up from the first.
    pub seeds: u32,
    /// Simulated time.
    pub duration: Duration,
    /// Measures start at this time.
    pub warmup: Duration,
    /// The TCP implementation that the endpoints imitate.
    pub preset: Preset,
    /// Bytes of a data packet on the wire.
    pub packet: u32,
    /// The protocols of flows with [`GroupProtocol::Each`], one after the other, each in runs of its own.
    pub protocols: Vec<Spec>,
    /// Duplex links; they define the nodes.
    pub links: Vec<DuplexLink>,
    /// Groups of flows.
    pub flows: Vec<Flows>,
    /// Scheduled changes.
    pub changes: Vec<Scheduled>,
    /// New hints that applications give about the path while their flows run.
    pub reconfigurations: Vec<Reconfiguration>,
    /// Selection of the recorded time series, in addition to each group's bottleneck.
    pub probe: SeriesSelection,
    /// The link at which utilisation, losses and queue are measured; by default each group's
    /// slowest.
    pub bottleneck: Option<String>,
}

/// A duplex link between two nodes.
#[derive(Clone, Debug)]
pub struct DuplexLink {
    /// Its name; the other direction is called `name.back`.
    pub name: String,
    /// One end.
    pub from: String,
    /// The other end.
    pub to: String,
    /// From `from` to `to`.
    pub forward: LinkDirection,
    /// From `to` to `from`.
    pub reverse: LinkDirection,
    /// Line in its file, 0 without a file.
    pub line: usize,
}

/// The protocol of a group of flows.
#[derive(Clone, PartialEq, Debug)]
pub enum GroupProtocol {
    /// Each of [`Scenario::protocols`] in turn; written `each`.
    Each,
    /// One protocol.
    One(Spec),
}

/// A group of flows.
#[derive(Clone, Debug)]
pub struct Flows {
    /// Flows are called `name.0`, `name.1`, …; their random draws depend on the name.
    pub name: String,
    /// The protocol of all flows.
    pub speaks: GroupProtocol,
    /// Number of flows.
    pub count: usize,
    /// Node of the senders.
    pub from: String,
    /// Node of the receivers.
    pub to: String,
    /// The links of each path from `from` to `to`, by name and in order; empty for one path, the shortest.
    pub paths: Vec<Vec<String>>,
    /// Earliest start.
    pub start: Duration,
    /// Range of starts: each flow starts later by a time drawn uniformly from [0, stagger).
    pub stagger: Duration,
    /// When they stop; `None` for the end of the run.
    pub stop: Option<Duration>,
    /// The traffic of each application.
    pub source: SourceSpec,
    /// Additional delay of each data packet at its host: drawn per packet, uniformly from [0, host delay), without
    /// reordering.
    pub host_delay: Duration,
    /// Each flow's own duplex link before `from`.
    pub access: Option<OwnLink>,
    /// Each flow's own duplex link after `to`.
    pub egress: Option<OwnLink>,
    /// Line in its file, 0 without a file.
    pub line: usize,
}

/// A flow's own link, and the name under which it is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OwnLink {
    /// Rate and delay, or their ranges.
    pub side: AccessLink,
    /// `access` or `egress`: the stream from which a range is drawn.
    pub stream: &'static str,
}

/// A scheduled change during a run.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// Time of the change.
    pub at: Duration,
    /// The link, or its other direction (`name.back`).
    pub link: String,
    /// The new value.
    pub change: LinkChange,
    /// Line in its file, 0 without a file.
    pub line: usize,
}

/// New hints that an application gives about its path while its flows run.
#[derive(Clone, Debug)]
pub struct Reconfiguration {
    /// Time of the hints.
    pub at: Duration,
    /// The group of flows.
    pub flows: String,
    /// Rate, RTT and loss as the application states them.
    pub hints: PathHints,
    /// Line in its file, 0 without a file.
    pub line: usize,
}

/// Selection of recorded time series.
#[derive(Clone, Debug)]
pub struct SeriesSelection {
    /// Time between samples; by default a 600th of the run, at least 10 ms.
    pub interval: Option<Duration>,
    /// Links recorded in addition to the bottlenecks.
    pub links: Vec<String>,
    /// Limit on the recorded flows of each group.
    pub flows: usize,
    /// Line in its file, 0 without a file.
    pub line: usize,
}

impl Default for SeriesSelection {
    fn default() -> SeriesSelection {
        SeriesSelection { interval: None, links: Vec::new(), flows: 4, line: 0 }
    }
}

impl Scenario {
    /// A scenario with defaults, without links and flows.
    pub fn named(name: &str) -> Scenario {
        Scenario {
            name: name.to_string(),
            seed: 1,
            seeds: 1,
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            preset: Preset::Rfc,
            packet: 1000,
            protocols: Vec::new(),
            links: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
            reconfigurations: Vec::new(),
            probe: SeriesSelection::default(),
            bottleneck: None,
        }
    }
    /// Number of different runs per seed: one per protocol in `protocols`.
    pub fn variants(&self) -> usize {
        self.protocols.len().max(1)
    }
}

/// The error with its line in the file, if there is one.
pub(crate) fn at_line(line: usize, e: SpecError) -> SpecError {
    if line == 0 { e } else { e.at(&format!("line {line}")) }
}
