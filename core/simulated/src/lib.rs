//! The simulator's endpoints as pure state machines: TCP, datagrams and multicast.
//!
//! [`endpoints()`] builds a sender and a receiver of any listed protocol. TCP is complete here. Datagrams are rrtp's
//! packet sender and receiver from `narrows_transport` over simulated packets, without encryption.

pub mod datagram;
pub mod multicast;
pub mod tcp;

mod endpoints;
mod interface;

pub use endpoints::{SimulatedReceiver, SimulatedSender, endpoints};
pub use interface::{FramePart, SenderInput, SenderOutput, SendingLimit};
pub use narrows_recovery::packet_sender::Counters;
