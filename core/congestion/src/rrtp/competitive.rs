//! The policy for a shared bottleneck (docs/rrtp-congestion-control.md, section 3.3): CUBIC's window (RFC 9438), reduced
//! by a loss at most once per round trip.
//!
//! Two of ten rounds have the gain [`DOWN`]. Whether the delivery rate falls with it shows whether the queue is still
//! shared.

use super::constants::*;
use super::estimate::PathModel;
use super::limits::PolicyLimits;
use crate::{Ack, PacketOutcome};
use narrows_base::math;

#[derive(Clone, Debug)]
pub struct Competitive {
    /// Packets.
    window: f64,
    /// Time of the last back-off in seconds, 0 before the first.
    reduced_at: f64,
    /// Window at the last back-off in packets, 0 before the first.
    from: f64,
    /// Sum of the round trips since the last back-off, seconds.
    clock: f64,
    /// Rounds since the policy began.
    rounds: u32,
}

impl Competitive {
    pub fn begin(window: f64) -> Competitive {
        let window = window.max(MIN_WINDOW);
        Competitive { window, reduced_at: 0.0, from: 0.0, clock: 0.0, rounds: 0 }
    }
    pub fn gain(&self) -> f64 {
        if self.rounds % (CYCLE + 2) >= CYCLE { DOWN } else { 1.0 }
    }

    pub fn on_ack(&mut self, ack: &Ack, path: &PathModel) {
        if !ack.window_limited || ack.newly_delivered == 0 {
            return;
        }
        // Growth per round of the Reno flow that CUBIC emulates, with the same back-off (RFC 9438 section 4.3).
        let mut step =
            if self.window < self.from { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        if self.from > 0.0 {
            let recovery = math::cbrt(self.from * (1.0 - BETA) / CUBIC_C);
            let t = self.clock + path.rtt - recovery;
            let target = self.from + CUBIC_C * t * t * t;
            step = step.max((target - self.window).min(0.5 * self.window));
        }
        self.window += step * ack.newly_delivered as f64 / self.window;
    }

    pub fn on_loss(&mut self, outcome: &PacketOutcome) {
        if outcome.sent.as_secs_f64() <= self.reduced_at {
            return;
        }
        self.reduced_at = outcome.now.as_secs_f64();
        self.from = self.window;
        self.clock = 0.0;
        self.window = (BETA * self.window).max(2.0);
    }

    pub fn on_round(&mut self, path: &PathModel) {
        self.clock += path.rtt;
        self.rounds += 1;
    }

    pub fn limits(&self, path: &PathModel) -> PolicyLimits {
        let window = (self.gain() * self.window).max(2.0);
        PolicyLimits { window, rate: Some(UP * window / path.rtt.max(f64::MIN_POSITIVE)) }
    }
}
