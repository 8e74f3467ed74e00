//! State shared by the relay's thread, its owner and observers.

use super::stats::{LatenessCounter, RelayStats};
use crate::wait::Waker;
use narrows_base::Time;
use narrows_link::LinkChange;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// State shared by the relay's thread and its owner.
#[derive(Debug)]
pub(super) struct RelayShared {
    pub stop: AtomicBool,
    /// Whether the thread has ended.
    pub over: AtomicBool,
    pub waker: Waker,
    pub counts: Mutex<RelayCounts>,
    /// Changes for the thread: time, direction, change.
    pub changes: Mutex<Vec<(Time, usize, LinkChange)>>,
}

/// Counters of the relay.
#[derive(Debug)]
pub(super) struct RelayCounts {
    pub stats: RelayStats,
    pub late: LatenessCounter,
    /// Datagrams in the two queues.
    pub waiting: [usize; 2],
    /// The largest numbers since the last query.
    pub max: [usize; 2],
}

/// Counters stay usable after a panic of another thread.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
