//! RFC 8985's reordering window (section 6.2 step 4), for controllers that detect losses at the receiver. It limits the
//! lateness of packets on paths that reorder.
//!
//! Until a packet that was counted as lost arrives, three later packets indicate a loss. From then on a missing packet
//! counts as lost once a later one has been received for the length of the window. The window is the smallest number of
//! quarters of the RTT that covers the late packets, at most a whole RTT. After 16 loss events it is reset to the
//! largest lateness during these, or to a quarter.

/// Loss events for which the largest lateness is kept (RACK.reo_wnd_persist).
const EVENTS: u32 = 16;
/// Parts of the round trip by which the window grows, and the most of them.
const STEPS: f64 = 4.0;

/// The window; times in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReorderingWindow {
    /// Quarters of a round trip; 0 before the first late packet.
    steps: f64,
    /// Largest lateness in quarters since the window was last reduced, and the loss events since then.
    needed: f64,
    events: u32,
}

impl ReorderingWindow {
    /// Wait for a missing packet after the arrival of a later one.
    pub fn length(&self, rtt: f64) -> f64 {
        self.steps * rtt / STEPS
    }
    /// A packet arrived this long after one that was sent later.
    pub fn on_late(&mut self, late: f64, rtt: f64) {
        let needed = (late * STEPS / rtt.max(1e-9)).ceil().clamp(1.0, STEPS);
        self.needed = self.needed.max(needed);
        if self.steps < needed {
            self.steps = needed;
            self.events = 0;
        }
    }
    /// A loss event begins.
    pub fn on_loss_event(&mut self) {
        self.events += 1;
        if self.events >= EVENTS && self.steps > 0.0 {
            self.steps = self.needed.max(1.0);
            self.needed = 0.0;
            self.events = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reordering_window_follows_the_lateness_of_packets() {
        let mut window = ReorderingWindow::default();
        assert_eq!(window.length(0.04), 0.0);
        for (late, length) in [(0.003, 0.01), (0.011, 0.02), (0.001, 0.02), (0.4, 0.04)] {
            window.on_late(late, 0.04);
            assert!((window.length(0.04) - length).abs() < 1e-12, "{late}");
        }
        // The window stays wide for the first sixteen events.
        for length in [0.04, 0.01] {
            (0..EVENTS).for_each(|_| window.on_loss_event());
            assert!((window.length(0.04) - length).abs() < 1e-12, "{length}");
        }
    }
}
