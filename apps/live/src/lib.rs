//! A local page that shows runs in progress: queues and their drops, windows, rates, RTTs, single packets, and
//! explanations of a controller's reactions.
//!
//! A run writes into a [`Feed`](feed::Feed) and never waits; [`LivePage`] serves it to browsers that have the token.
//! Simulations are observed by [`simulation`], relays and emulated links by [`link`], real connections by [`endpoint`],
//! media by [`media`]. [`metrics`] are the same sources as counters for Prometheus.

pub mod board;
#[cfg(feature = "connections")]
pub mod connections;
#[cfg(feature = "connections")]
pub mod controls;
#[cfg(feature = "connections")]
pub mod endpoint;
pub mod explain;
pub mod feed;
#[cfg(feature = "connections")]
pub mod link;
#[cfg(feature = "connections")]
pub mod media;
#[cfg(feature = "connections")]
pub mod metrics;
pub mod page;
pub mod simulation;

#[cfg(feature = "connections")]
mod server;

#[cfg(feature = "connections")]
pub use server::metrics::MetricsListener;
#[cfg(feature = "connections")]
pub use server::{BoundPage, LivePage};
