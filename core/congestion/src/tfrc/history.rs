//! Loss intervals and their weighted average: RFC 5348 sections 5.4 and 5.5.

use std::collections::VecDeque;

/// Older intervals are never discounted below this (RFC 5348 section 5.5, THRESHOLD).
const MIN_DISCOUNT: f64 = 0.5;

/// A loss interval that the next loss event closed.
#[derive(Clone, Copy, Debug)]
struct LossInterval {
    packets: f64,
    /// DF_i: the factor on its weight after later long intervals.
    discount: f64,
}

/// The closed loss intervals, newest first, and the open one.
#[derive(Clone, Debug)]
pub(super) struct LossHistory {
    weights: Vec<f64>,
    discounting: bool,
    /// ns-2: a loss event folds in the discount that the last report used, not a fresh one.
    ns2: bool,
    closed: VecDeque<LossInterval>,
    /// The first lost packet of I_0.
    start: u64,
    /// DF: the factor that I_0 applies to the other weights.
    discount: f64,
}

impl LossHistory {
    /// Averages over `n` intervals.
    pub fn new(n: usize, discounting: bool, ns2: bool) -> LossHistory {
        let n = n.max(1);
        // 1 for the newer half, then falling in equal steps: 0.8, 0.6, 0.4, 0.2 for n = 8.
        let fall = |i: usize| 2.0 * (n - i) as f64 / (n as f64 + 2.0);
        let weights = (0..n).map(|i| if 2 * i < n { 1.0 } else { fall(i) }).collect();
        let closed = VecDeque::with_capacity(n + 1);
        LossHistory { weights, discounting, ns2, closed, start: 0, discount: 1.0 }
    }

    /// Whether no loss event was seen yet.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }
    /// The first loss event: the interval before it is taken as `packets` long, and I_0 begins
    /// with packet `start`.
    pub fn begin(&mut self, packets: f64, start: u64) {
        self.closed.clear();
        self.closed.push_front(LossInterval { packets: packets.max(1.0), discount: 1.0 });
        self.start = start;
        self.discount = 1.0;
    }
    /// The next loss event began with packet `start`.
    pub fn event(&mut self, start: u64) {
        if !self.ns2 {
            self.mean(start);
        }
        for i in &mut self.closed {
            i.discount *= self.discount;
        }
        self.discount = 1.0;
        let packets = start.saturating_sub(self.start).max(1) as f64;
        self.closed.push_front(LossInterval { packets, discount: 1.0 });
        self.closed.truncate(self.weights.len());
        self.start = start;
    }
    /// Length of I_0 up to `top`, the highest packet number received.
    pub fn open(&self, top: u64) -> f64 {
        top.saturating_sub(self.start) as f64
    }
    /// I_mean: the mean loss interval up to `top`, the highest packet number received; `None` before the first loss
    /// event.
    pub fn mean(&mut self, top: u64) -> Option<f64> {
        if self.closed.is_empty() {
            return None;
        }
        let open = self.open(top);
        let mut sum = 0.0;
        let mut weight = 0.0;
        for (i, w) in self.closed.iter().zip(&self.weights) {
            sum += w * i.discount * i.packets;
            weight += w * i.discount;
        }
        // The discount of now is common to all of these and cancels.
        let without = sum / weight;
        if self.discounting && open > 2.0 * without {
            self.discount = (2.0 * without / open).max(MIN_DISCOUNT);
        }
        let mut older = self.closed.iter();
        if !self.ns2 && self.closed.len() < self.weights.len() {
            // While the history is short, I_0 takes the place of the oldest, so that both averages
            // are over equally many (section 5.4); ns-2 adds it to them.
            older.next_back();
        }
        let mut sum = self.weights[0] * open;
        let mut weight = self.weights[0];
        for (i, w) in older.zip(&self.weights[1..]) {
            sum += w * i.discount * self.discount * i.packets;
            weight += w * i.discount * self.discount;
        }
        Some(without.max(sum / weight))
    }
    /// p: the loss event rate up to `top`, the highest packet number received.
    pub fn loss_event_rate(&mut self, top: u64) -> f64 {
        self.mean(top).map_or(0.0, |mean| 1.0 / mean.max(1.0))
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
