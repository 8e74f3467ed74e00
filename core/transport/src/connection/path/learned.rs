//! The path's delivery rate, for later connections and the datagram size.

use narrows_base::{Duration, Rate, Time};
use narrows_congestion::RateSample;

/// Length of a period in round trips, and at least `MIN_SPAN`.
const ROUND_TRIPS: u64 = 10;
/// Shortest period.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// The highest recent delivery rate: of the present period and of the previous one, in bit/s.
#[derive(Debug, Default)]
pub(super) struct RecentRate {
    now: f64,
    before: f64,
    since: Time,
}

impl RecentRate {
    /// Adds a sample, with packets of `bytes` bytes on the wire. Returns whether it counts.
    #[inline]
    pub fn on_sample(
        &mut self,
        now: Time,
        sample: &RateSample,
        bytes: u32,
        srtt: Duration,
    ) -> bool {
        let bps = sample.per_second() * f64::from(bytes) * 8.0;
        // An application-limited sample is a lower bound of the path's rate.
        if sample.app_limited && bps <= self.bps() {
            return false;
        }
        if now.since(self.since) > srtt.saturating_mul(ROUND_TRIPS).max(MIN_SPAN) {
            self.before = self.now;
            self.now = 0.0;
            self.since = now;
        }
        self.now = self.now.max(bps);
        true
    }
    fn bps(&self) -> f64 {
        self.now.max(self.before)
    }
    /// The highest rate of both periods, on the wire; `None` before the first sample.
    pub fn rate(&self) -> Option<Rate> {
        (self.bps() > 0.0).then(|| Rate::from_bps_f64(self.bps().min(1e15)))
    }
}
