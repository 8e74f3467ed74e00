//! The missing packets, and the times at which the receiver requests them, as long as they can be in time.

use crate::packet::{MAX_RUNS, NackRange};
use narrows_base::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of packets missing at a time; a longer gap means another stream.
pub const MAX_MISSING: u64 = 4096;
/// Initial time that reordering alone may delay a packet; it is requested afterwards.
const FIRST_REORDERING: Duration = Duration::from_millis(1);
/// Pause before a request is repeated, since it may be lost, too.
const AGAIN: Duration = Duration::from_millis(6);
/// Time added to the estimate before a repeat counts as lost.
const SLACK: Duration = Duration::from_millis(4);
/// Round-trip time assumed before the first measurement.
const UNKNOWN_RTT: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct MissingPacket {
    noticed: Time,
    /// Stamp of the packet that revealed the gap; the missing packet's own stamp is not later.
    stamp: Time,
    asked: Option<Time>,
    attempt: u8,
    /// Whether this attempt's request has been repeated.
    is_said_again: bool,
    next: Time,
}

/// The set of missing packets.
#[derive(Debug)]
pub struct MissingPackets {
    gaps: BTreeMap<u64, MissingPacket>,
    reordering: Duration,
    /// Time from a request to the repeat's arrival: mean and deviation (RFC 6298).
    repeat: Option<(Duration, Duration)>,
    soonest: Time,
    /// The most recent numbers that were given up.
    given_up: BTreeSet<u64>,
}

impl Default for MissingPackets {
    fn default() -> MissingPackets {
        MissingPackets {
            gaps: BTreeMap::new(),
            reordering: FIRST_REORDERING,
            repeat: None,
            soonest: Time::NEVER,
            given_up: BTreeSet::new(),
        }
    }
}

/// The state of a packet before its arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Was {
    /// Not missing.
    There,
    /// Missing because of reordering.
    Overtaken,
    /// Missing and requested.
    Asked,
    /// Missing, and not waited for any more.
    GivenUp,
}

impl MissingPackets {
    /// Adds missing numbers below a packet with this stamp.
    pub fn on_gap(&mut self, now: Time, numbers: std::ops::Range<u64>, stamp: Time) {
        let next = now + self.reordering;
        for number in numbers {
            let gap = MissingPacket {
                noticed: now,
                stamp,
                asked: None,
                attempt: 0,
                is_said_again: true,
                next,
            };
            self.gaps.insert(number, gap);
        }
        self.soonest = self.soonest.min(next);
    }

    /// Removes an arriving packet from the set.
    pub fn on_arrival(&mut self, now: Time, number: u64) -> Was {
        let Some(gap) = self.gaps.remove(&number) else {
            return if self.given_up.remove(&number) { Was::GivenUp } else { Was::There };
        };
        let Some(asked) = gap.asked else {
            // It came without a request, by reordering: from now on, later requests wait for this long.
            let late = now.since(gap.noticed).mul_f64(1.25).min(Duration::from_millis(30));
            self.reordering = self.reordering.max(late);
            return Was::Overtaken;
        };
        if gap.attempt == 1 {
            let took = now.since(asked);
            self.repeat = Some(match self.repeat {
                None => (took, took.mul_f64(0.5)),
                Some((mean, deviation)) => {
                    let off = took.as_nanos().abs_diff(mean.as_nanos());
                    let off = Duration::from_nanos(off).mul_f64(0.25);
                    (mean.mul_f64(0.875) + took.mul_f64(0.125), deviation.mul_f64(0.75) + off)
                }
            });
        }
        Was::Asked
    }

    /// Removes a packet that was restored from repair packets; its time is no sample. Returns whether it was missing.
    pub fn on_restored(&mut self, number: u64) -> bool {
        self.gaps.remove(&number).is_some()
    }

    /// Gives up all missing packets below this number. Returns their count.
    pub fn give_up(&mut self, below: u64) -> u64 {
        let rest = self.gaps.split_off(&below);
        let gone = std::mem::replace(&mut self.gaps, rest);
        self.given_up.extend(gone.keys());
        while self.given_up.len() > MAX_MISSING as usize {
            self.given_up.pop_first();
        }
        gone.len() as u64
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.gaps.clear();
        self.soonest = Time::NEVER;
    }

    /// Time after which a repeat counts as lost; `rtt` is zero if it is not known.
    fn timeout(&self, rtt: Duration) -> Duration {
        let rtt = if rtt == Duration::ZERO { UNKNOWN_RTT } else { rtt };
        let estimate = match self.repeat {
            None => rtt.mul_f64(1.5),
            Some((mean, deviation)) => mean + deviation.saturating_mul(4).min(mean),
        };
        estimate.max(rtt.mul_f64(0.5)) + SLACK
    }

