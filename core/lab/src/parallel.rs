//! Independent tasks on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of threads that the machine runs at once.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `count` tasks on `jobs` threads, each by its index. Results are in the order of the tasks.
///
/// # Errors
/// An error of a task; tasks that had not begun are left out then.
pub fn parallel<T: Send>(
    count: usize,
    jobs: usize,
    task: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T, String>)>> = Mutex::new(Vec::with_capacity(count));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            return;
        }
        let result = task(index);
        if result.is_err() {
            next.store(count, Ordering::Relaxed);
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(count) {
            // With fewer threads the rest do the same work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_keeps_the_order_and_returns_an_error() {
        let doubled = parallel(100, 4, |i| Ok(2 * i)).unwrap();
        assert_eq!(doubled, (0..100).map(|i| 2 * i).collect::<Vec<_>>());
        let odd = |i: usize| if i == 39 { Err(i.to_string()) } else { Ok(()) };
        assert_eq!(parallel(100, 4, odd).unwrap_err(), "39");
    }
}
