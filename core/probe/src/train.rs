//! A train of packets: its plan, and its observation.

use narrows_base::Duration;

/// Purpose of a train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A first estimate of the rate: a few packets back to back.
    Open,
    /// The rate: somewhat faster than the estimate, too short to fill a queue.
    Rate,
    /// Base delay and jitter: small packets, far enough apart that they do not queue behind each other.
    Idle,
    /// Losses and reordering: a steady load below the rate.
    Steady,
    /// The same well below the steady load's arrival rate: distinguishes a policer from random loss.
    Below,
    /// The buffer: faster than the rate until packets are dropped.
    Fill,
}

/// A train to send: packets of one size, evenly spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Train {
    /// Purpose of the train.
    pub purpose: Purpose,
    /// Number of packets.
    pub packets: u32,
    /// Bytes of each, the headers of IP and UDP included.
    pub bytes: u32,
    /// From one packet to the next.
    pub gap: Duration,
    /// Number of packets at the end that leave with their ECN field set to CE, as a router would set it. Earlier ones
    /// leave with ECT(0).
    pub ce: u32,
}

impl Train {
    /// Bytes of all its packets.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.packets) * u64::from(self.bytes)
    }
    /// From its first to its last packet.
    pub fn length(&self) -> Duration {
        self.gap.saturating_mul(u64::from(self.packets.saturating_sub(1)))
    }
}

/// A packet that arrived, by the receiver's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrainArrival {
    /// Which packet of the train.
    pub index: u32,
    /// Arrival time by the receiver's clock.
    pub at_ns: u64,
    /// ECN field at arrival.
    pub ecn: u8,
}

/// Send and arrival times of a train's packets.
#[derive(Clone, Debug, Default)]
pub struct TrainObservation {
    /// Send time of each packet that was sent, ns by the sender's clock.
    pub sent: Vec<u64>,
    /// When each arrived, ns by the receiver's clock; `None` if it did not.
    pub arrived: Vec<Option<u64>>,
    /// The ECN field of each that arrived.
    pub ecn: Vec<u8>,
    /// How many arrived after a packet that was sent later.
    pub late: u32,
}

impl TrainObservation {
    /// Joins both sides' records. Arrivals of packets that were not sent, and second arrivals, do not count.
    pub fn new(sent: Vec<u64>, arrivals: &[TrainArrival]) -> TrainObservation {
        let mut arrived = vec![None; sent.len()];
        let mut late = 0;
        let mut newest = 0;
        let mut ecn = vec![0; sent.len()];
        for arrival in arrivals {
            let Some(place) = arrived.get_mut(arrival.index as usize) else { continue };
            if place.is_none() {
                *place = Some(arrival.at_ns);
                if let Some(field) = ecn.get_mut(arrival.index as usize) {
                    *field = arrival.ecn;
                }
                late += u32::from(arrival.index < newest);
                newest = newest.max(arrival.index);
            }
        }
        TrainObservation { sent, arrived, ecn, late }
    }
    /// Sending rate in bits per second: a busy host sends more slowly than planned.
    pub fn load(&self, train: &Train) -> f64 {
        let (Some(first), Some(last)) = (self.sent.first(), self.sent.last()) else { return 0.0 };
        let seconds = last.saturating_sub(*first) as f64 * 1e-9;
        let bits = f64::from(train.bytes) * 8.0 * (self.sent.len() as f64 - 1.0);
        if seconds > 0.0 { bits / seconds } else { f64::INFINITY }
    }
    /// Number of packets that arrived.
    pub fn count(&self) -> usize {
        self.arrived.iter().flatten().count()
    }
    /// Index, and delay from sender to receiver in seconds, of each packet that arrived. The clocks differ, so that
    /// only differences of these mean something.
    pub fn delays(&self) -> Vec<(usize, f64)> {
        let both = self.sent.iter().zip(&self.arrived).enumerate();
        both.filter_map(|(i, (sent, arrived))| {
            let arrived = (*arrived)?;
            Some((i, (i128::from(arrived) - i128::from(*sent)) as f64 * 1e-9))
        })
        .collect()
    }
    /// Seconds from the first packet sent to each arrival, by index. Only spacings mean something.
    pub fn arrival_times(&self) -> Vec<(usize, f64)> {
        let first = self.arrived.iter().flatten().min().copied().unwrap_or(0);
        let each = self.arrived.iter().enumerate();
        each.filter_map(|(i, at)| Some((i, (at.as_ref()? - first) as f64 * 1e-9))).collect()
    }
    /// Seconds from the first to each packet sent.
    pub fn sending_times(&self) -> Vec<(usize, f64)> {
        let first = self.sent.first().copied().unwrap_or(0);
        let each = self.sent.iter().enumerate();
        each.map(|(i, at)| (i, at.saturating_sub(first) as f64 * 1e-9)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_strangers_do_not_count_and_late_packets_do() {
        let arrival = |index, at_ns| TrainArrival { index, at_ns, ecn: 2 };
        let received =
            [arrival(0, 50), arrival(2, 60), arrival(1, 61), arrival(1, 70), arrival(9, 80)];
        let seen = TrainObservation::new(vec![0, 10, 20, 30], &received);
        assert_eq!(seen.arrived, [Some(50), Some(61), Some(60), None]);
        assert_eq!((seen.late, seen.count()), (1, 3));
        assert_eq!(seen.ecn, [2, 2, 2, 0]);
    }
}
