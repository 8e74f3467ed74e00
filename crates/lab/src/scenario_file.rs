//! Scenario files: TOML in, TOML out.
//!
//! Every error names the line. What is unknown gets a suggestion. The form is described in
//! `docs/scenarios.md`.

mod read;
mod write;

pub use read::{load, packet, parse, preset};
pub use write::text;
