//! What the spacing of a few packets tells of the path's rate: a packet pair (S3 section 3.2) of three
//! or more.
//!
//! Packets that left at one moment arrive as far apart as the slowest link needs for them. So do those
//! that left a little apart, as long as they waited for each other there; that they did is seen
//! where they came at least twice as far apart as they left. Applications begin with something small, or
//! in several turns, so packets count by their bytes, and of a flight that did not leave together the
//! longest end that nearly did is taken.
//!
//! Outcomes come in the order in which packets left, so that those behind a lost one come together, when the loss is
//! known. Their acknowledgements come as they arrived, and count.

use crate::PacketOutcome;
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Packets that are remembered: a train, and what was left of the flights before it.
const MAX_PACKETS: usize = 80;
/// Within so much time packets left at one moment.
const TOGETHER: Duration = Duration::from_micros(100);
/// Hosts that take turns say in so much time that packets came, however close they were.
pub(super) const AT_ONCE: Duration = Duration::from_micros(500);
/// Not a flight any more.
const APART: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Came {
    sent: Time,
    told: Time,
    bytes: u32,
}

/// The packets of a first flight that arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    came: Vec<Came>,
    /// Acknowledgements of packets whose outcome waits for that of an earlier one.
    early: VecDeque<Time>,
    /// Outcomes that were told before their acknowledgement.
    unacked: u64,
}

impl Flight {
    pub fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if outcome.lost {
            return;
        }
        if self.came.last().is_some_and(|c| outcome.sent.since(c.sent) > APART) {
            self.came.clear();
        }
        let told = self.early.pop_front();
        self.unacked += u64::from(told.is_none());
        if self.came.len() < MAX_PACKETS {
            let (sent, told) = (outcome.sent, told.unwrap_or(outcome.now));
            self.came.push(Came { sent, told, bytes: outcome.bytes });
        }
    }

    /// So many packets were acknowledged.
    pub fn on_ack(&mut self, now: Time, delivered: u64) {
        let known = delivered.min(self.unacked);
        self.unacked -= known;
        let early = (delivered - known).min(MAX_PACKETS as u64);
        self.early.extend((0..early).map(|_| now));
        self.early.truncate(MAX_PACKETS);
    }

    /// What comes from now on is another flight.
    pub fn begin(&mut self) {
        self.came.clear();
    }

    /// Whether so many packets, and at least so many bytes, came too close to each other for hosts to tell
    /// a rate. One report alone says nothing of it: others may have been lost.
    pub fn came_at_once(&self, enough: usize, bytes: f64) -> bool {
        let (Some(first), Some(last)) = (self.came.first(), self.came.last()) else { return false };
        let came: f64 = self.came.iter().map(|c| f64::from(c.bytes)).sum();
        let took = last.told.since(first.told);
        self.came.len() >= enough && came >= bytes && took > Duration::ZERO && took < AT_ONCE
    }

    /// Bit/s of the slowest link, if at least so many packets tell it.
    pub fn rate(&self, enough: usize) -> Option<f64> {
        (0..self.came.len()).find_map(|from| rate_of(self.came.get(from..)?, enough))
    }
}

