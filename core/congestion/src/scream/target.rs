//! SCReAM's target of the queueing delay, which rises beside flows that fill the queue.

use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// The draft's QDELAY_TARGET_HI.
const MAX_TARGET_S: f64 = 0.4;
/// Samples for the variance and, of the newest, for the mean.
const SAMPLES: usize = 200;
const MEAN_SAMPLES: usize = 50;
const SAMPLE_PERIOD: Duration = Duration::from_millis(50);
const MAX_LOSS_EVENT_RATE: f64 = 0.002;
const LOSS_EVENT_GAIN: f64 = 0.01;
const STEADY_VARIANCE: f64 = 0.2;

/// The target, and the measurements that it follows.
#[derive(Clone, Debug)]
pub(super) struct DelayTarget {
    seconds: f64,
    min_s: f64,
    adapts: bool,
    /// Delays over the smallest target.
    delays: VecDeque<f64>,
    sampled: Time,
    /// Share of round trips with losses.
    loss_events: f64,
    lost: bool,
}

impl DelayTarget {
    pub fn new(min_s: f64, adapts: bool) -> DelayTarget {
        DelayTarget {
            seconds: min_s,
            min_s,
            adapts,
            delays: VecDeque::new(),
            sampled: Time::ZERO,
            loss_events: 0.0,
            lost: false,
        }
    }
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
    pub fn on_loss(&mut self) {
        self.lost = true;
    }
    /// A round trip has passed.
    pub fn on_round(&mut self) {
        let lost = if self.lost { 1.0 } else { 0.0 };
        self.loss_events += LOSS_EVENT_GAIN * (lost - self.loss_events);
        self.lost = false;
    }
    /// A sample of the queueing delay.
    pub fn on_delay(&mut self, now: Time, seconds: f64) {
        if !self.adapts || now.since(self.sampled) < SAMPLE_PERIOD {
            return;
        }
        self.sampled = now;
        self.delays.push_front(seconds / self.min_s);
        self.delays.truncate(SAMPLES);
        let mean = |count: usize| {
            let count = count.min(self.delays.len());
            self.delays.iter().take(count).sum::<f64>() / count.max(1) as f64
        };
        let all = mean(SAMPLES);
        let squares: f64 = self.delays.iter().map(|x| (x - all) * (x - all)).sum();
        let variance = squares / self.delays.len().max(1) as f64;
        let new = (mean(MEAN_SAMPLES) + variance.sqrt()) * self.min_s;
        let target = if self.loss_events > MAX_LOSS_EVENT_RATE {
            1.5 * new
        } else if variance < STEADY_VARIANCE {
            new
        } else if new < self.min_s {
            (self.seconds * 0.5).max(new)
        } else {
            self.seconds * 0.9
        };
        self.seconds = target.clamp(self.min_s, MAX_TARGET_S.max(self.min_s));
    }
}
