//! A bound on the mean rate of bytes, which several connections of one client may share.

use narrows_base::Rate;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Capacity that is unused for this time expires.
const BURST: Duration = Duration::from_millis(100);
/// Longest part of a wait after which its caller may end it.
const STEP: Duration = Duration::from_millis(100);
/// Time that the bytes of one piece take, in seconds, and bounds of their number. Streams of one client alternate by
/// pieces.
const PIECE: f64 = 0.02;
const LEAST: f64 = 1000.0;
const MOST: f64 = 32768.0;

/// Bounds the mean rate of bytes, or does not.
#[derive(Debug)]
pub struct RateCap(Mutex<CapState>);

#[derive(Debug)]
struct CapState {
    /// `None`: unbounded.
    bytes_per_s: Option<f64>,
    /// When the bytes that were counted have passed.
    free: Instant,
}

impl RateCap {
    /// A cap at this rate; `None`: unbounded.
    pub fn new(rate: Option<Rate>) -> RateCap {
        let cap = RateCap(Mutex::new(CapState { bytes_per_s: None, free: Instant::now() }));
        cap.set(rate);
        cap
    }

    /// Replaces the rate for all bytes that are not counted yet.
    pub fn set(&self, rate: Option<Rate>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes_per_s = rate.map(|rate| rate.as_bps() as f64 / 8.0);
        if state.bytes_per_s != bytes_per_s {
            *state = CapState { bytes_per_s, free: Instant::now() };
        }
    }

    /// Most bytes that one stream should pass at once; unlimited without a rate.
    pub fn piece(&self) -> usize {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes_per_s.map_or(usize::MAX, |rate| (rate * PIECE).clamp(LEAST, MOST) as usize)
    }

    /// Counts these bytes, and returns the time after which they may pass.
    pub fn delay(&self, now: Instant, bytes: usize) -> Duration {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.count(now, bytes).saturating_duration_since(now)
    }

    /// Whether further bytes may pass now.
    pub fn is_free(&self, now: Instant) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes_per_s.is_none() || state.free <= now
    }

    /// Counts these bytes if they may pass now; otherwise they must be dropped.
    pub fn admits(&self, now: Instant, bytes: usize) -> bool {
        let is_free = self.is_free(now);
        if is_free {
            self.delay(now, bytes);
        }
        is_free
    }

    /// Counts these bytes and sleeps until they may pass.
    ///
    /// # Errors
    /// That of `go_on`, which is called at least once in 100 ms.
    pub fn pass<E>(&self, bytes: usize, go_on: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let due = Instant::now() + self.delay(Instant::now(), bytes);
        loop {
            go_on()?;
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(STEP));
        }
    }
}

impl CapState {
    /// Counts these bytes, and returns when they may pass.
    fn count(&mut self, now: Instant, bytes: usize) -> Instant {
        let Some(rate) = self.bytes_per_s else { return now };
        let took = Duration::try_from_secs_f64(bytes as f64 / rate);
        let took = took.unwrap_or(Duration::MAX).min(Duration::from_secs(3600));
        let due = now.checked_sub(BURST).map_or(self.free, |early| self.free.max(early));
        self.free = due + took;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_a_cap_have_its_rate_together() {
        let cap = RateCap::new(Some(Rate::from_bps(8_000_000)));
        let now = Instant::now() + Duration::from_secs(9);
        let waits: Vec<_> = (0..4).map(|_| cap.delay(now, 100_000).as_millis()).collect();
        // The first two use what 100 ms left.
        assert_eq!(waits, [0, 0, 100, 200]);
        assert!(!cap.admits(now, 1) && cap.admits(now + Duration::from_millis(300), 1));
    }

    #[test]
    fn another_rate_holds_at_once() {
        let cap = RateCap::new(Some(Rate::from_bps(800)));
        let now = Instant::now() + Duration::from_secs(9);
        cap.delay(now, 100_000);
        assert!(!cap.is_free(now));
        cap.set(None);
        assert!(cap.is_free(now) && cap.delay(now, usize::MAX).is_zero());
        cap.set(Some(Rate::from_bps(800)));
        cap.delay(now, 90);
        assert_eq!(cap.delay(now, 1).as_millis(), 800);
    }
}
