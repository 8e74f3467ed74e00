//! A network in virtual time to test a transport stack in: links with queues, losses and jitter, routers, address
//! translators.

mod datagram;
mod nat;
mod network;
mod store;

pub use datagram::{Datagram, Ecn};
pub use nat::NatKind;
pub use network::{LinkId, Network, NetworkCounts, NodeId};
pub use store::LinkCounts;

pub use narrows_base::SpecError;
