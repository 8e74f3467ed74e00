//! The policy of the startup: the window doubles per round trip until a queue shows.
//!
//! The packets of the first flight leave together, and their spacing tells a rate; so may the packets that opened the
//! connection. Where it says that the path holds four times as much, the window grows four times as fast, at that rate,
//! until a round shows otherwise.

use super::Limits;
use super::constants::*;
use super::estimate::{Path, View};
use crate::Ack;

#[derive(Clone, Debug)]
pub struct Startup {
    /// Packets.
    window: f64,
    /// Packets per second that a train told; 0 if none did.
    train: f64,
    /// The first acknowledgement of the first flight (seconds), until that has been answered, and packets since.
    first: Option<f64>,
    since: f64,
    is_first: bool,
    /// Largest rate of a round, and rounds in a row without more.
    best: f64,
    stale: u32,
}

impl Startup {
    pub fn begin(window: f64) -> Startup {
        Startup { window, train: 0.0, first: None, since: 0.0, is_first: true, best: 0.0, stale: 0 }
    }
    /// The packets that opened the connection told packets per second, and a round trip in seconds.
    pub fn tell(&mut self, rate: f64, rtt: f64) {
        self.train = rate;
        self.window = self.window.max((rate * rtt).min(FIRST_FLIGHT));
    }

    pub fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let now = ack.now.as_secs_f64();
        if ack.round_start {
            (self.first, self.since) = (self.is_first.then_some(now), 0.0);
        } else if let Some(first) = self.first {
            self.since += ack.newly_delivered as f64;
            if self.since >= TRAIN && now > first {
                self.train = self.since / (now - first);
            }
        }
        let holds = self.train * path.base().unwrap_or(0.0);
        let growth = if holds > TRAIN * self.window { TRAIN } else { 2.0 };
        if ack.window_limited {
            self.window += (growth - 1.0) * ack.newly_delivered as f64;
        }
    }

    /// Seconds of queueing delay that end the startup.
    fn longest_queue(path: &Path) -> f64 {
        path.noise().max(STARTUP_QUEUE * path.base().unwrap_or(0.0))
    }

    /// The bandwidth, if the first acknowledgements of a round end the startup (RFC 9406 section 4.2).
    pub fn within_round(&self, path: &Path) -> Option<f64> {
        let rate = path.so_far(Startup::longest_queue(path)).filter(|_| !self.is_first)?;
        Some(rate.max(self.best))
    }

    /// The bandwidth, if the round ends the startup.
    pub fn on_round(&mut self, view: &View, ack: &Ack, path: &Path) -> Option<f64> {
        let round = &view.round;
        self.is_first &= round.delivered < TRAIN;
        if view.saturated() {
            self.train = 0.0;
        }
        let grew = round.rate > UP * self.best;
        self.stale = if grew { 0 } else { self.stale + u32::from(ack.window_limited) };
        self.best = self.best.max(round.rate);
        if !grew && (round.queue_min > Startup::longest_queue(path) || view.dropped) {
            Some(round.rate)
        } else {
            (self.stale >= PLATEAU_ROUNDS).then_some(self.best)
        }
    }

    pub fn limits(&self, path: &Path) -> Limits {
        let Some(base) = path.base().filter(|_| !self.is_first) else {
            return Limits { window: self.window, rate: None };
        };
        let flight = self.window / base.max(f64::MIN_POSITIVE);
        Limits { window: self.window, rate: Some(self.train.clamp(2.0 * flight, TRAIN * flight)) }
    }
}
