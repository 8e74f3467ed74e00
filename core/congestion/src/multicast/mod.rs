//! Layered multicast without feedback, for simulation (Jayaram 2001 sections 2.3, 3.1 and 3.2). The sender sends every
//! layer to a group of its own. Receivers join and leave groups by the rate that TEAR computes at the receiver.
//!
//! Jayaram 2001 states: "In multicast sessions, feedback can be gotten rid off altogether and the receiver can perform
//! layer-based flow control". Without feedback, DEV is √2 times the deviation of the differences of sending and
//! receiving timestamps (section 3.7.2). It has no rules of joining and leaving, and TEAR needs an RTT. Ours:
//!
//! - *RTT*: a given base RTT, plus the excess of the one-way time over its minimum. Only differences of timestamps are
//!   used, so clocks need not agree.
//! - *Sequence*: each layer has numbers of its own. Missing packets of a layer count as missing in one sequence over
//!   all joined layers, in the order of arrival.
//! - *No more than is sent*: the sender does not follow the receiver's rate. So the emulated window grows only up to
//!   the next layer's need and a fifth more, as that of an application-limited TCP (RFC 7661).
//! - *No yielding*: TEAR's additional reduction after a halving (`yield`) would lose layers, and drain no queue.
//! - *Join and leave*: see [`join`].

pub mod join;
mod path;
mod receiver;

pub use receiver::{LayerPacket, LayerReceiver};
