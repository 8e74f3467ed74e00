//! Packets acknowledged between losses, for OLIA (draft-khalili-mptcp-congestion-control-05, section 3).

use narrows_base::{Duration, Time};

/// The intervals before and after the last loss episode. The losses of one RTT are one episode, as a controller reduces
/// its window once for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossIntervals {
    lost: u64,
    /// End of the last episode.
    until: Time,
    /// Packets acknowledged before it.
    acked: u64,
    /// Packets acknowledged between the last two.
    last: u64,
}

impl LossIntervals {
    /// Takes up the path's counts of lost and acknowledged packets since the start.
    pub fn update(&mut self, now: Time, lost: u64, acked: u64, srtt: Duration) {
        if lost > self.lost && now >= self.until {
            self.last = acked - self.acked;
            self.acked = acked;
            self.until = now + srtt;
        }
        self.lost = lost;
    }
    /// The longer of both, in packets.
    pub fn longest(&self, acked: u64) -> f64 {
        self.last.max(acked - self.acked) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_one_rtt_are_one_interval() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let rtt = Duration::from_millis(100);
        let mut losses = LossIntervals::default();
        losses.update(at(0), 0, 10, rtt);
        assert_eq!(losses.longest(20), 20.0);
        losses.update(at(10), 1, 30, rtt);
        losses.update(at(50), 5, 40, rtt);
        assert_eq!(losses.longest(40), 30.0);
        losses.update(at(200), 6, 90, rtt);
        assert_eq!(losses.longest(90), 60.0);
        assert_eq!(losses.longest(200), 110.0);
    }
}
