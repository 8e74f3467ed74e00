//! The reordering window of RFC 8985: how late packets may be before they are declared lost, on a path that reorders.
//!
//! While no reordering was seen, a distance of [`PACKET_THRESHOLD`](super::losses::PACKET_THRESHOLD) numbers is a loss,
//! at once. After a packet has arrived behind one sent that many numbers later, the distance no longer counts. A packet
//! is then lost when it is later than one sent after it by a window of time, a quarter of the smallest RTT at first
//! (section 6.2 step 4). The window is widened to the lateness of late packets, which their arrival shows. RFC 8985
//! widens it by one quarter per round trip, since its sender sees only that there were duplicates. After 16 recoveries
//! it shrinks to the largest lateness seen meanwhile, or to a quarter. It never exceeds the smoothed RTT.

use super::round_trip::RoundTrip;
use narrows_base::Duration;

/// RFC 8985 section 6.2 step 4: RACK.reo_wnd_persist.
const RECOVERIES: u32 = 16;
/// The window grows in steps of the smallest RTT divided by this.
const STEPS_PER_RTT: u64 = 4;

/// Widened by late packets, and shortened after some recoveries.
#[derive(Debug, Default)]
pub(super) struct AdaptiveReorderingWindow {
    /// The window, in quarters of the smallest RTT; 0 until reordering is seen.
    steps: u32,
    /// The largest lateness since the window was last shortened, in the same unit.
    needed: u32,
    /// Recoveries since then.
    recoveries: u32,
}

impl AdaptiveReorderingWindow {
    /// Whether reordering was seen.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.steps > 0
    }
    /// The present window.
    pub fn length(&self, path: &RoundTrip) -> Duration {
        step(path).saturating_mul(u64::from(self.steps)).min(path.srtt())
    }
    /// A packet arrived behind later ones, `took` after it was sent.
    pub fn on_reordered(&mut self, took: Duration, path: &RoundTrip) {
        let late = took - took.min(path.expected());
        let steps = |time: Duration| time.as_nanos().div_ceil(step(path).as_nanos().max(1));
        let needed = steps(late).min(steps(path.srtt())).max(1);
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        self.needed = self.needed.max(needed);
        if self.steps < needed {
            self.steps = needed;
            self.recoveries = 0;
        }
    }
    /// A recovery begins.
    pub fn on_recovery(&mut self) {
        self.recoveries += 1;
        if self.recoveries >= RECOVERIES && self.is_open() {
            self.steps = self.needed.max(1);
            self.needed = 0;
            self.recoveries = 0;
        }
    }
}

fn step(path: &RoundTrip) -> Duration {
    Duration::from_nanos(path.min_rtt().min(path.srtt()).as_nanos() / STEPS_PER_RTT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::RtoConfig;
    use narrows_base::Time;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }
    fn path() -> RoundTrip {
        let mut path = RoundTrip::new(&RtoConfig::RFC);
        path.sample(Time::ZERO, ms(40));
        path
    }

    #[test]
    fn reordering_window_starts_at_quarter_rtt_and_widens() {
        let path = path();
        let mut window = AdaptiveReorderingWindow::default();
        assert!(!window.is_open());
        window.on_reordered(ms(43), &path);
        assert!(window.is_open());
        assert_eq!(window.length(&path), ms(10));
        window.on_reordered(ms(65), &path);
        assert_eq!(window.length(&path), ms(30));
        window.on_reordered(ms(400), &path);
        assert_eq!(window.length(&path), ms(40), "no longer than a round trip");
    }

    #[test]
    fn reordering_window_is_recent_need_after_sixteen_recoveries() {
        let path = path();
        let mut window = AdaptiveReorderingWindow::default();
        window.on_reordered(ms(75), &path);
        assert_eq!(window.length(&path), ms(40));
        for _ in 0..RECOVERIES {
            assert_eq!(window.length(&path), ms(40));
            window.on_recovery();
        }
        // The packet that widened the window counts until here.
        assert_eq!(window.length(&path), ms(40));
        window.on_reordered(ms(55), &path);
        for _ in 0..RECOVERIES {
            window.on_recovery();
        }
        assert_eq!(window.length(&path), ms(20));
        for _ in 0..RECOVERIES {
            window.on_recovery();
        }
        assert_eq!(window.length(&path), ms(10), "never less than a quarter of a round trip");
    }
}
