//! `narrows sweep`: a grid over any parameters, every point with several seeds.
//!
//! ```text
//!   Base (file or link) ─ Grid (parameters, points) ─ CheckedSweep (checked, keyed)
//!        ─ execute (threads, journal) ─ Runs ─ SweepOutcome ─ tables, JSON, report
//! ```

pub mod base;
pub mod execute;
pub mod found;
pub mod grid;
pub mod journal;
pub mod key;
pub mod outcome;
pub mod values;

#[cfg(test)]
mod tests;

pub use base::Base;
pub use execute::{CheckedSweep, Runs, SweepControl};
pub use grid::Grid;
pub use outcome::{SweepMetadata, SweepOutcome};
