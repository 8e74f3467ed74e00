//! Transport endpoints as pure state machines, and the list of protocols.
//!
//! A protocol is a combination of an endpoint, a controller and a loss recovery. A new combination needs only an entry
//! in [`protocol::PROTOCOLS`]. A stream over rrtp's endpoint with any controller (`rrtp+NAME`) needs no entry.
//!
//! Feature `connections` (on by default) adds [`connection`], [`endpoint`] and [`streams`], with the ciphers. Real
//! sockets need it, simulations do not.

// Without connections, parts of handshakes and packet senders are unused.
#![cfg_attr(not(feature = "connections"), allow(dead_code))]

#[cfg(feature = "connections")]
pub mod connection;
pub mod datagram;
#[cfg(feature = "connections")]
pub mod endpoint;
mod handshake;
pub mod layers;
pub mod loss_classifier;
pub mod multicast;
mod packet_receiver;
pub mod packet_sender;
pub mod protocol;
pub mod ranges;
pub mod rtt;
pub mod simulated;
#[cfg(feature = "connections")]
pub mod streams;
pub mod tcp;

pub use datagram::{DatagramConfig, Opening};
pub use protocol::{PROTOCOLS, Protocol, RECOVERIES};
pub use rtt::{RtoConfig, RtoMethod};
pub use simulated::{
    Counters, FramePart, Input, Limit, Output, SimulatedReceiver, SimulatedSender,
};
pub use tcp::{Preset, TcpConfig};
