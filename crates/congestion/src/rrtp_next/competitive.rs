//! Takes its share.

use super::constants::*;
use super::estimate::Path;
use super::{Limits, View};
use crate::{Ack, PacketOutcome};
use narrows_base::math;

#[derive(Clone, Debug, Default)]
pub struct Competitive {
    window: f64,
    /// When the window was cut, and what it was.
    cut_at: f64,
    from: f64,
    /// Seconds since the cut.
    clock: f64,
    /// Rounds until the next experiment.
    wait: u32,
    left: u32,
    held: u32,
    /// Rounds in a row without a queue or a cut.
    empty: u32,
}

impl Competitive {
    pub fn begin(window: f64) -> Competitive {
        Competitive { window: window.max(MIN_WINDOW), wait: WAIT, left: WAIT, ..Competitive::default() }
    }
    pub fn gain(&self) -> f64 {
        if self.held > 0 { HELD } else { 1.0 }
    }
    pub fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if !ack.window_limited || ack.newly_delivered == 0 {
            return;
        }
        let friendly = 3.0 * (1.0 - BETA) / (1.0 + BETA);
        let mut step = if self.from > 0.0 && self.window < self.from { friendly } else { 1.0 };
        if self.from > 0.0 {
            let back = math::cbrt(self.from * (1.0 - BETA) / CUBIC);
            let t = self.clock + path.rtt - back;
            let target = self.from + CUBIC * t * t * t;
            step = step.max((target - self.window).min(0.5 * self.window));
        }
        if self.empty >= REFILL_AFTER {
            step = step.max(REFILL * self.window);
        }
        self.window += step * ack.newly_delivered as f64 / self.window;
    }
    pub fn on_loss(&mut self, outcome: &PacketOutcome, path: &Path) {
        let sent = outcome.sent.as_secs_f64();
        let few = path.loss.link() < 0.005;
        if sent <= self.cut_at || !(few || path.is_long()) {
            return;
        }
        self.cut_at = outcome.now.as_secs_f64();
        self.from = self.window;
        (self.clock, self.empty) = (0.0, 0);
        self.window = (BETA * self.window).max(2.0);
    }
    pub fn on_round(&mut self, view: &View, path: &Path) {
        let empty = !view.saturated && view.round.queue_mean <= EMPTY * path.longest().max(path.noise());
        self.empty = if empty { self.empty + 1 } else { 0 };
        self.clock += path.rtt;
        if self.held > 0 {
            self.held -= 1;
            return;
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.held = 2;
            self.left = self.wait;
        }
    }
    pub fn limits(&self, path: &Path) -> Limits {
        let window = self.gain() * self.window;
        Limits { window: window.max(2.0), rate: Some(1.25 * window.max(2.0) / path.rtt.max(1e-6)) }
    }
}
