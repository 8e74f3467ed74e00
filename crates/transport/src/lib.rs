//! Transport endpoints as pure state machines, and the list of protocols.
//!
//! A protocol that a user names is a combination: an endpoint, a controller, a way to repair
//! losses. One entry in [`protocol::PROTOCOLS`] is all that a new combination needs; a stream over
//! our endpoint under any controller (`rrtp+NAME`) needs none.
//!
//! Feature `connections` (on unless turned off) adds [`connection`], [`endpoint`] and [`streams`]: what real sockets
//! need and simulations do not, with the ciphers.

// Handshakes and packet senders have one user less without connections.
#![cfg_attr(not(feature = "connections"), allow(dead_code))]

#[cfg(feature = "connections")]
pub mod connection;
pub mod datagram;
#[cfg(feature = "connections")]
pub mod endpoint;
mod handshake;
pub mod loss_classifier;
mod packet_receiver;
pub mod packet_sender;
pub mod protocol;
pub mod ranges;
pub mod rtt;
pub mod simulated;
#[cfg(feature = "connections")]
pub mod streams;
pub mod tcp;

pub use datagram::DatagramConfig;
pub use protocol::{PROTOCOLS, Protocol, RECOVERIES};
pub use rtt::RtoConfig;
pub use simulated::{Counters, Input, Output, SimulatedReceiver, SimulatedSender};
pub use tcp::{Preset, TcpConfig};
