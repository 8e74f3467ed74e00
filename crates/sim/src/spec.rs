//! What a run is made of: links, groups of flows with their routes, changes, and what is watched.

use crate::source::SourceSpec;
use narrows_base::{Duration, Time};
use narrows_flow::Protocol;
use narrows_path::{Change, LinkConfig};
use std::fmt;
use std::sync::Arc;

/// Most flows in one run; a million need about 2 GB.
pub const MAX_FLOWS: usize = 1_000_000;

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// All luck comes from here.
    pub seed: u64,
    /// Simulated time at which the run ends.
    pub end: Time,
    /// Measures count from here to the end.
    pub measure_from: Time,
    /// Links, each one direction. Routes name them by index.
    pub links: Vec<LinkSpec>,
    /// Groups of flows: one protocol each, measured together.
    pub groups: Vec<GroupSpec>,
    /// Scheduled changes: when, which link, what. That link's config must have `changes` set.
    pub changes: Vec<(Time, usize, Change)>,
    /// Time series to record, if any.
    pub series: Option<SeriesSpec>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its luck and its series are named after this: unique.
    pub name: String,
    /// What it is made of; links that are alike share it, so that flows with links of their own
    /// stay small.
    pub config: Arc<LinkConfig>,
    /// Whether it is measured (departures, drops, queue) per group of flows.
    pub metered: bool,
}

/// Flows of one protocol, measured together.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// Flows are named `name.0`, `name.1`, …; their luck follows the name: unique.
    pub name: String,
    /// What they speak.
    pub protocol: Protocol,
    /// What their applications send.
    pub source: SourceSpec,
    /// The flows. A `web` source makes many transfers of each.
    pub flows: Vec<FlowSpec>,
}

/// One flow's place and time.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// When its application starts.
    pub start: Time,
    /// When its application stops, [`Time::NEVER`] for the run's end.
    pub stop: Time,
    /// Links from sender to receiver, at least one and at most 200.
    pub forward: Vec<u32>,
    /// Links from receiver to sender, at least one and at most 200.
    pub back: Vec<u32>,
}

/// What is watched over time.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// Time between samples.
    pub interval: Duration,
    /// First sample.
    pub from: Time,
    /// Links whose queue, throughput and drops are sampled; they must be metered.
    pub links: Vec<usize>,
    /// At most so many flows of each group are sampled.
    pub flows_per_group: usize,
}

/// Why a run cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimError {
    /// The specification makes no sense; one line says why.
    Spec(String),
    /// The caller asked to stop.
    Interrupted,
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Spec(why) => f.write_str(why),
            SimError::Interrupted => f.write_str("interrupted"),
        }
    }
}
impl std::error::Error for SimError {}
