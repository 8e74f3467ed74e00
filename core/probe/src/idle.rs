//! Delay without a queue, and jitter: small packets, far enough apart that they do not queue behind each other.

use crate::statistics::{ConfidenceInterval, quantile};
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::Duration;

const PACKETS: u32 = 40;
const FEWEST: u32 = 8;
/// One in this many packets leaves marked (ECN).
const CE_SHARE: u32 = 5;
/// With the headers of IP and UDP.
pub(crate) const SMALL_BYTES: u32 = 200;
const MIN_GAP: f64 = 0.012;
/// Minimum gap in multiples of a packet's transmission time.
const APART: f64 = 3.0;
/// Less jitter than this, in seconds, cannot be distinguished from the hosts' own.
const MIN_JITTER: f64 = 300e-6;

/// Result of an idle train.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleDelay {
    /// Seconds by both clocks, of an empty path and a packet without length.
    pub base: ConfidenceInterval,
    /// Largest delay above `base`, seconds.
    pub jitter: f64,
}

/// As many packets as there is time for.
pub(crate) fn train(rate: f64, left: Duration) -> Train {
    let transmission = f64::from(SMALL_BYTES) * 8.0 / rate;
    let gap = (APART * transmission).max(MIN_GAP);
    let packets = PACKETS.min((left.as_secs_f64() / gap) as u32).max(FEWEST);
    let gap = Duration::from_secs_f64(gap);
    let ce = packets / CE_SHARE;
    Train { purpose: Purpose::Idle, packets, bytes: SMALL_BYTES, gap, ce }
}

/// `rate` in bits per second.
pub(crate) fn read(observed: &TrainObservation, rate: f64) -> Option<IdleDelay> {
    let delays: Vec<f64> = observed.delays().iter().map(|d| d.1).collect();
    if delays.len() < 3 {
        return None;
    }
    let n = delays.len() as f64;
    let min = quantile(&delays, 0.0);
    let range = quantile(&delays, 1.0) - min;
    // Of an even distribution both are its width. A few packets that were held back widen the range alone.
    let quartiles = 2.0 * (quantile(&delays, 0.75) - quantile(&delays, 0.25));
    let whole = range * (n + 1.0) / (n - 1.0);
    let jitter = if whole < 1.7 * quartiles { whole } else { quartiles.min(whole) };
    let transmission = f64::from(SMALL_BYTES) * 8.0 / rate;
    let step = jitter / (n + 1.0);
    let base = min - transmission;
    let base = ConfidenceInterval {
        value: base - step,
        low: base - 4.0 * step - 50e-6,
        high: base + 50e-6,
    };
    let jitter = if jitter < MIN_JITTER { 0.0 } else { jitter };
    Some(IdleDelay { base, jitter })
}
