//! Networks drawn at random from a seed, by which controllers are compared. `docs/benchmarks.md` has the distributions and
//! the results.
//!
//! ```text
//!   seed ─draw─> BenchNetwork ─plan─> Plan ─simulate─> Results ─scores─> Score ─Statistic─> value ± half
//! ```

pub mod draw;
mod item;
mod measure;
mod scorecard;
pub mod scores;
mod simulate;
mod statistics;

pub use item::{BenchNetwork, BenchPart, Neighbours};
pub use measure::Figures;
pub use scorecard::{ATLAS_PARTS, NetworkScorecard, NetworkScores, SCORECARD_SEED, ScoreSection};
pub use scores::Results;
pub use simulate::{Simulated, simulate, without_longest};
pub use statistics::{IntervalValue, Statistic, paired};

#[cfg(test)]
mod tests;