    /// Time of the next request.
    pub fn next(&self) -> Time {
        self.soonest
    }

    /// The numbers to request now. `release` maps a stamp to its play-out time; packets that cannot arrive by then are
    /// not requested.
    pub fn ask(
        &mut self,
        now: Time,
        rtt: Duration,
        release: impl Fn(Time) -> Time,
    ) -> Vec<NackRange> {
        if self.soonest > now {
            return Vec::new();
        }
        let timeout = self.timeout(rtt);
        let again = AGAIN.min(timeout.mul_f64(0.25));
        let mut runs: Vec<NackRange> = Vec::new();
        let mut last = None;
        self.soonest = Time::NEVER;
        for (number, gap) in &mut self.gaps {
            if gap.next <= now {
                // A repeat takes at least a round trip without queueing, which may be half of the present one.
                let is_useful = now + rtt.mul_f64(0.5) < release(gap.stamp);
                let is_new = gap.is_said_again;
                if !is_useful || gap.attempt >= u8::MAX - 1 {
                    gap.next = Time::NEVER;
                    continue;
                }
                let attempt = gap.attempt + u8::from(is_new);
                let follows = last.is_some_and(|last| last + 1 == *number);
                let is_full = runs.len() >= MAX_RUNS;
                match runs.last_mut() {
                    Some(run) if follows && run.attempt == attempt && run.more < u8::MAX => {
                        run.more += 1;
                    }
                    _ if !is_full => {
                        runs.push(NackRange { first: *number as u32, more: 0, attempt });
                    }
                    _ => {
                        // The rest is requested in the next message.
                        self.soonest = now;
                        break;
                    }
                }
                last = Some(*number);
                gap.attempt = attempt;
                gap.is_said_again = !is_new;
                if is_new {
                    gap.asked = Some(now);
                    gap.next = now + again;
                } else {
                    gap.next = gap.asked.unwrap_or(now) + timeout;
                }
            }
            self.soonest = self.soonest.min(gap.next);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn asked(first: u32, more: u8, attempt: u8) -> NackRange {
        NackRange { first, more, attempt }
    }

    #[test]
    fn gap_is_requested_twice_per_attempt_until_its_deadline() {
        let mut missing = MissingPackets::default();
        missing.on_gap(at(0), 3..6, at(0));
        missing.on_gap(at(0), 8..9, at(0));
        let mut all = Vec::new();
        for ms in 0..300 {
            for run in missing.ask(at(ms), RTT, |_| at(200)) {
                all.push((ms, run.first, run.more, run.attempt));
            }
        }
        let times: Vec<_> = all.iter().filter(|run| run.1 == 3).map(|run| (run.0, run.3)).collect();
        assert_eq!(times, [(1, 1), (7, 1), (80, 2), (86, 2), (159, 3), (165, 3)]);
        assert_eq!(all[..2], [(1, 3, 2, 1), (1, 8, 0, 1)]);
        assert_eq!(missing.give_up(8), 3);
        assert_eq!(missing.give_up(9), 1);
    }

    #[test]
    fn reordered_packet_lengthens_the_wait_for_requests() {
        let mut missing = MissingPackets::default();
        missing.on_gap(at(0), 1..2, at(0));
        assert_eq!(missing.on_arrival(at(8), 1), Was::Overtaken);
        missing.on_gap(at(10), 5..6, at(0));
        assert!(missing.ask(at(19), RTT, |_| at(500)).is_empty());
        assert_eq!(missing.ask(at(20), RTT, |_| at(500)), [asked(5, 0, 1)]);
        assert_eq!(missing.on_arrival(at(90), 5), Was::Asked);
        assert_eq!(missing.on_arrival(at(91), 5), Was::There);
    }

    #[test]
    fn repeats_that_take_longer_are_waited_for_longer() {
        let mut missing = MissingPackets::default();
        for n in 0..100 {
            missing.on_gap(at(1000 * n), n..n + 1, at(1000 * n));
            missing.ask(at(1000 * n + 5), RTT, |stamp| stamp + Duration::from_secs(1));
            assert_eq!(missing.on_arrival(at(1000 * n + 125), n), Was::Asked);
        }
        let timeout = missing.timeout(RTT);
        assert!((at(120)..at(140)).contains(&(Time::ZERO + timeout)), "{timeout:?}");
    }

    #[test]
    fn a_request_has_a_bounded_length_and_the_rest_follows() {
        let mut missing = MissingPackets::default();
        for n in 0..100 {
            missing.on_gap(at(0), 2 * n..2 * n + 1, at(0));
        }
        let mut lengths = Vec::new();
        for _ in 0..4 {
            lengths.push(missing.ask(at(2), RTT, |_| at(500)).len());
        }
        assert_eq!(lengths, [MAX_RUNS, MAX_RUNS, 100 - 2 * MAX_RUNS, 0]);
    }
}
