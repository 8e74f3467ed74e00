//! Bursts of segments, as Linux builds them for segmentation offload: up to a millisecond's worth, and fewer only if no
//! more are expected soon.

use narrows_base::{Duration, Time};

/// Bytes of the largest burst, and the usual number of bursts per second (`sk_pacing_shift`).
const MAX_BYTES: u64 = 65_536;
const PARTS: f64 = 1024.0;

/// State of the bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bursts {
    payload: f64,
    /// Segments of the present burst that may still leave.
    pub left: u64,
    pub last_sent: Time,
}

impl Bursts {
    pub fn new(payload: u32) -> Bursts {
        Bursts { payload: f64::from(payload.max(1)), left: 0, last_sent: Time::ZERO }
    }
    pub fn under_way(&self) -> bool {
        self.left > 0
    }
    pub fn on_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
    /// Segments of a burst at `rate` bit/s of payload.
    pub fn segments(&self, rate: f64, min_rtt: Duration) -> u64 {
        let near = (min_rtt.as_nanos() / 1000) >> 9;
        let extra = if near < 32 { MAX_BYTES >> near } else { 0 };
        let bytes = (rate / 8.0 / PARTS + extra as f64).min(MAX_BYTES as f64);
        ((bytes / self.payload) as u64).max(2)
    }
}
