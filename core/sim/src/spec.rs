//! The specification of a run: links, groups of flows with their routes, changes, and time series.

use crate::protocol::FlowProtocol;
use crate::source::SourceSpec;
use narrows_base::{Duration, FieldError, Time};
use narrows_congestion::PathHints;
use narrows_link::{LinkChange, LinkConfig};
use std::fmt;
use std::sync::Arc;

pub use crate::check::{
    MAX_CHANGES, MAX_FLOWS, MAX_GROUPS, MAX_HOPS, MAX_LINKS, MAX_PATHS, MAX_ROWS, MAX_SAMPLES,
};

/// The specification of a run.
#[derive(Clone, Default, Debug)]
pub struct NetworkSpec {
    /// Seed of all random draws.
    pub seed: u64,
    /// Simulated time at which the run ends, at most ten years.
    pub end: Time,
    /// The measured span is from here, which must be before `end`, to `end`.
    pub measure_from: Time,
    /// Links, each one direction. Routes name them by index.
    pub links: Vec<LinkSpec>,
    /// Groups of flows: each has one protocol and is measured as a whole.
    pub groups: Vec<GroupSpec>,
    /// Scheduled changes: time, link, new value. The link's configuration must have `changes` set.
    pub changes: Vec<(Time, usize, LinkChange)>,
    /// Hints that applications give about the path while their flows run: time, group of flows, hints.
    pub reconfigurations: Vec<(Time, usize, PathHints)>,
    /// Time series to record, if any.
    pub series: Option<SeriesSpec>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// A unique name, from which its random draws are derived and under which its series appears.
    pub name: String,
    /// Configuration. Equal links share it, so that flows with links of their own stay small.
    pub config: Arc<LinkConfig>,
    /// Whether it is measured (departures, drops, queue) per group of flows.
    pub metered: bool,
}

/// Flows of one protocol, measured together.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// A unique name. Flows are named `name.0`, `name.1`, …; their random draws are derived from
    /// these names.
    pub name: String,
    /// The protocol of all its flows.
    pub protocol: FlowProtocol,
    /// The traffic of each application.
    pub source: SourceSpec,
    /// The flows. A `web` source makes many transfers of each.
    pub flows: Vec<FlowSpec>,
}

/// One flow's route and times.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// When its application starts.
    pub start: Time,
    /// When its application stops, not before `start`; [`Time::NEVER`] means at the end of the run.
    pub stop: Time,
    /// Links from sender to receiver, 1 to [`MAX_HOPS`].
    pub forward: Vec<u32>,
    /// Links from receiver to sender, 1 to [`MAX_HOPS`].
    pub back: Vec<u32>,
    /// Further paths between the same two ends, at most [`MAX_PATHS`] in all. Only a stream over rrtp can have them.
    pub further: Vec<PathSpec>,
}

impl FlowSpec {
    /// A flow over one path, from the start to the end of the run.
    #[must_use]
    pub fn new(forward: Vec<u32>, back: Vec<u32>) -> FlowSpec {
        FlowSpec { start: Time::ZERO, stop: Time::NEVER, forward, back, further: Vec::new() }
    }
}

/// The links of a further path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathSpec {
    /// Links from sender to receiver, 1 to [`MAX_HOPS`].
    pub forward: Vec<u32>,
    /// Links from receiver to sender, 1 to [`MAX_HOPS`].
    pub back: Vec<u32>,
}

/// Selection of the recorded time series.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// Time between samples; at most [`MAX_SAMPLES`] fit into the run.
    pub interval: Duration,
    /// Time of the first sample.
    pub from: Time,
    /// Sampled links (queue, throughput, drops), each once; they must be metered.
    pub links: Vec<usize>,
    /// Limit on the sampled flows of each group.
    pub flows_per_group: usize,
}

/// The reason why a run has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SimError {
    /// A field of the specification has an invalid value.
    Spec(FieldError),
    /// Too many packets were in the network at once.
    TooManyPackets {
        /// When it happened.
        at: Time,
        /// The limit.
        max: usize,
    },
    /// Millions of events at the same simulated time without an end: packets circulate without delay, or a controller
    /// always requests a tick that is already due.
    TimeStandsStill {
        /// When it happened.
        at: Time,
    },
    /// A controller failed, for this reason: see [`SimulationScope`](narrows_congestion::SimulationScope).
    Controller(String),
    /// The caller asked to stop.
    Interrupted,
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Spec(e) => e.fmt(f),
            SimError::TooManyPackets { at, max } => write!(
                f,
                "at {at:?} more than {max} packets are under way or wait: a link's queue needs a \
                 limit, or a link duplicates too much"
            ),
            SimError::TimeStandsStill { at } => write!(
                f,
                "time stands still at {at:?}: packets go in circles that take no time, or a controller \
                 asks for ticks that are already due"
            ),
            SimError::Controller(why) => f.write_str(why),
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
