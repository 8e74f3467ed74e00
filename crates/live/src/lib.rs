//! A local page on which runs are seen while they go on: queues and what they drop, windows, rates, round-trip times, single
//! packets, and why a controller did what it did.
//!
//! A run writes into a [`Feed`](feed::Feed) and never waits; [`Live`] serves it to browsers that know the token.
//! Simulations are observed by [`simulation`], relays and emulated links by [`link`], real connections by [`endpoint`],
//! media by [`media`].

pub mod board;
pub mod connections;
pub mod controls;
pub mod endpoint;
pub mod explain;
pub mod feed;
pub mod link;
pub mod media;
pub mod simulation;

mod page;
mod server;

pub use server::{Listening, Live};
