//! How many files this process may have open, and how clients share them.
//!
//! A client may take a descriptor while it has fewer than are free (dynamic thresholds: Choudhury and Hahne 1998). So one
//! client alone gets half of them, *n* greedy clients get one part of *n* + 1 each, and a newcomer always finds some.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the system has no such limit.
#[cfg(not(unix))]
const UNLIMITED: usize = 1 << 16;
/// Connections that have not said yet what they want: at most so many.
const MAX_OPENINGS: usize = 128;

/// Raises the limit of this process as far as it may without privilege. Programs that it starts inherit that.
pub fn raise() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let now = getrlimit(Resource::Nofile);
        // If the system refuses, clients share what there is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
}

/// Descriptors that this process may have open.
fn limit() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        let limit = getrlimit(Resource::Nofile).current;
        limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
    }
    #[cfg(not(unix))]
    UNLIMITED
}

/// Connections that may wait without having said what they want: each takes up to two descriptors.
pub(crate) fn openings() -> usize {
    (limit() / 16).clamp(8, MAX_OPENINGS)
}

/// Descriptors for what clients open. A quarter of all is for the rest of the process.
#[derive(Debug)]
pub struct Descriptors {
    all: usize,
    taken: AtomicUsize,
}

impl Default for Descriptors {
    fn default() -> Descriptors {
        let limit = limit();
        Descriptors::new(limit - limit / 4)
    }
}

impl Descriptors {
    /// So many.
    pub fn new(all: usize) -> Descriptors {
        Descriptors { all, taken: AtomicUsize::new(0) }
    }

    /// Takes one for a client that has `own` already, and says whether it may: if not, it is to be given back, too.
    pub(crate) fn take(&self, own: usize) -> bool {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        own < self.all.saturating_sub(taken)
    }

    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
