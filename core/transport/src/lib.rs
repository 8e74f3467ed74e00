//! Transport as pure state machines: packet sender and receiver, handshake, streams, connections, and the endpoint of
//! rrtp; and the list of protocols.
//!
//! A protocol is a combination of an endpoint, a controller and a loss recovery. A new combination needs only an entry
//! in [`protocol::PROTOCOLS`]. A stream over rrtp's endpoint with any controller (`rrtp+NAME`) needs no entry.
//!
//! Feature `connections` (on by default) adds [`connection`], [`endpoint`] and [`streams`], with the ciphers. Real
//! sockets need it, simulations do not: the endpoints of the crate `simulated` have their own packets over the same
//! packet sender and receiver.

// Without connections, parts of handshakes and packet senders are unused.
#![cfg_attr(not(feature = "connections"), allow(dead_code))]

#[cfg(feature = "connections")]
pub mod connection;
#[cfg(feature = "connections")]
pub mod endpoint;
pub mod handshake;
pub mod layers;
pub mod loss_classifier;
pub mod multicast;
pub mod packet_receiver;
pub mod packet_sender;
pub mod protocol;
pub mod ranges;
pub mod rtt;
#[cfg(feature = "connections")]
pub mod streams;

pub use protocol::{
    DatagramConfig, FeedbackConfig, MAX_WINDOW, OpeningExchange, PROTOCOLS, Preset, Protocol,
    RECOVERIES, RecoveryKind, StreamRecovery, TcpConfig,
};
pub use rtt::{RtoConfig, RtoMethod};
