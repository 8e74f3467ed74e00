//! Transport endpoints as pure state machines, and the list of protocols.
//!
//! A protocol that a user names is a combination: an endpoint, a controller, a way to repair
//! losses. One entry in [`protocol::PROTOCOLS`] is all that a new combination needs; a stream over
//! our endpoint under any controller (`rrtp+NAME`) needs none.
//!
//! Feature `connections` (on unless turned off) adds [`connection`], [`port`] and [`streams`]: what real sockets
//! need and simulations do not, with the ciphers.

// Openings and carriers have one user less without connections.
#![cfg_attr(not(feature = "connections"), allow(dead_code))]

mod answers;
pub mod carrier;
#[cfg(feature = "connections")]
pub mod connection;
pub mod datagram;
pub mod endpoint;
#[cfg(feature = "connections")]
pub mod port;
pub mod protocol;
pub mod ranges;
mod repeat;
pub mod rtt;
mod sounding;
#[cfg(feature = "connections")]
pub mod streams;
pub mod tcp;
pub mod verdict;

pub use datagram::DatagramConfig;
pub use endpoint::{Counters, Input, Output, ReceivingEnd, SendingEnd};
pub use protocol::{PROTOCOLS, Protocol, RECOVERIES};
pub use rtt::RtoConfig;
pub use tcp::{Preset, TcpConfig};
