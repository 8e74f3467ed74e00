//! The amount of data that a connection moves, which decides whether it keeps its place.

use narrows_base::{Duration, Time};

/// A connection counts as moving data if it moved this many bytes since the last mark but one, 10 to 20 s ago: 7
/// kbit/s.
pub(super) const MIN_MOVING: u64 = 8192;
/// A connection that moved this many bytes keeps its place, regardless of the number of connections of its network: 50
/// kbit/s.
pub(super) const MIN_MOVING_MUCH: u64 = 65_536;
const PAUSE: Duration = Duration::from_secs(10);

/// Data of streams and messages moved by a connection, in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    total: u64,
    /// Time of the last mark, when `before` became the former `marked`.
    since: Time,
    /// When `total` last rose.
    last: Time,
    marked: u64,
    before: u64,
}

impl Activity {
    pub(super) fn new(now: Time) -> Activity {
        Activity { total: 0, since: now, last: now, marked: 0, before: 0 }
    }
    /// Updates the bytes moved since the connection began.
    #[inline]
    pub(super) fn on_total(&mut self, now: Time, total: u64) {
        let age = now.since(self.since);
        if age >= PAUSE {
            // After two pauses without an update, no data moved lately.
            self.before = if age >= PAUSE.saturating_mul(2) { self.total } else { self.marked };
            self.marked = self.total;
            self.since = now;
        }
        if total > self.total {
            self.total = total;
            self.last = now;
        }
    }
    /// Bytes of the last one to two pauses, and in all.
    pub(super) fn bytes(&self, now: Time) -> (u64, u64) {
        let age = now.since(self.since);
        let from = if age >= PAUSE.saturating_mul(2) {
            self.total
        } else if age >= PAUSE {
            self.marked
        } else {
            self.before
        };
        (self.total - from.min(self.total), self.total)
    }
    /// When data last moved.
    pub(super) fn last(&self) -> Time {
        self.last
    }
    /// Whether at least this many bytes moved lately.
    pub(super) fn moves(&self, now: Time, bytes: u64) -> bool {
        self.bytes(now).0 >= bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_activity_is_forgotten_after_two_pauses() {
        let at = |s: u64| Time::ZERO + Duration::from_secs(s);
        let mut activity = Activity::new(at(0));
        assert!(!activity.moves(at(0), MIN_MOVING));
        activity.on_total(at(1), 100_000);
        assert!(activity.moves(at(1), MIN_MOVING) && activity.moves(at(9), MIN_MOVING));
        // Idle.
        assert!(!activity.moves(at(20), MIN_MOVING));
        assert_eq!(activity.bytes(at(20)), (0, 100_000));
        // A few bytes for a long time.
        for second in 20..60 {
            activity.on_total(at(second), 100_000 + second);
        }
        assert!(!activity.moves(at(60), MIN_MOVING));
        // Just enough in every pause.
        for second in 60..100 {
            activity.on_total(at(second), 100_060 + (second - 60) * MIN_MOVING / 10);
        }
        assert!(activity.moves(at(100), MIN_MOVING) && !activity.moves(at(120), MIN_MOVING));
    }
}