fn rate_of(run: &[Came], enough: usize) -> Option<f64> {
    let (first, last) = (run.first()?, run.last()?);
    let left = last.sent.since(first.sent);
    let took = last.told.since(first.told);
    // Those that one report told of with the first say nothing.
    let after = run.iter().filter(|c| c.told > first.told);
    let queued = left <= TOGETHER || took >= left.mul_f64(2.0);
    let bytes: f64 = after.clone().map(|c| f64::from(c.bytes)).sum();
    (run.len() >= enough && after.count() >= 2 && queued && took > Duration::ZERO)
        .then(|| 8.0 * bytes / took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of (sent, told of) in microseconds, and bytes.
    fn rate(packets: &[(u64, u64, u32)]) -> Option<f64> {
        let mut flight = Flight::default();
        for (seq, &(sent, now, bytes)) in packets.iter().enumerate() {
            let [sent, now] = [sent, now].map(|us| Time::ZERO + Duration::from_micros(us));
            let (seq, lost, marked, radio) = (seq as u64, false, false, false);
            flight.on_packet_outcome(&PacketOutcome { now, seq, sent, bytes, lost, marked, radio });
        }
        flight.rate(3)
    }

    #[test]
    fn what_left_together_tells_the_rate() {
        // 1000 bytes each 8 ms.
        let told = rate(&[(0, 58_000, 1000), (20, 66_000, 1000), (50, 74_000, 1000)]);
        assert_eq!(told, Some(1e6));
    }

    #[test]
    fn what_waited_for_each_other_tells_it_too_by_its_bytes() {
        let told = rate(&[
            (0, 58_000, 1000),
            (2_000, 58_400, 50),
            (7_000, 66_400, 1000),
            (7_000, 74_400, 1000),
        ]);
        let rate = told.unwrap();
        assert!((rate / 1e6 - 1.0).abs() < 1e-9, "{rate}");
    }

    /// The outcomes of what left behind a lost packet come together, when the loss is known; the acknowledgements came
    /// as far apart as the packets arrived.
    #[test]
    fn a_flight_that_lost_a_packet_tells_the_rate_by_what_else_came() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let told = |lost: u64| {
            let mut flight = Flight::default();
            let mut waiting = Vec::new();
            for seq in 0..4 {
                let (sent, now) = (at(0), at(58_000 + 8_000 * seq));
                let (bytes, marked, radio) = (1000, false, false);
                let lost_one = seq == lost;
                let outcome =
                    PacketOutcome { now, seq, sent, bytes, lost: lost_one, marked, radio };
                if seq < lost {
                    flight.on_packet_outcome(&outcome);
                } else {
                    waiting.push(outcome);
                }
                if !lost_one {
                    flight.on_ack(now, 1);
                }
            }
            for outcome in waiting {
                flight.on_packet_outcome(&PacketOutcome { now: at(150_000), ..outcome });
            }
            flight.rate(3)
        };
        assert_eq!(told(0), Some(1e6));
        // Whether the link sent the one that is missing in between is not known.
        assert!(told(1).is_some_and(|rate| (rate / 1e6 - 2.0 / 3.0).abs() < 1e-9), "{:?}", told(1));
        assert_eq!(told(3), Some(1e6));
    }

    #[test]
    fn what_came_as_it_left_tells_nothing_but_its_end_may() {
        let apart = [(0, 50_000, 1000), (5_000, 55_000, 1000), (9_000, 59_000, 1000)];
        assert_eq!(rate(&apart), None);
        // The same and three behind it at one moment: these three.
        let mut more = apart.to_vec();
        more.extend([(12_000, 62_000, 1000), (12_000, 62_500, 1000), (12_000, 63_000, 1000)]);
        assert_eq!(rate(&more), Some(16e6));
    }

    #[test]
    fn a_lone_report_of_all_is_no_sign_of_a_fast_path() {
        let at_once = |packets: &[(u64, u64)]| {
            let mut flight = Flight::default();
            for (seq, &(sent, now)) in packets.iter().enumerate() {
                let [sent, now] = [sent, now].map(|us| Time::ZERO + Duration::from_micros(us));
                let (seq, lost, marked, radio) = (seq as u64, false, false, false);
                flight.on_packet_outcome(&PacketOutcome {
                    now,
                    seq,
                    sent,
                    bytes: 1000,
                    lost,
                    marked,
                    radio,
                });
            }
            flight.came_at_once(3, 2000.0)
        };
        assert!(at_once(&[(0, 50_000), (0, 50_000), (0, 50_100)]));
        assert!(!at_once(&[(0, 50_000), (0, 50_000), (0, 50_000)]));
        assert!(!at_once(&[(0, 50_000), (0, 50_100)]));
        assert!(!at_once(&[(0, 50_000), (0, 50_100), (0, 51_000)]));
    }

    #[test]
    fn two_reports_of_two_packets_each_are_too_few_arrivals() {
        let told = [(0, 60_000, 1000), (0, 60_000, 1000), (0, 68_000, 1000)];
        assert_eq!(rate(&told), None);
    }
}
