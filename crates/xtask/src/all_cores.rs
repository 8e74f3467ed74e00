//! Independent pieces of work on several threads.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `work` to each element of `list` on `jobs` threads and returns the results in the order of the list.
///
/// # Errors
/// The first error of `work` in the order of the list; elements after it may have been left out.
pub fn map<T: Sync, R: Send>(
    list: &[T],
    jobs: usize,
    work: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    let results: Mutex<Vec<(usize, Result<R, String>)>> = Mutex::new(Vec::new());
    let thread = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        let Some(element) = list.get(i) else { return };
        if failed.load(Ordering::Relaxed) < i {
            return;
        }
        let result = work(element);
        if result.is_err() {
            failed.fetch_min(i, Ordering::Relaxed);
        }
        if let Ok(mut results) = results.lock() {
            results.push((i, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(list.len()) {
            scope.spawn(thread);
        }
        thread();
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A simulation of a case.
pub struct SeedRun<P> {
    /// Index of the case.
    pub case: usize,
    /// Label of its figures: a protocol or a variant.
    pub label: String,
    pub seed: u64,
    /// Packets, about.
    pub cost: f64,
    pub plan: P,
}

/// Results by seed, for each case and label.
pub type BySeed<R> = BTreeMap<(usize, String), BTreeMap<u64, R>>;

/// Runs simulations on `jobs` threads, the longest first, so that no core is left with one at the end.
///
/// # Errors
/// As those of [`map`].
pub fn simulate<P: Sync, R: Send>(
    runs: &mut [SeedRun<P>],
    jobs: usize,
    work: impl Fn(&SeedRun<P>) -> Result<R, String> + Sync,
) -> Result<BySeed<R>, String> {
    runs.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let mut all = BySeed::new();
    for (run, result) in runs.iter().zip(map(runs, jobs, work)?) {
        all.entry((run.case, run.label.clone())).or_default().insert(run.seed, result);
    }
    Ok(all)
}

/// Threads that this machine runs at once.
pub fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_and_the_first_error_is_returned() {
        let list: Vec<u32> = (0..100).collect();
        let doubled = map(&list, 4, |x| Ok(2 * x)).unwrap();
        assert_eq!(doubled, list.iter().map(|x| 2 * x).collect::<Vec<_>>());
        let odd = |x: &u32| if x % 40 == 39 { Err(x.to_string()) } else { Ok(()) };
        assert_eq!(map(&list, 4, odd).unwrap_err(), "39");
    }
}
