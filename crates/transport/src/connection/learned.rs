//! What a connection learns of its path.

use narrows_base::{Duration, Rate, Time};
use narrows_congestion::RateSample;

/// The delivery rate of the last so many round trips counts.
const ROUND_TRIPS: u64 = 10;
/// ... but of this time at least.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// The highest delivery rate of late: of the stretch of time that runs and of the one before.
#[derive(Debug, Default)]
pub(super) struct Learned {
    now: f64,
    before: f64,
    since: Time,
}

impl Learned {
    /// A sample while packets had so many bytes on the wire: true if it says something new.
    #[inline]
    pub fn on_sample(
        &mut self,
        now: Time,
        sample: &RateSample,
        bytes: u32,
        srtt: Duration,
    ) -> bool {
        let bps = sample.per_second() * f64::from(bytes) * 8.0;
        // What the application limited says only that the path carries no less.
        if sample.app_limited && bps <= self.bps() {
            return false;
        }
        if now.since(self.since) > srtt.saturating_mul(ROUND_TRIPS).max(MIN_SPAN) {
            (self.before, self.now, self.since) = (self.now, 0.0, now);
        }
        self.now = self.now.max(bps);
        true
    }
    fn bps(&self) -> f64 {
        self.now.max(self.before)
    }
    /// Bit/s on the wire.
    pub fn rate(&self) -> Option<Rate> {
        (self.bps() > 0.0).then(|| Rate::from_bps_f64(self.bps().min(1e15)))
    }
}
