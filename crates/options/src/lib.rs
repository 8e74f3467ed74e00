//! What `compare`, `run` and `sweep` can be told: one list of options with their defaults and messages, for the command
//! and for the Python package alike.

pub mod compare;
pub mod run;
pub mod sweep;
pub mod timeline;
pub mod values;
pub mod words;

pub use compare::Compare;
pub use run::Run;
pub use sweep::Sweep;
pub use timeline::Timeline;

use clap::Args;

/// How much of the machine is used.
#[derive(Args, Clone, Debug)]
pub struct Jobs {
    /// Runs at the same time; by default one per core
    #[arg(long, value_name = "J", value_parser = values::jobs)]
    pub jobs: Option<usize>,
}

impl Jobs {
    /// How many threads work.
    pub fn count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cores)
    }
}
