//! The rate of the emulated TCP, smoothed over epochs (Jayaram 2001, section 3.8).
//!
//! A round adds (window, RTT) to the open epoch. An epoch's sample is the sum of its windows over the sum of its RTTs.
//! The rate is the larger of two weighted means: A1 over the last eight closed epochs, A0 with the open epoch in front.
//! So a rise of the rate counts before its epoch ends, a fall only afterwards.
//!
//! Choices: the thesis lets A1 run from epoch k-1 to k-W-1 and A0 from k to k-W-1, one and two terms more than there
//! are weights; here both have W = 8 terms. The open epoch is "large enough" from its first complete round. With fewer
//! epochs than weights, the weights of those that exist are scaled to sum to one.
//!
//! An addition of Narrows is *discounting*, as in RFC 5348 section 5.5 for loss intervals. While the open epoch has
//! more than twice the rounds of the closed ones' mean, the weights of those fall, down to a quarter. Without it the
//! open epoch never weighs more than w0. Alone on a path, the emulated window would then rise to many times the packets
//! in flight before the mean moves. The next loss would halve a meaningless number, and a series of losses and timeouts
//! would reduce the mean before the next rise.

/// Weights, newest epoch first.
pub(super) type Weights = [f64; 8];

/// Jayaram 2001, table 3.1: the weights of TFRC, divided by 6.
pub(super) const TEAR: Weights =
    [1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 2.0 / 15.0, 1.0 / 10.0, 1.0 / 15.0, 1.0 / 30.0];
/// Jayaram 2001, table 6.1: powers of two, so that a phone can shift instead of dividing. Its fifth entry is printed as
/// 2/32, with which the sum is 33/32; with 1/32 it is one.
pub(super) const SHIFTS: Weights =
    [1.0 / 2.0, 1.0 / 4.0, 1.0 / 8.0, 1.0 / 16.0, 1.0 / 32.0, 1.0 / 64.0, 1.0 / 128.0, 1.0 / 128.0];

/// Closed epochs weigh this much at least.
const MIN_DISCOUNT: f64 = 0.25;

/// The open epoch and the samples of the last eight closed ones.
#[derive(Clone, Debug)]
pub(super) struct EpochHistory {
    weights: Weights,
    /// Sum of windows, sum of RTTs and RTOs in seconds, of the open epoch.
    windows: f64,
    seconds: f64,
    rounds: u64,
    /// Samples in packets per second, newest first.
    closed: [f64; 8],
    /// Rounds of each.
    lengths: [u64; 8],
    discounting: bool,
    filled: usize,
}

impl EpochHistory {
    pub fn new(weights: Weights, discounting: bool) -> EpochHistory {
        EpochHistory {
            weights,
            windows: 0.0,
            seconds: 0.0,
            rounds: 0,
            closed: [0.0; 8],
            lengths: [0; 8],
            discounting,
            filled: 0,
        }
    }

    /// A round ended with this window and this (nominal) duration in seconds, above zero.
    pub fn round(&mut self, window: f64, seconds: f64) {
        self.windows += window;
        self.seconds += seconds;
        self.rounds += 1;
    }

    /// Rounds of the open epoch.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Whether no epoch has been closed yet.
    pub fn is_first(&self) -> bool {
        self.filled == 0
    }

    /// Closes the open epoch and opens the next. One without rounds leaves no sample.
    pub fn next_epoch(&mut self) {
        if let Some(sample) = self.open() {
            self.closed.rotate_right(1);
            self.closed[0] = sample;
            self.lengths.rotate_right(1);
            self.lengths[0] = self.rounds;
            self.filled = (self.filled + 1).min(self.closed.len());
        }
        self.windows = 0.0;
        self.seconds = 0.0;
        self.rounds = 0;
    }

    fn open(&self) -> Option<f64> {
        (self.rounds > 0 && self.seconds > 0.0).then(|| self.windows / self.seconds)
    }

    /// Weight of the closed epochs beside an open one, 1 or less.
    fn discount(&self) -> f64 {
        if !self.discounting || self.filled == 0 {
            return 1.0;
        }
        let rounds = self.lengths[..self.filled].iter().map(|n| *n as f64).sum::<f64>();
        let mean = rounds / self.filled as f64;
        (2.0 * mean / self.rounds.max(1) as f64).clamp(MIN_DISCOUNT, 1.0)
    }

