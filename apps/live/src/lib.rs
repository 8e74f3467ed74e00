//! A local page that shows runs in progress: queues and their drops, windows, rates, RTTs, single packets, and
//! explanations of a controller's reactions.
//!
//! A run writes into a [`Feed`](feed::Feed) and never waits; [`LivePage`] serves it to browsers that have the token.
//! Simulations are observed by [`simulation`], relays and emulated links by [`link`], real connections by [`endpoint`],
//! media by [`media`]. [`metrics`] are the same sources as counters for Prometheus.

pub mod board;
pub mod connections;
pub mod controls;
pub mod endpoint;
pub mod explain;
pub mod feed;
pub mod link;
pub mod media;
pub mod metrics;
pub mod simulation;

mod page;
mod server;

pub use server::metrics::MetricsListener;
pub use server::{BoundPage, LivePage};
