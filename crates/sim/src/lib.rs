//! The event engine: virtual time for endpoints and links.
//!
//! A [`NetworkSpec`] says what there is; [`run`] gives a [`RunResult`]. Equal specification and
//! seed give an equal [`RunResult::digest`] on every machine and with any number of threads.

pub mod calendar;
pub mod result;
pub mod source;
pub mod spec;

mod dumbbell;
mod flow;
mod histogram;
mod meter;
mod network;
mod series;
mod smooth;

pub use dumbbell::dumbbell;
pub use histogram::Histogram;
pub use network::run;
pub use result::{FlowDetail, FlowResult, GroupResult, LinkGroup, LinkResult, LinkTicks};
pub use result::{QueueAverage, RunResult, Table, Verdicts};
pub use source::{SOURCES, SourceSpec};
pub use spec::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SeriesSpec, SimError};

/// The worked example of `docs/adding-a-controller.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-controller.md")]
struct AddingAController;
