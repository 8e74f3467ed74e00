//! Checks whether the system provides enough threads for a runtime.

use std::io;
use std::num::NonZero;
use std::sync::mpsc::channel;
use std::thread::{Builder, available_parallelism};

/// Threads of a runtime beside its workers: for look-ups of names and files.
const BESIDE: usize = 2;

/// Starts and ends as many threads as a multi-threaded tokio runtime begins with. tokio itself panics or waits forever
/// if the system refuses its threads.
///
/// # Errors
/// The system's refusal.
pub fn has_threads_for_runtime() -> io::Result<()> {
    let workers = available_parallelism().map_or(1, NonZero::get);
    let mut threads = Vec::new();
    let mut refused = None;
    let mut holding = Vec::new();
    for _ in 0..workers + BESIDE {
        let (hold, held) = channel::<()>();
        // Each thread lives until its sender is dropped, so that all of them exist at the same time.
        match Builder::new().spawn(move || {
            let _ = held.recv();
        }) {
            Ok(thread) => threads.push(thread),
            Err(e) => refused = Some(e),
        }
        holding.push(hold);
    }
    drop(holding);
    threads.into_iter().for_each(|thread| drop(thread.join()));
    refused.map_or(Ok(()), Err)
}