    /// The mean of samples (weight factor, packets per second), newest first.
    fn mean(&self, samples: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
        let mut sum = 0.0;
        let mut weight = 0.0;
        for (w, (factor, x)) in self.weights.iter().zip(samples) {
            sum += w * factor * x;
            weight += w * factor;
        }
        (weight > 0.0).then(|| sum / weight)
    }

    /// The smoothed rate in packets per second; `None` before the first round.
    pub fn rate(&self) -> Option<f64> {
        let closed = |factor| self.closed[..self.filled].iter().map(move |x| (factor, *x));
        let without = self.mean(closed(1.0));
        let with = self
            .open()
            .and_then(|x| self.mean(std::iter::once((1.0, x)).chain(closed(self.discount()))));
        match (with, without) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(weights: Weights, samples: &[f64]) -> EpochHistory {
        let mut h = EpochHistory::new(weights, false);
        for x in samples {
            h.round(*x, 1.0);
            h.next_epoch();
        }
        h
    }

    #[test]
    fn both_tables_sum_to_one() {
        for table in [TEAR, SHIFTS] {
            assert!((table.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{table:?}");
            assert!(table.is_sorted_by(|a, b| a >= b), "newest epochs weigh most");
        }
    }

    /// 4, 5 and 6 packets at 100, 100 and 200 ms: 15 packets in 0.4 s, not the mean of ratios.
    #[test]
    fn a_sample_is_windows_over_times() {
        let mut h = EpochHistory::new(TEAR, false);
        assert_eq!(h.rate(), None);
        for (w, s) in [(4.0, 0.1), (5.0, 0.1), (6.0, 0.2)] {
            h.round(w, s);
        }
        assert!((h.rate().unwrap() - 37.5).abs() < 1e-9);
    }

    #[test]
    fn few_epochs_share_the_whole_weight() {
        // 1/6 and 1/6 become 1/2 and 1/2; 1/2 and 1/4 become 2/3 and 1/3.
        assert!((epochs(TEAR, &[10.0, 30.0]).rate().unwrap() - 20.0).abs() < 1e-9);
        assert!((epochs(SHIFTS, &[10.0, 40.0]).rate().unwrap() - 30.0).abs() < 1e-9);
    }

    #[test]
    fn the_ninth_epoch_back_is_forgotten() {
        let mut samples = [8.0; 9];
        samples[0] = 1e6;
        assert!((epochs(TEAR, &samples).rate().unwrap() - 8.0).abs() < 1e-9);
    }

    /// The open epoch raises the rate before it ends and never lowers it.
    #[test]
    fn the_larger_of_the_two_means_counts() {
        let mut h = epochs(TEAR, &[10.0; 8]);
        h.round(4.0, 1.0);
        assert!((h.rate().unwrap() - 10.0).abs() < 1e-9, "a bad spell waits for its end");
        h.next_epoch();
        assert!((h.rate().unwrap() - 9.0).abs() < 1e-9, "1/6 of 4 and 5/6 of 10");
        h.round(40.0, 1.0);
        // 1/6 (40 + 4 + 10 + 10) + 10 (2/15 + 1/10 + 1/15 + 1/30).
        assert!((h.rate().unwrap() - 14.0).abs() < 1e-9, "a good one does not");
    }

    /// Eight epochs of four rounds. The open one counts as before up to eight rounds; beyond, the closed ones weigh
    /// 8/n, a quarter at least.
    #[test]
    fn a_long_epoch_discounts_the_past() {
        let mut h = EpochHistory::new(SHIFTS, true);
        for _ in 0..8 {
            (0..4).for_each(|_| h.round(10.0, 1.0));
            h.next_epoch();
        }
        let mut after = |rounds: u64| {
            while h.rounds() < rounds {
                h.round(40.0, 1.0);
            }
            h.rate().unwrap()
        };
        // The last of the closed ones has fallen off: weights 1/2 and 1/2.
        assert!((after(8) - 25.0).abs() < 1e-9);
        assert!((after(16) - (40.0 + 5.0) / 1.5).abs() < 1e-9);
        assert!((after(999) - (40.0 + 2.5) / 1.25).abs() < 1e-9);
    }

    #[test]
    fn an_epoch_without_rounds_leaves_no_sample() {
        let mut h = epochs(TEAR, &[10.0]);
        h.next_epoch();
        assert!((h.rate().unwrap() - 10.0).abs() < 1e-9);
    }
}
