//! Transport as pure state machines: streams, connections and the endpoint of rrtp, over the packet sender and receiver
//! of `narrows_recovery`.

pub mod connection;
pub mod endpoint;
pub mod streams;

pub use narrows_recovery::protocol::{PACKET_BYTES, Protocol};
