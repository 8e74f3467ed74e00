//! Transport endpoints as pure state machines, and the list of protocols.
//!
//! A protocol that a user names is a combination: an endpoint, a controller, a way to repair
//! losses. One entry in [`protocol::PROTOCOLS`] is all that a new combination needs.

pub mod protocol;
pub mod tcp;

pub use protocol::{PROTOCOLS, Protocol, RECOVERIES};
pub use tcp::{Preset, TcpConfig};
