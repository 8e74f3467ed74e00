//! What a connection measures of its path.

use narrows_base::{Duration, Rate, Time};
use narrows_congestion::RateSample;

/// The delivery rate is taken over this many round trips …
const ROUND_TRIPS: u64 = 10;
/// … but over at least this time.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// The highest recent delivery rate: of the present period and of the previous one.
#[derive(Debug, Default)]
pub(super) struct Learned {
    now: f64,
    before: f64,
    since: Time,
}

impl Learned {
    /// Takes a sample while packets have this many bytes on the wire. Returns whether it changed
    /// the estimate.
    #[inline]
    pub fn on_sample(
        &mut self,
        now: Time,
        sample: &RateSample,
        bytes: u32,
        srtt: Duration,
    ) -> bool {
        let bps = sample.per_second() * f64::from(bytes) * 8.0;
        // If the application was the limit, the path carries at least this rate.
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
