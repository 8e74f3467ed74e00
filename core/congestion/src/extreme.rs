//! The smallest or largest value of a sliding time window, in bounded memory.
//!
//! The window is kept in eight parts, so a value stays at most an eighth of the window too long. The window may change
//! its length between two samples (Copa's is half an RTT).

use narrows_base::{Duration, Time};
use std::collections::VecDeque;

const PARTS: u64 = 8;

/// Which end of the values is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    Smallest,
    Largest,
}

/// A sliding extreme of finite values.
#[derive(Clone, Debug)]
pub struct SlidingExtreme {
    keep: Keep,
    /// (when the part began, its extreme), oldest first; values improve from back to front.
    parts: VecDeque<(Time, f64)>,
}

impl SlidingExtreme {
    pub fn new(keep: Keep) -> SlidingExtreme {
        SlidingExtreme { keep, parts: VecDeque::new() }
    }

    /// Adds a sample, and discards those older than `window`.
    pub fn add(&mut self, now: Time, window: Duration, value: f64) {
        while self.parts.len() > 1 && now.since(self.parts[0].0) > window {
            self.parts.pop_front();
        }
        let part = window.as_nanos() / PARTS;
        match self.parts.back_mut() {
            Some((began, last)) if now.since(*began).as_nanos() <= part => {
                *last = if self.keep == Keep::Smallest { last.min(value) } else { last.max(value) };
            }
            _ => self.parts.push_back((now, value)),
        }
        // A part that a later one beats can never be the extreme again.
        while let [.., (_, older), (_, newer)] = self.parts.make_contiguous() {
            let beaten = match self.keep {
                Keep::Smallest => *newer <= *older,
                Keep::Largest => *newer >= *older,
            };
            if !beaten {
                break;
            }
            let kept = self.parts.len() - 2;
            self.parts.remove(kept);
        }
    }

    /// The extreme; `None` before the first sample.
    pub fn get(&self) -> Option<f64> {
        self.parts.front().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::{Keep, SlidingExtreme};
    use narrows_base::{Duration, Time};

    #[test]
    fn a_value_leaves_with_its_window() {
        let window = Duration::from_millis(800);
        for (keep, far, near) in [(Keep::Smallest, 1.0, 2.0), (Keep::Largest, 2.0, 1.0)] {
            let mut extreme = SlidingExtreme::new(keep);
            assert_eq!(extreme.get(), None);
            extreme.add(Time::ZERO, window, far);
            for ms in (10..2000).step_by(10) {
                extreme.add(Time::from_nanos(ms * 1_000_000), window, near);
                let expected = if ms <= 800 { far } else { near };
                assert!(extreme.get() == Some(expected) || (800..=900).contains(&ms), "{ms}");
            }
        }
    }

    #[test]
    fn a_falling_series_needs_no_more_memory_than_its_parts() {
        let window = Duration::from_secs(10);
        let mut extreme = SlidingExtreme::new(Keep::Smallest);
        for i in 0..100_000_u64 {
            extreme.add(Time::from_nanos(i * 1_000_000), window, i as f64);
            assert!(extreme.parts.len() <= 10);
        }
        assert!(extreme.get().is_some_and(|v| (88_000.0..=91_000.0).contains(&v)));
    }
}
