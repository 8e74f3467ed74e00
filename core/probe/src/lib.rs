//! Estimates a path's properties from packet trains that one end sends and the other observes.
//!
//! A pure crate: no clock, socket or thread. [`Probe`] returns the next train, and a driver sends it and returns the
//! arrivals (`narrows-net` over sockets, [`simulated`] over links of the simulator). The two clocks need not agree:
//! only differences of one-way delays are used, and the sum of the smallest delays of both directions, in which the
//! clocks' offset cancels.

mod budget;
mod buffer;
mod direction;
pub mod ecn;
pub mod frames;
mod idle;
pub mod link_text;
mod loss;
mod policer;
mod probe;
mod rate;
mod recording;
pub mod simulated;
mod statistics;
mod train;

pub use budget::{Budget, MAX_BYTES, MAX_TIME};
pub use buffer::{Buffer, OverflowWatch, StopAt};
pub use direction::Reordering;
pub use loss::RandomLoss;
pub use policer::PolicerFit;
pub use probe::{PathEstimate, Probe, ProbeDirection, ProbeStep, WayEstimate};
pub use rate::{FULL_BYTES, MAX_EXCESS, OPENING_PACKETS};
pub use recording::{RecordedWay, TraceRecording};
pub use statistics::ConfidenceInterval;
pub use train::{Purpose, Train, TrainArrival, TrainObservation};
