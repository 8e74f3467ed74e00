//! The simulator's endpoints as pure state machines: TCP, datagrams, several paths and multicast.
//!
//! [`build`] builds a sender and a receiver of any listed protocol. TCP is complete here. Datagrams are rrtp's
//! packet sender and receiver from `narrows_recovery` over simulated packets, without encryption.

pub mod datagram;
pub mod foreign;
pub mod multicast;
pub mod multipath;
pub mod tcp;

mod any;
mod interface;

pub use any::{SimulatedReceiver, SimulatedSender, build};
pub use interface::{FramePart, SenderInput, SenderOutput, SendingLimit};
pub use narrows_recovery::packet_sender::Counters;
