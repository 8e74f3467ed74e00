//! Independent pieces of work on several threads.

use narrows_lab::parallel::parallel;
use std::collections::BTreeMap;

/// A simulation of a case.
pub struct SeedRun {
    /// Index of the case.
    pub case: usize,
    pub protocol: String,
    pub seed: u64,
    /// Packets, about.
    pub cost: f64,
}

/// Results by seed, for each case and protocol.
pub type BySeed<R> = BTreeMap<(usize, String), BTreeMap<u64, R>>;

/// Runs simulations on `jobs` threads, the longest first, so that no core is left with one at the end.
///
/// # Errors
/// Those of `work`.
pub fn simulate<R: Send>(
    runs: &mut [SeedRun],
    jobs: usize,
    work: impl Fn(&SeedRun) -> Result<R, String> + Sync,
) -> Result<BySeed<R>, String> {
    runs.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let mut all = BySeed::new();
    let results = parallel(runs.len(), jobs, |i| work(&runs[i]))?;
    for (run, result) in runs.iter().zip(results) {
        all.entry((run.case, run.protocol.clone())).or_default().insert(run.seed, result);
    }
    Ok(all)
}

/// Threads that this machine runs at once.
pub fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
