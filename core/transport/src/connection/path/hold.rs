//! How long packets that may leave are held, to send several in one call.

use narrows_base::{Duration, Time};

/// Longest time that a paced connection waits in order to send several packets in one call. Only above [`BURST_RATE`].
const MAX_HOLD: Duration = Duration::from_micros(500);
/// Most packets that the hold collects for one call.
const MAX_HELD: u64 = 40;
/// Below this rate (bit/s) packets leave one by one.
const BURST_RATE: u64 = 5_000_000;

/// Packets held by the pacer, or to send several at once.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Packets are held until this time.
    pub until: Option<Time>,
    /// Whether data wait for it.
    pub has_data: bool,
}

/// How long a packet of `bytes` bytes is held at a pacing rate of `rate` bit/s. The pacer's credit compensates for the
/// delay.
pub(super) fn length(rate: u64, bytes: u64, srtt: Duration) -> Duration {
    if rate < BURST_RATE {
        return Duration::ZERO;
    }
    let packet = Duration::from_secs_f64((bytes * 8) as f64 / rate as f64);
    let most = srtt.mul_f64(0.25).min(MAX_HOLD);
    let hold = packet.saturating_mul(MAX_HELD).min(most);
    Duration::from_nanos(hold.as_nanos().saturating_sub(packet.as_nanos()))
}
