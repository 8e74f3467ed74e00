//! What a round trip's worth of acknowledgements showed.

use super::super::constants::{LEAPS, SMOOTH};
use crate::Ack;

/// A round that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Gain with which its packets had left.
    pub gain: f64,
    /// Packets that arrived, and that were found lost.
    pub delivered: f64,
    pub lost: f64,
    /// Packets per second that arrived in the mean, and in the largest rate sample with what the link lost of it.
    pub mean_rate: f64,
    pub rate: f64,
    /// Queueing delays, seconds.
    pub queue_min: f64,
    pub queue_mean: f64,
    /// The application was the limit.
    pub app_limited: bool,
}

impl Round {
    /// Packets of which the fate became known.
    pub fn packets(&self) -> f64 {
        (self.delivered + self.lost).max(1.0)
    }
}

/// The round that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting {
    pub began: f64,
    delivered: f64,
    pub lost: f64,
    rate: f64,
    min: f64,
    /// Acknowledgements; sums of delays, of their squares and of the squares of neighbours' differences.
    sums: [f64; 4],
    /// The delays before the first and of the last.
    ends: [f64; 2],
    /// Whether rates were sampled that the path limited, and the application.
    limited: [bool; 2],
}

impl Counting {
    /// Acknowledgements so far, their shortest queueing delay (seconds), and the largest rate (packets per second).
    pub fn so_far(&self) -> (f64, f64, f64) {
        (self.sums[0], self.min, self.rate)
    }
    /// One that follows on this.
    pub fn next(&self, now: f64) -> Counting {
        Counting { began: now, ends: [self.ends[1]; 2], ..Counting::default() }
    }

    pub fn add(&mut self, ack: &Ack, queue: f64) {
        let step = queue - self.ends[1];
        self.ends[1] = queue;
        self.min = if self.sums[0] == 0.0 { queue } else { self.min.min(queue) };
        for (sum, x) in self.sums.iter_mut().zip([1.0, queue, queue * queue, step * step]) {
            *sum += x;
        }
        self.delivered += ack.newly_delivered as f64;
        if let Some(rate) = &ack.rate {
            self.limited[usize::from(rate.app_limited)] = true;
            self.rate = self.rate.max(rate.per_second());
        }
    }

    /// The round that ends now, if it had an acknowledgement.
    pub fn end(&self, now: f64, gain: f64, link_loss: f64) -> Option<Round> {
        let span = now - self.began;
        if self.sums[0] == 0.0 || span <= 0.0 {
            return None;
        }
        let mean_rate = self.delivered / span;
        Some(Round {
            gain,
            delivered: self.delivered,
            lost: self.lost,
            mean_rate,
            rate: self.rate.max(mean_rate) / (1.0 - link_loss),
            queue_min: self.min,
            queue_mean: self.sums[1] / self.sums[0],
            app_limited: self.limited == [false, true],
        })
    }

    /// Standard deviation of its delays.
    pub fn deviation(&self) -> f64 {
        let [n, sum, squares, _] = self.sums;
        (squares / n - (sum / n) * (sum / n)).max(0.0).sqrt()
    }

    /// Root mean square difference of neighbouring delays, without what they rise or fall by evenly, over what it is in a
    /// queue as long; 2 at most.
    pub fn leaps(&self, round: &Round) -> f64 {
        let [n, _, _, steps] = self.sums;
        let even = (self.ends[1] - self.ends[0]) / n;
        let scatter = (steps / n - even * even).max(0.0).sqrt();
        let within = (2.0 * round.queue_mean * round.mean_rate).max(1.0);
        let turn = 1.0 / round.mean_rate.max(f64::MIN_POSITIVE);
        (scatter / (LEAPS * round.queue_mean / within.sqrt()).max(turn)).min(2.0)
    }
}

/// A moving average that begins as a mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    n: f64,
    pub value: f64,
}

impl Average {
    pub fn add(&mut self, x: f64) {
        if x.is_finite() {
            self.n += 1.0;
            self.value += SMOOTH.max(1.0 / (self.n + 1.0)) * (x - self.value);
        }
    }
}
