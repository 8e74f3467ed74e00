#![doc = include_str!("../README.md")]

mod datagram;
#[cfg(feature = "toml")]
mod description;
mod files;
mod ids;
#[cfg(feature = "smoltcp")]
mod ip_packet;
mod nat;
mod network;
mod node;
#[cfg(feature = "noq")]
pub mod noq;
mod observe;
#[cfg(any(feature = "noq", feature = "quinn"))]
mod quic;
#[cfg(feature = "quinn")]
pub mod quinn;
mod script;
#[cfg(feature = "sim")]
pub mod simulated;
#[cfg(feature = "smoltcp")]
pub mod smoltcp;
mod store;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use datagram::{Datagram, Ecn};
#[cfg(feature = "toml")]
pub use description::Description;
pub use files::{FileCounts, NetworkFile};
pub use ids::{LinkId, NodeId};
pub use nat::NatKind;
pub use network::{Network, NetworkCounts};
pub use node::{Ended, Node, run};
pub use observe::{Fate, NetworkEvent, Place};
pub use script::{Expectation, Failure, Script, When};
pub use store::LinkCounts;

pub use narrows_base::SpecError;
