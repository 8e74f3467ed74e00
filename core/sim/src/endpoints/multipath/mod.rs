//! A stream over several paths.
//!
//! Each path has its own packet numbers, controller, RTT, loss detection, pacer, limiter and handshake, as in RFC 10069
//! (its packets have a flow number of their own). Above them is one stream with offsets. A
//! [`Scheduler`](narrows_multipath::Scheduler) chooses the path of each packet. Data of a lost packet leave again on the
//! path that the scheduler chooses then.
//!
//! A coupling ([`COUPLINGS`](narrows_multipath::COUPLINGS)) sets how a path's window changes at its next report.
//!
//! A path carries data once its handshake is complete. If it becomes silent ([`Liveness`](narrows_multipath::Liveness)),
//! the data in flight on it leave again on the others, and full packets without data probe it until it answers.

mod loss_intervals;
mod receiver;
mod sender;
mod sender_path;

pub use receiver::MultipathReceiver;
pub use sender::MultipathSender;

/// What one end of a path is built from.
pub struct PathParts<C> {
    /// The controller, or its receiver side.
    pub controller: C,
    /// Flow number of its packets.
    pub flow: u32,
    /// Key of its packets for losses.
    pub random_key: u64,
}
