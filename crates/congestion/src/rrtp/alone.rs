//! The policy that assumes to be the only user of the bottleneck: its bandwidth, and a queue below the noise.
//!
//! One of [`CYCLE`] rounds is a probe with the gain [`UP`], and a round with the gain [`DOWN`] follows each probe. If
//! at least half of the additional traffic arrives without a queue or losses, another probe with a larger gain follows
//! that round; otherwise the gain is 1 until the next probe. If probes cause losses, the cycle doubles. While a queue
//! or losses remain, every second round has the gain [`DOWN`].
//!
//! In a round with the gain [`DOWN`] only the pacing rate falls, not the window.

use super::Limits;
use super::constants::*;
use super::estimate::{Path, View};

#[derive(Clone, Debug)]
pub struct Alone {
    /// Rounds since the last probe.
    phase: u32,
    /// Rounds between two probes.
    cycle: u32,
    /// Gain in force.
    pub gain: f64,
    /// Gain of the next probe.
    up: f64,
}

impl Alone {
    /// Begins with a gain below 1, because the startup leaves a queue.
    pub fn begin() -> Alone {
        Alone { phase: 2, cycle: CYCLE, gain: DOWN, up: UP }
    }

    pub fn on_round(&mut self, view: &View) {
        self.phase += 1;
        let probed = view.round.gain > 1.0;
        let follows = view.follows(FOLLOWS);
        if probed && view.dropped && !view.queued {
            self.cycle = (2 * self.cycle).min(MAX_CYCLE);
        } else if follows {
            self.cycle = CYCLE;
        }
        if follows && !view.saturated() {
            self.up = (UP * self.up).min(2.0);
            (self.phase, self.gain) = (0, self.up);
            return;
        }
        if probed || view.saturated() {
            self.up = UP;
        }
        if self.gain > 1.0 || view.saturated() && !probed && self.gain >= 1.0 {
            self.phase = self.phase.max(1);
            self.gain = DOWN;
        } else if self.phase >= self.cycle && !view.saturated() {
            (self.phase, self.gain) = (0, self.up);
        } else {
            self.gain = 1.0;
        }
    }

    pub fn limits(&self, path: &Path) -> Limits {
        // With a gain below 1 the rate drains the queue; a smaller window would leave the link idle.
        let window = (self.gain.max(1.0) * path.target() + 1.0).max(MIN_WINDOW);
        // Rounds without a delivered packet leave no bandwidth.
        let least = if path.rtt > 0.0 { MIN_WINDOW / path.rtt } else { 0.0 };
        Limits { window, rate: Some(self.gain * path.bandwidth.get().max(least)) }
    }
}
