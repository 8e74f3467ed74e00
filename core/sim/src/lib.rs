//! The event engine: virtual time for endpoints and links.
//!
//! [`run`] simulates a [`NetworkSpec`] and returns a [`RunResult`]. Equal specifications and seeds give equal
//! [`RunResult::digest`]s on every machine and with any number of threads. A [`Simulation`] is the same run in steps:
//! between steps its state can be read, and its controllers can be changed.

pub mod calendar;
pub mod endpoints;
pub mod protocol;
pub mod result;
pub mod source;
pub mod spec;

mod check;
mod columns;
mod dumbbell;
mod flow;
mod frames;
mod histogram;
mod loan;
mod meter;
mod network;
mod packet_log;
mod registry;
mod series;
mod smooth;

pub use columns::COLUMNS;
pub use dumbbell::dumbbell;
pub use endpoints::{Counters, SendingLimit};
pub use histogram::Histogram;
pub use loan::Loan;
pub use network::{Simulation, run};
pub use packet_log::{PacketEvent, PacketEventKind};
pub use registry::Registry;
pub use result::{ClassifierCounts, LimitedTimes, QueueAverage, RunResult, SeriesTable};
pub use result::{
    FlowDetail, FlowResult, FrameResult, GroupResult, LinkGroup, LinkResult, LinkTicks,
    MultipathResult, PathResult,
};
pub use smooth::variation;
pub use source::{SOURCES, SourceSpec};
pub use spec::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, PathSpec, SeriesSpec, SimError};
