//! Published experiments as data: a scenario, the figure's panels, and claims with the numbers that the paper states.
//! Accepted ranges were chosen before the first run.
//!
//! ```text
//! experiments/<id>/experiment.toml ──────> Experiment ─run─> RunResults ─┬─judge─> verdicts ─┐
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

use std::sync::OnceLock;

pub use experiment::Experiment;
pub use judge::{CheckedClaim, Verdict};
pub use run::RunResults;

/// Adds the papers' printed forms to the lists of this process. Further calls return the result of the first.
///
/// # Errors
/// The lists have been read already.
pub fn install() -> Result<(), String> {
    static RESULT: OnceLock<Result<(), String>> = OnceLock::new();
    let forms = || narrows_printed::add(narrows_sim::Registry::new());
    RESULT.get_or_init(|| forms().install().map_err(|e| e.to_string())).clone()
}
