//! The policy of who shares: CUBIC's window (RFC 9438), cut by losses that are not the link's.
//!
//! One of eight rounds sends a quarter less, for two round trips: what becomes of the difference tells whether others
//! are still there.

use super::Limits;
use super::constants::*;
use super::estimate::{Path, View};
use crate::{Ack, PacketOutcome};
use narrows_base::math;

#[derive(Clone, Debug)]
pub struct Competitive {
    /// Packets.
    window: f64,
    /// When it was cut (seconds), what it was then (0: never), and seconds of round trips since.
    cut_at: f64,
    from: f64,
    clock: f64,
    /// Rounds in this mode.
    rounds: u32,
    /// Rounds in a row without a queue or a cut.
    empty: u32,
}

impl Competitive {
    pub fn begin(window: f64) -> Competitive {
        let window = window.max(MIN_WINDOW);
        Competitive { window, cut_at: 0.0, from: 0.0, clock: 0.0, rounds: 0, empty: 0 }
    }
    pub fn gain(&self) -> f64 {
        // Two of ten rounds.
        if self.rounds % (CYCLE + 2) >= CYCLE { DOWN } else { 1.0 }
    }

    pub fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if !ack.window_limited || ack.newly_delivered == 0 {
            return;
        }
        // A Reno that leaves this much of its window grows by so much (RFC 9438 section 4.3).
        let mut step =
            if self.window < self.from { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        if self.from > 0.0 {
            let back = math::cbrt(self.from * (1.0 - BETA) / CUBIC);
            let t = self.clock + path.rtt - back;
            let target = self.from + CUBIC * t * t * t;
            step = step.max((target - self.window).min(0.5 * self.window));
        }
        if self.empty >= CYCLE {
            step = step.max(REFILL * self.window);
        }
        self.window += step * ack.newly_delivered as f64 / self.window;
    }

    pub fn on_loss(&mut self, outcome: &PacketOutcome, path: &Path) {
        let link = path.loss.link_at_least() >= KNOWN_LOSS && !path.is_long();
        if link || outcome.radio || outcome.sent.as_secs_f64() <= self.cut_at {
            return;
        }
        self.cut_at = outcome.now.as_secs_f64();
        self.from = self.window;
        (self.clock, self.empty) = (0.0, 0);
        self.window = (BETA * self.window).max(2.0);
    }

    pub fn on_round(&mut self, view: &View, path: &Path) {
        self.empty = if view.empty && !view.saturated() { self.empty + 1 } else { 0 };
        self.clock += path.rtt;
        self.rounds += 1;
    }

    pub fn limits(&self, path: &Path) -> Limits {
        let window = (self.gain() * self.window).max(2.0);
        Limits { window, rate: Some(UP * window / path.rtt.max(f64::MIN_POSITIVE)) }
    }
}
