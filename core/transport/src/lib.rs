//! Transport as pure state machines: streams, connections and the endpoint of rrtp, over the packet sender and receiver
//! of `narrows_recovery`; and the list of protocols.
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
pub mod protocol;
#[cfg(feature = "connections")]
pub mod streams;

pub use protocol::{
    DatagramConfig, FeedbackConfig, MAX_WINDOW, OpeningExchange, PROTOCOLS, Preset, Protocol,
    RECOVERIES, RecoveryKind, StreamRecovery, TcpConfig,
};
