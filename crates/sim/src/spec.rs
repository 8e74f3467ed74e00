//! What a run is made of: links, groups of flows with their routes, changes, and what is watched.

use crate::source::SourceSpec;
use narrows_base::{Duration, FieldError, Time};
use narrows_link::{Change, LinkConfig};
use narrows_transport::Protocol;
use std::fmt;
use std::sync::Arc;

pub use crate::check::{
    MAX_CHANGES, MAX_FLOWS, MAX_GROUPS, MAX_HOPS, MAX_LINKS, MAX_ROWS, MAX_SAMPLES,
};

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// All randomness comes from here.
    pub seed: u64,
    /// Simulated time at which the run ends, at most ten years.
    pub end: Time,
    /// Measures count from here, which is before the end, to the end.
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
    /// Its random draws and its series are named after this: unique.
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
    /// Flows are named `name.0`, `name.1`, …; their random draws follows the name: unique.
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
    /// When its application stops, not before the start; [`Time::NEVER`] for the run's end.
    pub stop: Time,
    /// Links from sender to receiver, 1 to [`MAX_HOPS`].
    pub forward: Vec<u32>,
    /// Links from receiver to sender, 1 to [`MAX_HOPS`].
    pub back: Vec<u32>,
}

/// What is watched over time.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// Time between samples; at most [`MAX_SAMPLES`] fit into the run.
    pub interval: Duration,
    /// First sample.
    pub from: Time,
    /// Links whose queue, throughput and drops are sampled, each once; they must be metered.
    pub links: Vec<usize>,
    /// At most so many flows of each group are sampled.
    pub flows_per_group: usize,
}

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SimError {
    /// A field of the specification has a value that it cannot have.
    Spec(FieldError),
    /// More than so many packets were on their way or waited at once.
    TooManyPackets {
        /// When.
        at: Time,
        /// How many a run holds.
        most: usize,
    },
    /// Millions of events came at the same moment, and still more: packets go in circles that take no
    /// time, or a controller asks again and again for a tick that is due.
    TimeStandsStill {
        /// When.
        at: Time,
    },
    /// The caller asked to stop.
    Interrupted,
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Spec(e) => e.fmt(f),
            SimError::TooManyPackets { at, most } => write!(
                f,
                "at {at:?} more than {most} packets are under way or wait: a link's queue needs a \
                 limit, or a link duplicates too much"
            ),
            SimError::TimeStandsStill { at } => write!(
                f,
                "time stands still at {at:?}: packets go in circles that take no time, or a controller \
                 asks for ticks that are already due"
            ),
            SimError::Interrupted => f.write_str("interrupted"),
        }
    }
}
impl std::error::Error for SimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SimError::Spec(e) => Some(e),
            _ => None,
        }
    }
}
