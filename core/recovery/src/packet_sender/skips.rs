//! Packet numbers that are skipped on purpose (RFC 9000 section 21.4). A receiver that acknowledges one of them has not
//! received it.
//!
//! The packet directly above carries the number of skipped ones, encrypted, so a receiver that gets it never takes them
//! for lost. A receiver that does not get it cannot distinguish a skipped number from the lost packets beside it, so
//! acknowledging lost packets blindly is detected. The distances are geometric: every number is skipped with the same
//! probability, so that no range is safe to acknowledge blindly.

use narrows_base::{math, random::unit};
use std::collections::VecDeque;

/// Mean number of packets between two skipped numbers. Announcements and longer reports cost less than a thousandth of
/// the bytes. At 50% loss, a receiver that acknowledges every number is detected after twice as many packets on
/// average.
const MEAN: f64 = 128.0;
/// Longest distance between two skipped numbers.
const MAX_DISTANCE: f64 = 8.0 * MEAN;
/// Skipped numbers remembered below the lowest number of unknown outcome.
const REMEMBERED: usize = 64;

/// Chooses and remembers skipped numbers.
pub(super) struct Skips {
    draws: Box<dyn FnMut() -> u64 + Send + Sync>,
    mean: f64,
    /// Packets until the next skipped number.
    left: u64,
    /// Ascending: all above the lowest number of unknown outcome, and some below.
    numbers: VecDeque<u64>,
}

impl Skips {
    /// `draws` returns 64 random bits that the peer cannot predict.
    pub fn new(draws: impl FnMut() -> u64 + Send + Sync + 'static) -> Skips {
        let draws = Box::new(draws);
        let mut skips = Skips { draws, mean: MEAN, left: 0, numbers: VecDeque::new() };
        skips.left = skips.gap();
        skips
    }
    /// Sets the mean distance.
    #[cfg(any(test, feature = "inspect"))]
    pub fn set_mean(&mut self, mean: f64) {
        self.mean = mean;
        self.left = self.gap();
    }

    fn gap(&mut self) -> u64 {
        // 1 - unit is in (0, 1], so the logarithm is finite.
        let drawn = -self.mean * math::ln(1.0 - unit((self.draws)()));
        1 + drawn.min(MAX_DISTANCE) as u64
    }

    /// A packet below number `next` was sent: returns whether `next` is skipped.
    #[inline]
    pub fn is_next_skipped(&mut self, next: u64, least_unacked: u64) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = self.gap();
        while self.numbers.len() >= REMEMBERED
            && self.numbers.front().is_some_and(|n| *n < least_unacked)
        {
            self.numbers.pop_front();
        }
        self.numbers.push_back(next);
        true
    }

    /// How many of `[from, to)` were skipped.
    #[inline]
    pub fn count(&self, from: u64, to: u64) -> u64 {
        if self.numbers.back().is_none_or(|last| *last < from) {
            return 0;
        }
        let below = |n| self.numbers.partition_point(|skipped| *skipped < n);
        below(to).saturating_sub(below(from)) as u64
    }

    /// Heap memory, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Skips>() + self.numbers.capacity() * size_of::<u64>()
    }
}

impl std::fmt::Debug for Skips {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Skips({:?}, {} to the next)", self.numbers, self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::random::RandomKey;

    fn skips(seed: u64) -> Skips {
        let mut draws = RandomKey::from_seed(seed).stream();
        Skips::new(move || draws.bits())
    }

    fn numbers(seed: u64, packets: u64) -> Vec<u64> {
        let mut skips = skips(seed);
        let mut next = 0;
        let mut skipped = Vec::new();
        for _ in 0..packets {
            next += 1;
            if skips.is_next_skipped(next, next) {
                skipped.push(next);
                next += 1;
            }
        }
        skipped
    }

    #[test]
    fn about_one_number_in_128_is_skipped_unpredictably() {
        let skipped = numbers(1, 200_000);
        let share = skipped.len() as f64 / 200_000.0;
        assert!((share * MEAN - 1.0).abs() < 0.1, "{share}");
        assert_ne!(skipped, numbers(2, 200_000));
        // The distribution is memoryless: of the gaps longer than n, the same share ends within the next ten packets.
        let gaps: Vec<u64> = skipped.windows(2).map(|w| w[1] - w[0]).collect();
        for longer in [10, 50, 100, 200] {
            let of = gaps.iter().filter(|g| **g > longer).count() as f64;
            let soon =
                gaps.iter().filter(|g| (longer + 1..=longer + 10).contains(g)).count() as f64;
            assert!((soon / of - 0.075).abs() < 0.03, "{longer}: {soon} of {of}");
        }
    }

    #[test]
    fn packets_of_unknown_outcome_are_remembered() {
        let mut skips = skips(3);
        skips.set_mean(1.0);
        let all: Vec<u64> = (1..10_000).filter(|n| skips.is_next_skipped(*n, 0)).collect();
        assert!(all.len() > 4000);
        assert_eq!(skips.count(0, 10_000), all.len() as u64);
        assert_eq!(skips.count(all[7], all[9]), 2);
        // Numbers of known outcome are forgotten, except for the last ones.
        let later = (10_000..20_000).filter(|n| skips.is_next_skipped(*n, *n)).last().unwrap();
        assert!(skips.numbers.len() <= REMEMBERED);
        assert_eq!(skips.count(later, later + 1), 1);
    }
}
