//! Limit on a peer's silence. Traffic in either direction counts, because the sender of a large file receives little
//! meanwhile.

use narrows_peers::error::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest silence of a peer within a transfer. A working peer sends WAIT every second, and after an outage the
/// kernel's TCP takes up to twice the outage's length to resume.
pub const SILENCE: Duration = Duration::from_secs(120);

/// The silence of one stream. Clones share their state.
#[derive(Clone)]
pub(crate) struct Silence {
    limit: Duration,
    begun: Instant,
    /// Time of the last traffic, ms after `begun`.
    moved: Arc<AtomicU64>,
}

impl Silence {
    /// `limit` is the longest permitted silence.
    pub fn new(limit: Duration) -> Silence {
        Silence { limit, begun: Instant::now(), moved: Arc::default() }
    }

    /// Records traffic.
    pub fn moved(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }

    /// The error of a wait that began at `waiting_since`, once the limit is reached.
    pub fn over(&self, waiting_since: Instant) -> Option<Error> {
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        let quiet = waiting_since.elapsed().min(self.begun.elapsed().saturating_sub(moved));
        (quiet >= self.limit).then(|| {
            let line = format!("the other end was silent for {} s", self.limit.as_secs());
            Error::new(ErrorKind::Cut, line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_only_without_any_progress() {
        let limit = Duration::from_secs(2);
        let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(3)) else { return };
        let mut silence = Silence { begun: long_ago, ..Silence::new(limit) };
        // A wait that begins now, although the last traffic is long ago.
        assert!(silence.over(Instant::now()).is_none());
        assert!(silence.over(long_ago).is_some());
        // Meanwhile there was traffic in the other direction.
        silence.clone().moved();
        assert!(silence.over(long_ago).is_none());
        silence.limit = Duration::ZERO;
        assert_eq!(silence.over(long_ago).unwrap().kind, ErrorKind::Cut);
    }
}
