//! Estimates of when a path would deliver data.

use crate::path::{PathState, usable};
use narrows_base::{Duration, Time};

/// A lost packet is found after about one RTT (RFC 9002 section 6.1) and sent again, which takes half an RTT.
const REPAIR_RTTS: f64 = 1.5;

/// Expected time from departure to delivery of a packet, without its transmission: half the smallest RTT, and the whole
/// of the present queue, which the sender's own data make in this direction; the RTT variation, since the stream waits
/// for the later half of its packets; and the repair of a loss, times its probability.
pub(crate) fn delay(path: &PathState) -> Duration {
    let is_known = path.min_rtt > Duration::ZERO && path.min_rtt < path.srtt;
    let least = if is_known { path.min_rtt } else { path.srtt };
    let repair = path.srtt.mul_f64(path.loss() * REPAIR_RTTS);
    least.mul_f64(0.5) + (path.srtt - least) + path.rttvar + repair
}

/// By how much the slowest usable path takes longer to deliver a packet than the fastest one. Paths without a
/// measurement do not count.
pub fn delay_difference(paths: &[PathState]) -> Duration {
    let measured = usable(paths).filter(|(_, path)| path.srtt > Duration::ZERO);
    let delays = measured.map(|(_, path)| delay(path));
    let slowest = delays.clone().max().unwrap_or(Duration::ZERO);
    slowest - delays.min().unwrap_or(Duration::ZERO)
}

/// As [`delay`], of a packet that repeats lost data. The stream waits for the last of the packets that a path loses in a
/// round trip, so a repair counts with the probability that any of them would be lost again.
pub(crate) fn delay_of_lost(path: &PathState, length: u32) -> Duration {
    let packets = path.rate().unwrap_or(0.0) * path.srtt.as_secs_f64() / f64::from(length.max(1));
    let again = (path.loss() * (path.loss() * packets).max(1.0)).min(1.0);
    delay(path) + path.srtt.mul_f64((again - path.loss()) * REPAIR_RTTS)
}

/// Transmission time of this many bytes; zero if the rate is unknown.
pub(crate) fn transmission(path: &PathState, bytes: u64) -> Duration {
    path.rate().map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 / rate))
}

/// When the path may send a packet of this length. A path that waits for an acknowledgement gets one as often as it
/// delivers a packet.
pub(crate) fn departure(now: Time, path: &PathState, length: u32) -> Time {
    if path.sendable.is_never() {
        now + transmission(path, u64::from(length))
    } else {
        path.sendable.max(now)
    }
}
