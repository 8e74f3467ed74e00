//! Comparisons and sweeps of simulations: measures, statistics, and a recommendation.
//!
//! ```text
//!   flags ──compare──╮
//!                    ├─> Scenario ─> Plan ─execute─> Runs ─collect─> Outcome
//!   file ────────────╯  (crate scenario)  (numbers)     (means, intervals)
//! ```
//!
//! Tables, JSON and reports of an outcome are in the crate `report`.

pub mod attack;
pub mod buffers;
pub mod catalogue;
pub mod collect;
pub mod compare;
#[cfg(feature = "env")]
pub mod env;
pub mod execute;
pub mod interval;
pub mod measure;
pub mod networks;
#[cfg(feature = "options")]
pub mod options;
pub mod outcome;
pub mod parallel;
pub mod recommendation;
pub mod response;
pub mod scorecard;
mod share_beside_cubic;
pub mod stats;
pub mod sweep;

pub use compare::Question;
pub use outcome::Outcome;
