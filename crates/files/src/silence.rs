//! Limit on a peer's silence. Traffic in either direction counts, because the sender of a large file receives little
//! meanwhile.

use crate::error::{Error, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a peer may be silent within a transfer. One at work says so every second, and the kernel's TCP
/// takes up to twice as long as an outage to go on after it.
pub const SILENCE: Duration = Duration::from_secs(120);

/// Of one stream; clones are the same.
#[derive(Clone)]
pub(crate) struct Silence {
    limit: Duration,
    begun: Instant,
    /// When something moved last, ms after the beginning.
    moved: Arc<AtomicU64>,
}

impl Silence {
    /// At most so long.
    pub fn new(limit: Duration) -> Silence {
        Silence { limit, begun: Instant::now(), moved: Arc::default() }
    }

    /// Something moved now.
    pub fn moved(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }

    /// Why a wait that began then is over, if it is.
    pub fn over(&self, waiting_since: Instant) -> Option<Error> {
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        let quiet = waiting_since.elapsed().min(self.begun.elapsed().saturating_sub(moved));
        (quiet >= self.limit).then(|| {
            let line = format!("the other end was silent for {} s", self.limit.as_secs());
            Error::new(Kind::Cut, line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wait_in_which_nothing_moves_at_all_is_over() {
        let limit = Duration::from_secs(2);
        let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(3)) else { return };
        let mut silence = Silence { begun: long_ago, ..Silence::new(limit) };
        // One that begins now, though nothing came for long.
        assert!(silence.over(Instant::now()).is_none());
        assert!(silence.over(long_ago).is_some());
        // The other direction moved meanwhile.
        silence.clone().moved();
        assert!(silence.over(long_ago).is_none());
        silence.limit = Duration::ZERO;
        assert_eq!(silence.over(long_ago).unwrap().kind, Kind::Cut);
    }
}
