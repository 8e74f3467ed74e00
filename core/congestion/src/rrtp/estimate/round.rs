//! Sums over the acknowledgements of a round trip, and averages over rounds.

use super::super::constants::{SCATTER, SMOOTH};
use crate::Ack;

/// A round that has ended (section 2.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Gain with which its packets left.
    pub gain: f64,
    /// Packets that arrived.
    pub delivered: f64,
    /// Packets detected as lost.
    pub lost: f64,
    /// Mean delivery rate, packets per second.
    pub mean_rate: f64,
    /// Largest rate sample, but at least the mean, including packets that the link lost; packets per second.
    pub rate: f64,
    /// Least queueing delay, seconds.
    pub queue_min: f64,
    /// Mean queueing delay, seconds.
    pub queue_mean: f64,
    /// Whether the application limited all rate samples.
    pub app_limited: bool,
}

impl Round {
    /// Packets that arrived or were lost, at least 1.
    pub fn packets(&self) -> f64 {
        (self.delivered + self.lost).max(1.0)
    }
}

/// The round in progress (section 2.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenRound {
    pub began: f64,
    delivered: f64,
    pub lost: f64,
    rate: f64,
    min: f64,
    /// Number of acknowledgements.
    acks: f64,
    /// Sum of the queueing delays, seconds.
    queue_sum: f64,
    /// Sum of their squares.
    queue_squares: f64,
    /// Sum of the squares of steps between neighbours.
    step_squares: f64,
    /// Queueing delay before the first acknowledgement, seconds.
    queue_before: f64,
    /// Queueing delay of the last acknowledgement, seconds.
    queue_last: f64,
    /// Whether there were rate samples that the path limited.
    has_path_limited: bool,
    /// Whether there were rate samples that the application limited.
    has_app_limited: bool,
}

impl OpenRound {
    /// Number of acknowledgements, their shortest queueing delay (seconds), and the largest rate (packets per second).
    pub fn so_far(&self) -> (f64, f64, f64) {
        (self.acks, self.min, self.rate)
    }
    /// The round that follows; `now` in seconds.
    pub fn next(&self, now: f64) -> OpenRound {
        OpenRound {
            began: now,
            queue_before: self.queue_last,
            queue_last: self.queue_last,
            ..OpenRound::default()
        }
    }

    pub fn add(&mut self, ack: &Ack, queue: f64) {
        let step = queue - self.queue_last;
        self.queue_last = queue;
        self.min = if self.acks == 0.0 { queue } else { self.min.min(queue) };
        self.acks += 1.0;
        self.queue_sum += queue;
        self.queue_squares += queue * queue;
        self.step_squares += step * step;
        self.delivered += ack.newly_delivered as f64;
        if let Some(rate) = &ack.rate {
            self.has_path_limited |= !rate.app_limited;
            self.has_app_limited |= rate.app_limited;
            self.rate = self.rate.max(rate.per_second());
        }
    }

    /// The round that ends now. `None` without an acknowledgement or a length.
    pub fn end(&self, now: f64, gain: f64, link_loss: f64) -> Option<Round> {
        let span = now - self.began;
        if self.acks == 0.0 || span <= 0.0 {
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
            queue_mean: self.queue_sum / self.acks,
            app_limited: self.has_app_limited && !self.has_path_limited,
        })
    }

    /// Standard deviation of the queueing delays, seconds.
    pub fn deviation(&self) -> f64 {
        let mean = self.queue_sum / self.acks;
        (self.queue_squares / self.acks - mean * mean).max(0.0).sqrt()
    }

    /// Ratio of the scatter of delays to that of a queue of the same length, 0 to 2 (section 2.4). The scatter is the
    /// root mean square difference of neighbouring delays, without their linear trend.
    pub fn jitter_ratio(&self, round: &Round) -> f64 {
        let trend = (self.queue_last - self.queue_before) / self.acks;
        let scatter = (self.step_squares / self.acks - trend * trend).max(0.0).sqrt();
        let within = (2.0 * round.queue_mean * round.mean_rate).max(1.0);
        let one_packet = 1.0 / round.mean_rate.max(f64::MIN_POSITIVE);
        (scatter / (SCATTER * round.queue_mean / within.sqrt()).max(one_packet)).min(2.0)
    }
}

/// A moving average (section 2.1) that begins as the mean of the samples and of one zero.
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
