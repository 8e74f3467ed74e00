//! Data that the application has written and that have not been sent yet.

use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Limit on waiting writes: beyond it the oldest is dropped, so that memory is bounded.
const MAX_WAITING: usize = 1024;

/// Writes in order. A write is split into packets and its last packet may be short: packets never hold parts of two
/// writes.
#[derive(Debug, Default)]
pub(super) struct WaitingWrites {
    endless: bool,
    /// When each write arrived, and its unsent bytes.
    writes: VecDeque<(Time, u64)>,
    /// Whether the first was partly sent, so that it does not expire.
    begun: bool,
    pub expired: u64,
}

impl WaitingWrites {
    pub fn push(&mut self, now: Time, bytes: u64) {
        if bytes == u64::MAX {
            self.endless = true;
        } else if bytes > 0 {
            self.writes.push_back((now, bytes));
            if self.writes.len() > MAX_WAITING {
                self.writes.remove(usize::from(self.begun));
                self.expired += 1;
            }
        }
    }
    pub fn clear(&mut self) {
        self.endless = false;
        self.writes.clear();
        self.begun = false;
    }
    /// Number of waiting bytes.
    pub fn bytes(&self) -> u64 {
        if self.endless { u64::MAX } else { self.writes.iter().map(|w| w.1).sum() }
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.endless && self.writes.is_empty()
    }
    /// Drops writes that waited longer than `expiry`, except one that was partly sent.
    #[inline]
    pub fn expire(&mut self, now: Time, expiry: Duration) {
        if self.endless || expiry == Duration::ZERO {
            return;
        }
        while let Some((written_at, _)) = self.writes.get(usize::from(self.begun)) {
            if now.since(*written_at) <= expiry {
                break;
            }
            self.writes.remove(usize::from(self.begun));
            self.expired += 1;
        }
    }
    /// Takes at most `payload` bytes for the next packet; returns 0 if there are no writes.
    #[inline]
    pub fn take(&mut self, payload: u32) -> u32 {
        if self.endless {
            return payload;
        }
        let Some((_, left)) = self.writes.front_mut() else { return 0 };
        let bytes = (*left).min(u64::from(payload));
        *left -= bytes;
        self.begun = *left > 0;
        if !self.begun {
            self.writes.pop_front();
        }
        bytes as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_keep_their_bounds_and_old_ones_expire() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut w = WaitingWrites::default();
        w.push(at(0), 2500);
        w.push(at(10), 100);
        w.push(at(500), 300);
        assert_eq!((w.take(1000), w.take(1000)), (1000, 1000));
        w.expire(at(600), Duration::from_millis(200));
        assert_eq!(w.expired, 1, "the begun write stays, the second is too old");
        assert_eq!((w.take(1000), w.take(1000), w.take(1000)), (500, 300, 0));
        for i in 0..3000 {
            w.push(at(i), 1);
        }
        assert_eq!(w.writes.len(), MAX_WAITING);
    }
}
