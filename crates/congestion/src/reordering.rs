//! How late packets may come where the path reorders: RFC 8985's reordering window (section 6.2 step 4), at the
//! receiver, for controllers that look for losses there.
//!
//! Until a packet comes after it was counted as lost, three later ones are a loss. From then on a missing packet is
//! lost when a later one came a window of time ago: as many quarters of the round trip as late packets needed, at
//! most a whole one. After 16 loss events it is what they needed during these, or a quarter.

/// Loss events for which what late packets needed counts (RACK.reo_wnd_persist).
const EVENTS: u32 = 16;
/// Parts of the round trip by which the window grows, and the most of them.
const STEPS: f64 = 4.0;

/// The window; times in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReorderingWindow {
    /// Quarters of a round trip; 0 until packets were seen late.
    steps: f64,
    /// What packets needed since it was last made shorter, and the loss events since then.
    needed: f64,
    events: u32,
}

impl ReorderingWindow {
    /// How long a missing packet is waited for after a later one came.
    pub fn length(&self, rtt: f64) -> f64 {
        self.steps * rtt / STEPS
    }
    /// A packet came so long after one that left later.
    pub fn on_late(&mut self, late: f64, rtt: f64) {
        let needed = (late * STEPS / rtt.max(1e-9)).ceil().clamp(1.0, STEPS);
        self.needed = self.needed.max(needed);
        if self.steps < needed {
            (self.steps, self.events) = (needed, 0);
        }
    }
    /// A loss event begins.
    pub fn on_loss_event(&mut self) {
        self.events += 1;
        if self.events >= EVENTS && self.steps > 0.0 {
            self.steps = self.needed.max(1.0);
            (self.needed, self.events) = (0.0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_late_packets_need_and_falls_when_they_need_less() {
        let mut window = ReorderingWindow::default();
        assert_eq!(window.length(0.04), 0.0);
        for (late, length) in [(0.003, 0.01), (0.011, 0.02), (0.001, 0.02), (0.4, 0.04)] {
            window.on_late(late, 0.04);
            assert!((window.length(0.04) - length).abs() < 1e-12, "{late}");
        }
        // What widened it counts for the first sixteen events.
        for length in [0.04, 0.01] {
            (0..EVENTS).for_each(|_| window.on_loss_event());
            assert!((window.length(0.04) - length).abs() < 1e-12, "{length}");
        }
    }
}
