//! The policy of who is alone: the bandwidth, and no queue that shows.
//!
//! One of eight rounds sends a quarter more. If half of that arrives and nothing is dropped, the next but one sends still
//! more; otherwise the next holds back, so that the queue is empty again. Where probes are dropped they become rare.
//! While a queue stands, every second round holds back: that drains it, or shows whose it is.

use super::Limits;
use super::constants::*;
use super::estimate::{Path, View};

#[derive(Clone, Debug)]
pub struct Alone {
    /// Rounds since the probe, and from one to the next.
    phase: u32,
    cycle: u32,
    /// Of this round, and of the next probe.
    pub gain: f64,
    up: f64,
}

impl Alone {
    /// Begins by holding back: the startup left a queue.
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
        // While it holds back, the rate drains the queue; a smaller window would leave the link idle.
        let window = (self.gain.max(1.0) * path.product() + 1.0).max(MIN_WINDOW);
        Limits { window, rate: Some(self.gain * path.bandwidth.get()) }
    }
}
