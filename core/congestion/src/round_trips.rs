//! Round trips, rounds and losses as the controllers of the RRTP thesis measure them: `limd` and `rrtp-lasthop`.
//!
//! If the receiver reports one-way delays, the wait on the return path is left out of round trips.

use crate::{Ack, positive};
use narrows_base::Time;

/// Seconds for which a smallest round trip counts at least, and round trips (BBR: 10 s).
const BASE_SECONDS: f64 = 10.0;
const BASE_ROUNDS: f64 = 40.0;
/// Seconds below which round trips measure the scheduling of hosts, not queues.
const HOST_SECONDS: f64 = 0.001;
/// Part of the base RTT that the largest queueing delay must exceed to be a queue.
const LEAST_BAND: f64 = 0.1;
/// Part of the largest queueing delay above which a loss counts as congestion (Spike, S3 section 3.3).
const SPIKE: f64 = 0.4;
/// Share of a round's packets that no radio link loses.
const BURST_LOSS: f64 = 0.1;

/// Packets of one round: the time in which the data in flight is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct PacketRound {
    began: Option<Time>,
    delivered: f64,
    lost: f64,
    /// Seconds; 0 while the round goes on.
    span: f64,
}

/// Estimates of a path.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    /// Smallest and largest RTT of this period and of the last, seconds.
    smallest: [f64; 2],
    largest: [f64; 2],
    period_began: f64,
    /// Whether the base RTT is a hint, not a measurement.
    hinted: bool,
    /// Smallest delay of the return path of this period and of the last, seconds.
    back: [f64; 2],
    /// Newest RTT, seconds.
    pub rtt: f64,
    /// The round that ended last, and the current one.
    ended: PacketRound,
    current: PacketRound,
    /// Rounds that have ended.
    pub rounds: u64,
    /// Share of packets that the link loses, given as a hint.
    pub link_loss: f64,
}

impl Default for RoundTrips {
    fn default() -> RoundTrips {
        RoundTrips {
            smallest: [f64::INFINITY; 2],
            largest: [0.0; 2],
            period_began: 0.0,
            hinted: false,
            back: [f64::INFINITY; 2],
            rtt: 0.0,
            ended: PacketRound::default(),
            current: PacketRound::default(),
            rounds: 0,
            link_loss: 0.0,
        }
    }
}

impl RoundTrips {
    /// Uses this base RTT (seconds) until one is measured: a hint lacks the transmission time.
    pub fn hint_base(&mut self, base: f64) {
        self.smallest = [base, f64::INFINITY];
        self.hinted = true;
    }
    /// Smallest RTT of the last 10 to 20 s, at least 1 ms. `None` before the first acknowledgement.
    pub fn base(&self) -> Option<f64> {
        let base = self.smallest[0].min(self.smallest[1]);
        base.is_finite().then_some(base.max(HOST_SECONDS))
    }
    /// Whether the newest round trip met a long queue.
    pub fn shows_queue(&self) -> bool {
        self.base().is_some_and(|base| {
            let band = self.largest[0].max(self.largest[1]) - base;
            band >= LEAST_BAND * base && self.rtt > base + SPIKE * band
        })
    }
    /// Whether the last round lost more than a radio link loses.
    pub fn is_flooded(&self) -> bool {
        let expected = BURST_LOSS + 2.0 * self.link_loss;
        self.ended.lost > 2.0 + expected * self.ended.delivered
    }
    /// Packets per second that arrived in the last round.
    pub fn delivered_rate(&self) -> f64 {
        if self.ended.span > 0.0 { self.ended.delivered / self.ended.span } else { 0.0 }
    }

    /// A packet of the current round was lost.
    pub fn on_loss(&mut self) {
        self.current.lost += 1.0;
    }

    /// Returns true if a round has ended.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        self.rtt = self.forward(positive(ack.rtt), ack.forward_delay.map(positive));
        let now = ack.now.as_secs_f64();
        if std::mem::take(&mut self.hinted) {
            self.smallest = [f64::INFINITY; 2];
            self.period_began = now;
        }
        let period = BASE_SECONDS.max(BASE_ROUNDS * self.rtt);
        if self.smallest[0].is_finite() && now - self.period_began > period {
            self.smallest = [f64::INFINITY, self.smallest[0]];
            self.largest = [0.0, self.largest[0]];
            self.back = [f64::INFINITY, self.back[0]];
            self.period_began = now;
        }
        self.smallest[0] = self.smallest[0].min(self.rtt);
        self.largest[0] = self.largest[0].max(self.rtt);
        let ended = ack.round_start && self.end_round(ack.now);
        self.current.delivered += ack.newly_delivered as f64;
        ended
    }

    /// Begins a round; false if it is the first.
    fn end_round(&mut self, now: Time) -> bool {
        let next = PacketRound { began: Some(now), ..PacketRound::default() };
        let ended = std::mem::replace(&mut self.current, next);
        let Some(began) = ended.began else { return false };
        self.ended = PacketRound { span: positive(now.since(began)), ..ended };
        self.rounds += 1;
        true
    }

    /// The round trip without the wait on the return path.
    fn forward(&mut self, rtt: f64, forward_delay: Option<f64>) -> f64 {
        let Some(forward) = forward_delay else { return rtt };
        let back = rtt - forward;
        self.back[0] = self.back[0].min(back);
        rtt - (back - self.back[0].min(self.back[1])).clamp(0.0, rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    fn acked(ms: u64, round_start: bool) -> Ack {
        let mut scenario = crate::scenario::IdealPath::new(crate::scenario::build("reno"));
        Ack { rtt: Duration::from_millis(ms), round_start, ..scenario.ack(1, false) }
    }

    #[test]
    fn only_the_upper_part_of_wide_jitter_is_queueing() {
        let mut path = RoundTrips::default();
        for (ms, queue) in [(50, false), (54, false), (100, true), (65, false), (75, true)] {
            path.on_ack(&acked(ms, false));
            assert_eq!(path.shows_queue(), queue, "{ms} ms");
        }
    }

    #[test]
    fn a_hint_counts_until_a_round_trip_is_measured() {
        let mut path = RoundTrips::default();
        path.hint_base(0.02);
        assert_eq!(path.base(), Some(0.02));
        path.on_ack(&acked(50, false));
        assert_eq!(path.base(), Some(0.05));
    }

    #[test]
    fn round_with_more_loss_than_radio_counts_as_burst() {
        let mut path = RoundTrips::default();
        let mut round = |lost: u32| {
            path.on_ack(&acked(50, true));
            (0..lost).for_each(|_| path.on_loss());
            path.on_ack(&acked(50, true));
            path.is_flooded()
        };
        assert!(!round(2));
        assert!(round(3));
    }
}
