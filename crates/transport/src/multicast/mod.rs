//! Layered multicast without feedback, for simulation: a sender that sends every layer to a group of its own, and
//! receivers that join and leave groups by the rate that TEAR computes at the receiver (S4 sections 2.3, 3.1 and 3.2).
//!
//! S4 says: "In multicast sessions, feedback can be gotten rid off altogether and the receiver can perform layer-based
//! flow control", and that without feedback DEV is √2 times the deviation of the differences of sending and receiving
//! timestamps (section 3.7.2). It has no rules of joining and leaving, and TEAR needs an RTT. Ours:
//!
//! - *RTT*: a base RTT that the receiver is given, plus what the one-way time is above its minimum. Only differences
//!   of timestamps are used, so clocks need not agree.
//! - *Sequence*: each layer has numbers of its own. What is missing of a layer counts as missing in one sequence over
//!   all joined layers, in the order of arrival.
//! - *No more than is sent*: the sender does not follow the receiver's rate. So the emulated window grows only up to
//!   what the next layer needs and a fifth more, as a TCP's whose application has no more to send (RFC 7661).
//! - *Join and leave*: see [`join`].

pub mod join;
mod path;
pub mod receiver;
pub mod sender;

pub use receiver::Receiver;
pub use sender::Sender;

use crate::datagram::header;
use narrows_base::Packet;

/// The layer that a packet belongs to.
pub fn layer_of(packet: &Packet) -> usize {
    usize::from(header::read_data(packet).offset as u8)
}
