//! The bottleneck's rate by the spacing of packets that left together, three or more, for `rrtp-lasthop`.
//!
//! Packets that left at one moment arrive as far apart as the slowest link needs for each. The same holds for packets that
//! left a little apart, if they waited for each other: then they arrive at least twice as far apart as they left.
//! Packets count by their bytes. If a flight did not leave together, the longest end of it that nearly did is used.

use crate::PacketOutcome;
use narrows_base::{Duration, Time};

/// Packets that are stored.
const MAX_PACKETS: usize = 80;
/// Packets that left within this time left at one moment.
const TOGETHER: Duration = Duration::from_micros(100);
/// Packets that left further apart belong to different flights.
const APART: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Came {
    sent: Time,
    acked: Time,
    bytes: u32,
}

/// The packets of a first flight that arrived.
#[derive(Clone, Debug, Default)]
pub struct PacketTrain {
    came: Vec<Came>,
}

impl PacketTrain {
    /// Stores a packet that arrived.
    pub fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if outcome.lost {
            return;
        }
        if self.came.last().is_some_and(|c| outcome.sent.since(c.sent) > APART) {
            self.came.clear();
        }
        if self.came.len() < MAX_PACKETS {
            let sent = outcome.sent;
            let acked = outcome.now;
            let bytes = outcome.bytes;
            self.came.push(Came { sent, acked, bytes });
        }
    }

    /// Bit/s of the slowest link; `None` if fewer packets than `enough`, two at least, left together.
    pub fn rate(&self, enough: usize) -> Option<f64> {
        (0..self.came.len()).find_map(|from| rate_of(self.came.get(from..)?, enough))
    }
}

fn rate_of(run: &[Came], enough: usize) -> Option<f64> {
    let first = run.first()?;
    let last = run.last()?;
    let left = last.sent.since(first.sent);
    let took = last.acked.since(first.acked);
    // Packets acknowledged together with the first have no spacing.
    let after = run.iter().filter(|c| c.acked > first.acked);
    let queued = left <= TOGETHER || took >= left.mul_f64(2.0);
    let bytes: f64 = after.clone().map(|c| f64::from(c.bytes)).sum();
    (after.count() + 1 >= enough && queued && took > Duration::ZERO)
        .then(|| 8.0 * bytes / took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of (sent, acknowledged) in microseconds, and bytes; three are enough.
    fn rate(packets: &[(u64, u64, u32)]) -> Option<f64> {
        let mut flight = PacketTrain::default();
        for (seq, &(sent, now, bytes)) in packets.iter().enumerate() {
            let [sent, now] = [sent, now].map(|us| Time::ZERO + Duration::from_micros(us));
            let seq = seq as u64;
            let lost = false;
            let marked = false;
            let radio = false;
            flight.on_packet_outcome(&PacketOutcome { now, seq, sent, bytes, lost, marked, radio });
        }
        flight.rate(3)
    }

    #[test]
    fn packets_sent_together_give_the_rate() {
        // 1000 bytes each 8 ms.
        let measured = rate(&[(0, 58_000, 1000), (20, 66_000, 1000), (50, 74_000, 1000)]);
        assert_eq!(measured, Some(1e6));
    }

    #[test]
    fn packets_queued_together_give_the_rate_by_bytes() {
        let measured = rate(&[
            (0, 58_000, 1000),
            (2_000, 58_400, 50),
            (7_000, 66_400, 1000),
            (7_000, 74_400, 1000),
        ]);
        let rate = measured.unwrap();
        assert!((rate / 1e6 - 1.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn train_without_dispersion_gives_no_rate_but_its_end_may() {
        let apart = [(0, 50_000, 1000), (5_000, 55_000, 1000), (9_000, 59_000, 1000)];
        assert_eq!(rate(&apart), None);
        // The same and three behind it at one moment: these three.
        let mut more = apart.to_vec();
        more.extend([(12_000, 62_000, 1000), (12_000, 62_500, 1000), (12_000, 63_000, 1000)]);
        assert_eq!(rate(&more), Some(16e6));
    }

    #[test]
    fn two_reports_of_two_packets_each_are_too_few_arrivals() {
        let arrivals = [(0, 60_000, 1000), (0, 60_000, 1000), (0, 68_000, 1000)];
        assert_eq!(rate(&arrivals), None);
    }
}
