//! The process's limit on open files, and its division among clients.
//!
//! A client may take a descriptor while it has fewer than are free (dynamic thresholds: Choudhury and Hahne 1998). So a
//! single client gets at most half of them, *n* greedy clients get a share of 1/(*n* + 1) each, and a new client always
//! gets some.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Assumed limit on systems without one.
#[cfg(not(unix))]
const UNLIMITED: usize = 1 << 16;
/// Maximum number of connections without a request.
const MAX_OPENINGS: usize = 128;

/// Raises the process's limit as far as possible without privileges. Child processes inherit the limit.
pub fn raise() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let now = getrlimit(Resource::Nofile);
        // If the system refuses, the present limit is divided among the clients.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
}

/// Current limit on open descriptors.
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

/// Maximum number of connections that may wait without a request; each takes up to two descriptors.
pub(crate) fn openings() -> usize {
    (limit() / 16).clamp(8, MAX_OPENINGS)
}

/// Counts the descriptors of clients. A quarter of the limit is reserved for the rest of the process.
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
    /// A pool of `all` descriptors.
    pub fn new(all: usize) -> Descriptors {
        Descriptors { all, taken: AtomicUsize::new(0) }
    }

    /// Takes one for a client that has `own` already. False if it exceeds the client's share; it must be given back in
    /// either case.
    pub(crate) fn take(&self, own: usize) -> bool {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        own < self.all.saturating_sub(taken)
    }

    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
