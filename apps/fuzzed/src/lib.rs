//! Fuzz targets: functions that accept any bytes and panic if an invariant is violated. libFuzzer calls them from
//! `fuzz_targets`. The tests of this crate call them, on any toolchain, with the inputs of `fuzz/seeds` and with
//! mutations of these; the runner `mutational` does so for a given time.

mod bytes;
pub mod client;
pub mod controllers;
pub mod endpoint;
pub mod frames;
pub mod groups;
pub mod media;
pub mod messages;
pub mod mutation;
mod network;
pub mod packets;
pub mod probe;
pub mod scenario;
pub mod sealed;
pub mod service;
pub mod specs;
pub mod tcp;
pub mod texts;
pub mod tunnel;

/// Runs one input.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("client", client::run),
    ("controllers", controllers::run),
    ("endpoint", endpoint::run),
    ("frames", frames::run),
    ("groups", groups::run),
    ("media", media::run),
    ("messages", messages::run),
    ("packets", packets::run),
    ("probe", probe::run),
    ("scenario", scenario::run),
    ("sealed", sealed::run),
    ("service", service::run),
    ("specs", specs::run),
    ("tcp", tcp::run),
    ("texts", texts::run),
    ("tunnel", tunnel::run),
];
