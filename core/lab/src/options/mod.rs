//! Options of `compare`, `run` and `sweep` with their defaults and messages: one list for the command and the Python
//! package.

pub mod compare;
pub mod run;
pub mod sweep;
pub mod timeline;
pub mod values;
pub mod words;

pub use compare::Compare;
pub use run::Run;
pub use sweep::Sweep;
pub use timeline::TimelineOptions;

/// Heading of options that the short help leaves out.
pub const RARE: &str = "Rarely needed";

use crate::parallel::cores;
use clap::Args;

/// Number of parallel runs.
#[derive(Args, Clone, Debug)]
pub struct Jobs {
    /// Runs at the same time; by default one per core
    #[arg(long, value_name = "J", value_parser = values::number(values::JOBS))]
    pub jobs: Option<usize>,
}

impl Jobs {
    /// Number of threads.
    pub fn count(&self) -> usize {
        self.jobs.unwrap_or_else(cores)
    }
}
