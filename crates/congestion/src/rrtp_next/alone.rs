//! Holds the queue short.

use super::constants::*;
use super::estimate::Path;
use super::{Limits, View};

#[derive(Clone, Debug)]
pub struct Alone {
    phase: u32,
    cycle: u32,
    gain: f64,
    up: f64,
}

impl Default for Alone {
    fn default() -> Alone {
        Alone { phase: 2, cycle: CYCLE, gain: DOWN, up: UP }
    }
}

impl Alone {
    pub fn gain(&self) -> f64 {
        self.gain
    }
    pub fn on_round(&mut self, view: &View, before: f64) {
        self.phase += 1;
        let sent_more = view.round.gain > 1.0;
        let follows = view.round.rate > before * (1.0 + FOLLOWS * (view.round.gain - 1.0));
        if sent_more {
            let dropped = view.saturated && !view.queued;
            self.cycle = if dropped { (2 * self.cycle).min(MAX_CYCLE) } else if follows { CYCLE } else { self.cycle };
        }
        if view.saturated {
            self.up = UP;
            // Hold back every second round.
            self.phase = self.phase.max(2);
            self.gain = if self.gain < 1.0 { 1.0 } else { DOWN };
        } else if sent_more && follows {
            self.up = (self.up * UP).min(MOST_UP);
            (self.phase, self.gain) = (0, self.up);
            return;
        } else if sent_more {
            self.up = UP;
            (self.phase, self.gain) = (2, DOWN);
        } else if self.phase != 1 {
            self.gain = 1.0;
        }
        if self.phase >= self.cycle {
            (self.phase, self.gain) = (0, self.up);
        }
        if self.phase == 1 {
            self.gain = 1.0;
        }
    }
    pub fn limits(&self, path: &Path) -> Limits {
        let bandwidth = path.bandwidth.get();
        let window = self.gain * path.product() + 1.0;
        Limits { window: window.max(MIN_WINDOW), rate: Some(self.gain * bandwidth) }
    }
}
