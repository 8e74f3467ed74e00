//! Looks for the rate.

use super::constants::*;
use super::estimate::Path;
use super::{Limits, View};
use crate::Ack;

#[derive(Clone, Debug)]
pub struct Startup {
    window: f64,
    /// Packets per second that a train told.
    train: f64,
    /// Largest rate of a round, and rounds without a larger one.
    best: f64,
    stale: u32,
    first: bool,
    /// First ack of the round: when, and packets since.
    began: f64,
    since: f64,
}

impl Startup {
    pub fn new(window: f64) -> Startup {
        Startup { window, train: 0.0, best: 0.0, stale: 0, first: true, began: 0.0, since: 0.0 }
    }
    /// The handshake told a rate.
    pub fn tell(&mut self, rate: f64) {
        self.train = rate;
    }
    /// Whether it has ended.
    pub fn on_ack(&mut self, ack: &Ack, path: &mut Path, view: Option<View>) -> bool {
        let now = ack.now.as_secs_f64();
        if ack.round_start {
            (self.began, self.since) = (now, 0.0);
        } else if self.first {
            self.since += ack.newly_delivered as f64;
            if self.since >= TRAIN && now > self.began {
                self.train = self.since / (now - self.began);
            }
        }
        let base = path.base().unwrap_or(0.0);
        let factor = if self.train * base > TRAIN_GROWTH * self.window { TRAIN_GROWTH } else { 2.0 };
        if ack.window_limited {
            self.window += (factor - 1.0) * ack.newly_delivered as f64;
        }
        let Some(view) = view else {
            return false;
        };
        self.first &= view.round.delivered < TRAIN;
        let round = view.round;
        path.measure(&View { saturated: false, queued: false, yields: false, ..view });
        let grew = round.rate > PLATEAU * self.best;
        self.stale = if grew { 0 } else { self.stale + u32::from(ack.window_limited) };
        self.best = self.best.max(round.rate);
        let queue = round.queue_min > path.noise().max(0.125 * base);
        let dropped = path.loss.exceeds(round.delivered + round.lost, round.lost) && !grew;
        if view.saturated {
            self.train = 0.0;
        }
        if queue || dropped || self.stale >= PLATEAU_ROUNDS {
            path.bandwidth.set(if queue || dropped { round.rate } else { self.best });
            return true;
        }
        false
    }
    pub fn limits(&self, path: &Path) -> Limits {
        let Some(base) = path.base().filter(|_| !self.first) else {
            return Limits { window: self.window, rate: None };
        };
        let rate = (2.0 * self.window / base.max(1e-6)).max(self.train.min(TRAIN_GROWTH * self.window / base.max(1e-6)));
        Limits { window: self.window, rate: Some(rate) }
    }
}
