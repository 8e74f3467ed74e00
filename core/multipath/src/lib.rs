//! Several paths at once: which path carries the next piece of data.
//!
//! A [`Scheduler`] is a state machine without I/O, clock or packets. For each piece of data a transport passes it the
//! [`PathState`] of every path, and it returns the path to send on, or the time to wait for. Congestion control, loss
//! detection and retransmission remain the transport's: a path that may not send now is described as such. So another
//! stack can use the schedulers; `examples/scheduler.rs` does so without a transport.
//!
//! To add one: a file in `schedulers`, its `mod` line and its entry in [`SCHEDULERS`].
//!
//! A coupling ([`COUPLINGS`]) changes the windows of all paths together, so that they take the share of one flow at a
//! shared bottleneck. It is a function of all paths' windows, RTTs and losses, in `couplings`.
//!
//! [`SharedBottleneck`] detects such paths by their delays, and lets one of them carry the data.
//!
//! [`WeightLimits`] keeps a path within the part that its weight gives it.
//!
//! [`Liveness`] detects a silent path within one probe timeout.

mod arrival;
mod coupling;
mod couplings;
mod entry;
mod list;
mod liveness;
mod offered;
mod path;
mod scheduler;
mod schedulers;
mod shared;
mod weights;

pub use arrival::delay_difference;
pub use coupling::{CoupledPath, CouplingEntry};
pub use entry::SchedulerEntry;
pub use list::{COUPLING_NAMES, COUPLINGS, SCHEDULER_NAMES, SCHEDULERS};
pub use liveness::Liveness;
pub use offered::{NumberedPiece, Offered};
pub use path::{PathState, PathStatus};
pub use scheduler::{Choice, InFlightPiece, Piece, Scheduler, TrafficClass};
pub use shared::{MEASURING_RATE, SharedBottleneck};
pub use weights::{PathWeight, WeightLimits};

#[cfg(test)]
mod tests;
