//! What the relay's thread and those who look at it share.

use super::stats::{LatenessCounter, RelayStats};
use crate::wait::Waker;
use narrows_base::Time;
use narrows_link::Change;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// What the relay's thread and its owner share.
#[derive(Debug)]
pub(super) struct Shared {
    pub stop: AtomicBool,
    /// The thread has ended.
    pub over: AtomicBool,
    pub waker: Waker,
    pub counts: Mutex<Counts>,
    /// Changes that the thread has not taken yet: when, which direction, what.
    pub changes: Mutex<Vec<(Time, usize, Change)>>,
}

/// What is counted.
#[derive(Debug)]
pub(super) struct Counts {
    pub stats: RelayStats,
    pub late: LatenessCounter,
    /// Datagrams in the two queues.
    pub waiting: [usize; 2],
    /// The most of them since somebody looked.
    pub most: [usize; 2],
}

/// What a panic elsewhere left behind is still counted right enough.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
