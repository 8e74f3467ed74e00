//! How much data a connection moves, and whether that suffices to keep its place.

use narrows_base::{Duration, Time};

/// Whoever moved so many bytes since the last mark but one (between one and two pauses ago) moves data:
/// 7 kbit/s.
pub(super) const MIN_MOVING: u64 = 8192;
/// Whoever moved so many keeps its place however many connections its network has: 50 kbit/s.
pub(super) const MIN_MOVING_MUCH: u64 = 65_536;
const PAUSE: Duration = Duration::from_secs(10);

/// How much data a connection moves: streams and messages, either way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    total: u64,
    /// When `before` became `marked`: the last mark.
    since: Time,
    /// When `total` rose.
    last: Time,
    marked: u64,
    before: u64,
}

impl Activity {
    pub(super) fn new(now: Time) -> Activity {
        Activity { total: 0, since: now, last: now, marked: 0, before: 0 }
    }
    /// It has moved so much since it began.
    #[inline]
    pub(super) fn on_total(&mut self, now: Time, total: u64) {
        let age = now.since(self.since);
        if age >= PAUSE {
            // After two pauses without a word of it nothing moved lately.
            self.before = if age >= PAUSE.saturating_mul(2) { self.total } else { self.marked };
            (self.marked, self.since) = (self.total, now);
        }
        if total > self.total {
            (self.total, self.last) = (total, now);
        }
    }
    /// Bytes of the last one to two pauses, and of all time.
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
    /// When it was seen to move something.
    pub(super) fn last(&self) -> Time {
        self.last
    }
    /// Whether it moved so many bytes lately.
    pub(super) fn moves(&self, now: Time, bytes: u64) -> bool {
        self.bytes(now).0 >= bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_lately_is_forgotten_after_two_pauses() {
        let at = |s: u64| Time::ZERO + Duration::from_secs(s);
        let mut activity = Activity::new(at(0));
        assert!(!activity.moves(at(0), MIN_MOVING));
        activity.on_total(at(1), 100_000);
        assert!(activity.moves(at(1), MIN_MOVING) && activity.moves(at(9), MIN_MOVING));
        // Silence.
        assert!(!activity.moves(at(20), MIN_MOVING));
        assert_eq!(activity.bytes(at(20)), (0, 100_000));
        // A few bytes for a long time.
        for second in 20..60 {
            activity.on_total(at(second), 100_000 + second);
        }
        assert!(!activity.moves(at(60), MIN_MOVING));
        // As much as counts, in every pause.
        for second in 60..100 {
            activity.on_total(at(second), 100_060 + (second - 60) * MIN_MOVING / 10);
        }
        assert!(activity.moves(at(100), MIN_MOVING) && !activity.moves(at(120), MIN_MOVING));
    }
}
