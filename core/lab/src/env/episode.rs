//! The link of an episode, in numbers.

use narrows_base::Duration;
use narrows_link::QueueLimit;
use narrows_scenario::BottleneckLink;

/// The most packets that a window may have.
const MAX_WINDOW: f64 = 1_048_576.0;
/// Capacity of a queue without a limit, in packets, for bounds of observations.
const UNLIMITED: f64 = 16_384.0;
/// The least that [`Episode::max_window`] is.
const MIN_MAX_WINDOW: f64 = 64.0;
/// Largest window as a multiple of the capacity of link and queue, and largest pacing rate as a multiple of the link's
/// rate. [`MIN_PART`] is the smallest pacing rate as a part of it.
const MAX_EXCESS: f64 = 4.0;
const MIN_PART: f64 = 1.0 / 1024.0;

/// The link of an episode.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// Rate of the link in bit/s; of a trace, its mean.
    pub rate_bps: f64,
    /// RTT of the path with empty queues, in seconds: delays and one packet's transmission.
    pub base_rtt_s: f64,
    /// Packets per second that the link carries.
    pub capacity: f64,
    /// Bits of a full packet on the wire.
    pub packet_bits: f64,
    /// Length of a step.
    pub step: Duration,
    /// Bound on windows in packets: four times the capacity of link and queue, at least 64.
    pub max_window: f64,
    /// Window before the first action.
    pub initial_window: f64,
}

impl Episode {
    pub(crate) fn new(link: &BottleneckLink, packet_bytes: u32, initial_window: f64) -> Episode {
        let packet_bits = 8.0 * f64::from(packet_bytes);
        let rate_bps = link.forward.mean_bps();
        let capacity = rate_bps / packet_bits;
        let base_rtt_s = link.base_rtt().as_secs_f64() + 1.0 / capacity;
        let room = match link.forward.limit(link.base_rtt(), packet_bytes) {
            QueueLimit::Packets(n) | QueueLimit::Either { packets: n, .. } => n as f64,
            QueueLimit::Bytes(n) => n as f64 * 8.0 / packet_bits,
            QueueLimit::Unlimited => UNLIMITED,
        };
        let max_window = MAX_EXCESS * (capacity * base_rtt_s + room);
        Episode {
            rate_bps,
            base_rtt_s,
            capacity,
            packet_bits,
            step: Duration::ZERO,
            max_window: max_window.clamp(MIN_MAX_WINDOW, MAX_WINDOW).max(initial_window),
            initial_window,
        }
    }

    /// A pacing rate within its bounds: from a 1024th of the link's rate to four times it.
    pub(crate) fn clamp_bps(&self, bps: f64) -> f64 {
        bps.clamp(self.rate_bps * MIN_PART, self.rate_bps * MAX_EXCESS).max(1.0)
    }
}
