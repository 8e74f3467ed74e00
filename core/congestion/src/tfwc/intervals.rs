//! Loss intervals and their weighted mean (Choi 2006, section 5.3).
//!
//! The weights are printed as `1 - (1 - n/2)/(n/2 + 1)`, which is the constant 1.6 for n = 8. The values listed beside
//! them follow from `1 - (i - n/2)/(n/2 + 1)`, which is used. With fewer intervals than weights, only the weights of
//! the existing intervals count, in both means and in the divisor.

/// Most closed intervals.
const MAX_INTERVALS: usize = 16;

/// The open interval, the closed ones, and the sums that their mean needs: a packet costs an
/// addition, an event a few dozen operations.
#[derive(Clone, Debug)]
pub struct Intervals {
    weights: [f64; MAX_INTERVALS],
    depth: usize,
    /// Packets since the current loss event began, its first lost packet included (l_0).
    open: f64,
    /// l_1, l_2, … : the newest first.
    closed: [f64; MAX_INTERVALS],
    known: usize,
    /// Weighted sum over the closed intervals.
    closed_sum: f64,
    /// Weighted sum over the closed intervals if the open one has the first weight.
    shifted_sum: f64,
    divisor: f64,
}

impl Intervals {
    /// Eight intervals, the weights of TFRC (Choi 2006, section 5.3.1).
    pub fn eight() -> Intervals {
        let half = 4.0;
        Intervals::with(
            8,
            |i| if i < 4 { 1.0 } else { 1.0 - (i as f64 + 1.0 - half) / (half + 1.0) },
        )
    }
    /// Sixteen intervals, falling as 2/(i - 1) from the fifth on (i from 0): the author's later
    /// code.
    pub fn sixteen() -> Intervals {
        Intervals::with(MAX_INTERVALS, |i| if i < 4 { 1.0 } else { 2.0 / (i as f64 - 1.0) })
    }

    fn with(depth: usize, weight: impl Fn(usize) -> f64) -> Intervals {
        let mut weights = [0.0; MAX_INTERVALS];
        for (i, w) in weights.iter_mut().enumerate().take(depth) {
            *w = weight(i);
        }
        Intervals {
            weights,
            depth,
            open: 0.0,
            closed: [0.0; MAX_INTERVALS],
            known: 0,
            closed_sum: 0.0,
            shifted_sum: 0.0,
            divisor: 1.0,
        }
    }

    /// Starts again with one closed interval, at the first loss.
    pub fn begin(&mut self, interval: f64) {
        self.open = interval;
        self.known = 0;
        self.event();
        self.open = 0.0;
    }

    /// A packet that begins no loss event.
    #[inline]
    pub fn packet(&mut self) {
        self.open += 1.0;
    }

    /// A packet that begins a loss event: the open interval closes, and the packet is the first of the next (Choi 2006,
    /// algorithm 2; section 6.1.3 explains why not 0).
    pub fn event(&mut self) {
        self.closed.copy_within(..self.depth - 1, 1);
        self.closed[0] = self.open;
        self.open = 1.0;
        self.known = (self.known + 1).min(self.depth);
        let sum = |intervals: &[f64], weights: &[f64]| {
            intervals.iter().zip(weights).map(|(l, w)| l * w).sum::<f64>()
        };
        self.closed_sum = sum(&self.closed[..self.known], &self.weights);
        self.shifted_sum = sum(&self.closed[..self.known - 1], &self.weights[1..]);
        self.divisor = self.weights[..self.known].iter().sum();
    }

    /// The average loss interval: with the open one only if that makes it longer (Choi 2006, equations 5.1 to 5.3). At
    /// least 1.
    #[inline]
    pub fn average(&self) -> f64 {
        let with_open = self.weights[0] * self.open + self.shifted_sum;
        (self.closed_sum.max(with_open) / self.divisor).max(1.0)
    }

    /// The open interval.
    pub fn open(&self) -> f64 {
        self.open
    }
    /// The closed intervals, the newest first.
    pub fn closed(&self) -> &[f64] {
        &self.closed[..self.known]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn weights() {
        let eight = Intervals::eight();
        for (w, expected) in eight.weights.iter().zip([1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]) {
            close(*w, expected);
        }
        close(eight.weights.iter().sum(), 6.0);
        let later = Intervals::sixteen();
        close(later.weights[3], 1.0);
        close(later.weights[4], 2.0 / 3.0);
        close(later.weights[15], 2.0 / 14.0);
    }

    /// The definition, without sums kept.
    fn definition(open: f64, closed: &[f64]) -> f64 {
        let w = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        let n = closed.len();
        let divisor: f64 = w[..n].iter().sum();
        let hat: f64 = (0..n).map(|i| w[i] * closed[i]).sum();
        let new: f64 = w[0] * open + (1..n).map(|i| w[i] * closed[i - 1]).sum::<f64>();
        hat.max(new) / divisor
    }

    #[test]
    fn mean_is_the_larger_of_both_at_every_packet() {
        let mut l = Intervals::eight();
        l.begin(82.0);
        close(l.average(), 82.0);
        for interval in [5, 40, 3, 100, 1, 17, 60, 8, 250, 30] {
            for _ in 0..interval {
                l.packet();
                close(l.average(), definition(l.open(), l.closed()));
            }
            l.event();
            close(l.average(), definition(1.0, l.closed()));
        }
        // The last packet of an interval counts as the first of the next: 30 and the event's own.
        assert_eq!(l.closed(), [31.0, 251.0, 9.0, 61.0, 18.0, 2.0, 101.0, 4.0]);
    }

    #[test]
    fn a_short_history_is_divided_by_its_own_weights() {
        let mut l = Intervals::eight();
        l.begin(100.0);
        (0..40).for_each(|_| l.packet());
        close(l.average(), 100.0);
        l.event();
        close(l.average(), 70.0);
    }
}
