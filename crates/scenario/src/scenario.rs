//! A scenario: links, groups of flows, changes, and how often it is repeated.
//!
//! Both commands run scenarios: `compare` makes one of its flags, `run` reads one from a file
//! ([`crate::scenario_file`]). That is why a saved comparison repeats to the digest.

use crate::access_link::AccessLink;
use crate::link_direction::LinkDirection;
use narrows_base::{Duration, Spec, SpecError};
use narrows_congestion::PathHints;
use narrows_link::Change;
use narrows_sim::SourceSpec;
use narrows_transport::Preset;

/// Everything that is simulated, and how often.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called in tables and reports.
    pub name: String,
    /// First seed.
    pub seed: u64,
    /// How many seeds, counted up from the first.
    pub seeds: u32,
    /// Simulated time.
    pub duration: Duration,
    /// Measures count from here.
    pub warmup: Duration,
    /// Which endpoint the flows speak.
    pub preset: Preset,
    /// Bytes of a data packet on the wire.
    pub packet: u32,
    /// What the flows that speak [`GroupProtocol::Each`] speak, one after the other, in runs of their own.
    pub protocols: Vec<Spec>,
    /// Duplex links; nodes are what they join.
    pub links: Vec<DuplexLink>,
    /// Groups of flows.
    pub flows: Vec<Flows>,
    /// Scheduled changes.
    pub changes: Vec<Scheduled>,
    /// What applications say of the path while their flows run.
    pub reconfigurations: Vec<Reconfiguration>,
    /// What is watched over time besides each group's bottleneck.
    pub probe: Probe,
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
    pub there: LinkDirection,
    /// From `to` to `from`.
    pub back: LinkDirection,
    /// Line in its file, 0 if it has none.
    pub line: usize,
}

/// What a group of flows speaks.
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
    /// Flows are called `name.0`, `name.1`, …, and their random draws follows the name.
    pub name: String,
    /// Protocol.
    pub speaks: GroupProtocol,
    /// How many.
    pub count: usize,
    /// Node where they begin.
    pub from: String,
    /// Node where they end.
    pub to: String,
    /// When they start …
    pub start: Duration,
    /// … plus a time drawn per flow, uniform in [0, stagger).
    pub stagger: Duration,
    /// When they stop; `None` for the end of the run.
    pub stop: Option<Duration>,
    /// What their applications send.
    pub source: SourceSpec,
    /// Each data packet leaves its host so much later: drawn per packet, uniform in
    /// [0, host delay), never past the packet before it.
    pub host_delay: Duration,
    /// Each flow's own duplex link before `from`.
    pub access: Option<OwnLink>,
    /// Each flow's own duplex link after `to`.
    pub egress: Option<OwnLink>,
    /// Line in its file, 0 if it has none.
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

/// A change while the run goes on.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// When.
    pub at: Duration,
    /// Which link, or which link's other direction (`name.back`).
    pub link: String,
    /// To what.
    pub change: Change,
    /// Line in its file, 0 if it has none.
    pub line: usize,
}

/// An application says what the path is like, while its flows run.
#[derive(Clone, Debug)]
pub struct Reconfiguration {
    /// When.
    pub at: Duration,
    /// To which group of flows.
    pub flows: String,
    /// What the path is like.
    pub hints: PathHints,
    /// Line in its file, 0 if it has none.
    pub line: usize,
}

/// What is watched over time.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Time between samples; by default a 600th of the run, at least 10 ms.
    pub interval: Option<Duration>,
    /// Links watched besides the bottlenecks.
    pub links: Vec<String>,
    /// At most so many flows of each group.
    pub flows: usize,
    /// Line in its file, 0 if it has none.
    pub line: usize,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe { interval: None, links: Vec::new(), flows: 4, line: 0 }
    }
}

impl Scenario {
    /// With defaults and nothing in it.
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
            probe: Probe::default(),
            bottleneck: None,
        }
    }
    /// How many different runs a seed has: one per protocol that takes its turn.
    pub fn variants(&self) -> usize {
        self.protocols.len().max(1)
    }
}

/// The error, with the line of the file that it is about, if there is one.
pub(crate) fn at_line(line: usize, e: SpecError) -> SpecError {
    if line == 0 { e } else { e.at(&format!("line {line}")) }
}
