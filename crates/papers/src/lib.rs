//! Published experiments as data: a scenario, the figure's panels, and claims with the numbers that the paper states.
//! Accepted ranges were chosen before the first run.
//!
//! ```text
//! experiments/<id>/experiment.toml ──────> Experiment ─run─> Observed ─┬─judge─> verdicts ─┐
//!                 scenario.toml ───────────^                           └─panel─> figure    ├─page─> README.md
//!                                                                                          ┘        result.json
//! ```
//!
//! `cargo xtask validate` processes all folders; `experiments/README.md` describes how to add one.

pub mod cause;
pub mod coverage;
mod evaluate;
pub mod experiment;
pub mod interval;
pub mod judge;
pub mod linux;
pub mod measured;
pub mod models;
pub mod ns2;
pub mod page;
pub mod panel;
pub mod polynomial;
pub mod quantity;
pub mod random_quality;
mod recorded;
pub mod row_references;
pub mod run;
pub mod sample;
pub mod stat;
pub mod stpd_model;
mod varied;

#[cfg(test)]
mod tests;

pub use experiment::Experiment;
pub use judge::{Judged, Verdict};
pub use run::Observed;
