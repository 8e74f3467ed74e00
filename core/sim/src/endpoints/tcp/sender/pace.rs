//! When segments leave together, and when the pacer permits the next ones.

use super::TcpSender;
use narrows_base::{Duration, Time};

/// The first segments are not paced (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;
/// The window divided by this is always sent (`tcp_tso_win_divisor`).
const SHARE: u64 = 3;

impl TcpSender {
    /// Estimated sending rate, payload bit/s: the pacing rate, or the window per RTT, times 2 in slow start and 1.2
    /// later.
    fn supposed_rate(&self) -> f64 {
        let limits = self.controller.send_limits();
        if let Some(rate) = limits.pacing_rate {
            let (payload, packet) = self.sizes();
            return rate.as_bps() as f64 * f64::from(payload) / f64::from(packet);
        }
        let factor = if limits.cwnd < limits.ssthresh.unwrap_or(0.0) / 2.0 { 2.0 } else { 1.2 };
        let segments = limits.cwnd.max(self.flight() as f64);
        let srtt = self.rtt.srtt().as_secs_f64().max(1e-6);
        factor * segments * f64::from(self.format.payload) * 8.0 / srtt
    }

    /// Whether to wait for the next acknowledgement rather than send `room` segments now.
    pub(super) fn defers(&mut self, now: Time, room: u64) -> bool {
        let Some(bursts) = self.pacing.bursts else { return false };
        if bursts.left > 0 {
            return false;
        }
        let max = bursts.segments(self.supposed_rate(), self.path_min_rtt());
        let bytes = self.available / u64::from(self.format.payload.max(1));
        let cwnd = self.controller.send_limits().cwnd;
        let srtt = self.rtt.srtt();
        let soon = Duration::from_millis(1).min(Duration::from_nanos(srtt.as_nanos() / 2));
        let defers = !self.recovery.repairs()
            && room < max
            && room < bytes
            && (room as f64) < (cwnd / SHARE as f64).floor()
            && now.since(bursts.last_sent) <= Duration::from_millis(1)
            && self.scoreboard.una < self.scoreboard.max
            && self.scoreboard.get(self.scoreboard.una).sent + srtt <= now + soon;
        if !defers && let Some(bursts) = &mut self.pacing.bursts {
            bursts.left = room.min(max);
            bursts.last_sent = now;
        }
        defers
    }

    pub(super) fn end_burst(&mut self) {
        if let Some(bursts) = &mut self.pacing.bursts {
            bursts.left = 0;
        }
    }

    /// Whether the last segment sent is one of the first, which are not paced.
    pub(super) fn is_unpaced(&self) -> bool {
        self.counters.sent <= UNPACED
    }

    /// When the pacer permits the next burst. A late timer is made up for by at most half a packet's time.
    pub(super) fn after_paced(&mut self, now: Time, gap: Duration) -> Time {
        let late =
            if now > self.pacing.free { now.since(self.pacing.free) } else { Duration::ZERO };
        let half = Duration::from_nanos(gap.as_nanos() / 2);
        self.pacing.free.max(now) + (gap - late.min(half))
    }
}
