//! For how long, and how often, a client asks a server that is busy.

use std::time::{Duration, Instant};

/// As long as a server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before the second attempt; then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LAST_WAIT: Duration = Duration::from_secs(2);
/// From then on the user is told.
const LONG: Duration = Duration::from_secs(2);

/// What is left of it.
pub(super) struct Patience {
    until: Instant,
    wait: Duration,
    is_told: bool,
}

impl Patience {
    pub fn new(now: Instant) -> Patience {
        Patience { until: now + PATIENCE, wait: FIRST_WAIT, is_told: false }
    }

    /// How long an attempt may take that begins now.
    pub fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// How long to wait before the next attempt, if there may be one: between half of a time that doubles
    /// and three halves (`random_key`: 0 to 1), so that those who were turned away together do not come again
    /// together.
    pub fn next(&mut self, now: Instant, random_key: f64) -> Option<Duration> {
        let wait = self.wait.mul_f64(0.5 + random_key);
        self.wait = (self.wait * 2).min(LAST_WAIT);
        (wait < self.left(now)).then_some(wait)
    }

    /// Whether the user is to be told now that the server is busy: once.
    pub fn tells(&mut self, now: Instant) -> bool {
        let is_long = PATIENCE.saturating_sub(self.left(now)) >= LONG;
        is_long && !std::mem::replace(&mut self.is_told, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_and_end_with_the_patience() {
        for random_key in [0.0, 0.5, 1.0] {
            let began = Instant::now();
            let (mut patience, mut now, mut waits) = (Patience::new(began), began, Vec::new());
            while let Some(wait) = patience.next(now, random_key) {
                waits.push(wait);
                now += wait;
            }
            assert!(now - began < PATIENCE && waits.len() >= 5, "{waits:?}");
            assert!(waits.is_sorted() && waits[0] <= FIRST_WAIT * 2, "{waits:?}");
            assert!(waits.iter().all(|w| *w <= LAST_WAIT.mul_f64(1.5)), "{waits:?}");
            assert_eq!(patience.left(began + PATIENCE), Duration::ZERO);
        }
    }

    #[test]
    fn the_user_is_told_once_and_only_if_it_lasts() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        assert!(!patience.tells(began + LONG / 2));
        assert!(patience.tells(began + LONG));
        assert!(!patience.tells(began + LONG * 2));
    }
}
