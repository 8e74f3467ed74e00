//! How far the path reorders: RACK's reordering window (RFC 8985 section 6.2 step 4), and Linux's degree of reordering.
//!
//! The window is a quarter of the smallest RTT. A round trip in which the receiver reports duplicates of retransmitted
//! segments widens it by another quarter, up to the smoothed RTT. Sixteen recoveries without such reports reset it.

use super::DUP_THRESH;
use narrows_base::Duration;

/// RACK.reo_wnd_persist (`TCP_RACK_RECOVERY_THRESH`).
const RECOVERIES: u32 = 16;
/// Limit on the window's steps, and on the degree (`sysctl_tcp_max_reordering`).
const MAX_STEPS: u32 = 255;
const MAX_DEGREE: u64 = 300;

/// What the sender has learned of reordering.
#[derive(Debug)]
pub(super) struct PathReordering {
    /// Whether a segment arrived later than its successors without being retransmitted.
    seen: bool,
    /// Segments by which the path reorders (`tp->reordering`).
    degree: u64,
    /// The window, in quarters of the smallest RTT.
    steps: u32,
    /// Recoveries until the window is reset.
    persist: u32,
    /// Whether duplicates were reported since the last change of the window.
    duplicates: bool,
    /// Segments delivered when the window was last widened.
    widened_at: u64,
}

impl Default for PathReordering {
    fn default() -> PathReordering {
        PathReordering {
            seen: false,
            degree: DUP_THRESH,
            steps: 1,
            persist: 0,
            duplicates: false,
            widened_at: 0,
        }
    }
}

impl PathReordering {
    /// Whether reordering was seen.
    pub fn is_seen(&self) -> bool {
        self.seen
    }
    /// Whether the path reorders by more segments than indicate a loss (`tcp_may_raise_cwnd`).
    pub fn is_high(&self) -> bool {
        self.degree > DUP_THRESH
    }
    /// A segment arrived behind the `distance` segments after it.
    pub fn on_reordered(&mut self, distance: u64) {
        self.seen = true;
        self.degree = self.degree.max(distance.min(MAX_DEGREE));
    }
    /// A timeout, behind so many selectively acknowledged segments: the degree was overestimated.
    pub fn on_timeout(&mut self, sacked: u64) {
        if sacked >= DUP_THRESH {
            self.degree = DUP_THRESH;
        }
    }
    /// The receiver reported a duplicate of a segment that RACK had retransmitted.
    pub fn on_duplicate(&mut self) {
        self.duplicates |= self.seen;
    }
    /// Segments were delivered, `delivered` in all. When the newest was sent, this count was `prior`.
    pub fn on_delivered(&mut self, prior: u64, delivered: u64) {
        // At most once per round trip.
        self.duplicates &= prior >= self.widened_at;
        if self.duplicates {
            self.steps = (self.steps + 1).min(MAX_STEPS);
            self.duplicates = false;
            self.widened_at = delivered;
            self.persist = RECOVERIES;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }
    /// A recovery ended with a loss, or was undone by reports of duplicates.
    pub fn on_recovery(&mut self, was_undone: bool) {
        self.persist = if was_undone {
            (self.persist + 1).min(RECOVERIES)
        } else {
            self.persist.saturating_sub(1)
        };
    }
    /// The window's length.
    pub fn window(&self, min_rtt: Duration, srtt: Duration) -> Duration {
        let min_rtt = if min_rtt == Duration::MAX { srtt } else { min_rtt };
        Duration::from_nanos(min_rtt.as_nanos() / 4).saturating_mul(u64::from(self.steps)).min(srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarters(path: &PathReordering) -> u64 {
        path.window(Duration::from_millis(40), Duration::from_millis(100)).as_nanos() / 10_000_000
    }

    #[test]
    fn duplicates_widen_window_once_per_round_trip() {
        let mut path = PathReordering::default();
        path.on_duplicate();
        path.on_delivered(10, 20);
        assert_eq!(quarters(&path), 1, "no reordering was seen");
        path.on_reordered(2);
        path.on_duplicate();
        path.on_delivered(20, 30);
        assert_eq!(quarters(&path), 2);
        path.on_duplicate();
        path.on_delivered(29, 40);
        assert_eq!(quarters(&path), 2, "the same round trip");
        for n in 4..20 {
            path.on_duplicate();
            path.on_delivered(n * 10, n * 10 + 10);
        }
        assert_eq!(quarters(&path), 10, "no longer than the smoothed RTT");
    }

    #[test]
    fn sixteen_recoveries_without_duplicates_reset_window() {
        let mut path = PathReordering::default();
        path.on_reordered(2);
        path.on_duplicate();
        path.on_delivered(20, 30);
        for _ in 0..RECOVERIES {
            path.on_delivered(40, 50);
            assert_eq!(quarters(&path), 2);
            path.on_recovery(false);
        }
        path.on_delivered(40, 50);
        assert_eq!(quarters(&path), 1);
    }
}
