//! Which packets are missing, and when the receiver asks for them again, while the deadline allows.

use crate::packet::{Asked, MAX_RUNS};
use narrows_base::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that can be missing at the same time; a longer gap is another stream.
pub const MAX_MISSING: u64 = 4096;
/// A packet may be this late by reordering alone before it is asked for, at first.
const FIRST_REORDERING: Duration = Duration::from_millis(1);
/// A request is said again after so long, since it may be lost, too.
const AGAIN: Duration = Duration::from_millis(6);
/// What a repeat takes beyond the estimate before it counts as lost.
const SLACK: Duration = Duration::from_millis(4);
/// Where nothing is known of the path.
const UNKNOWN_RTT: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct Gap {
    noticed: Time,
    /// The stamp of the packet that showed it: its own is not later.
    stamp: Time,
    asked: Option<Time>,
    attempt: u8,
    /// Whether the request of this attempt has been said again.
    is_said_again: bool,
    next: Time,
}

/// The missing packets.
#[derive(Debug)]
pub struct Missing {
    gaps: BTreeMap<u64, Gap>,
    reordering: Duration,
    /// From a request to the repeat: mean and deviation (RFC 6298).
    repeat: Option<(Duration, Duration)>,
    soonest: Time,
    /// The latest numbers that were given up.
    given_up: BTreeSet<u64>,
}

impl Default for Missing {
    fn default() -> Missing {
        Missing {
            gaps: BTreeMap::new(),
            reordering: FIRST_REORDERING,
            repeat: None,
            soonest: Time::NEVER,
            given_up: BTreeSet::new(),
        }
    }
}

/// How a packet had been missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Was {
    /// It was not.
    There,
    /// It was overtaken by others.
    Overtaken,
    /// It had been asked for.
    Asked,
    /// It had been given up.
    GivenUp,
}

impl Missing {
    /// Numbers are missing below a packet with this stamp.
    pub fn on_gap(&mut self, now: Time, numbers: std::ops::Range<u64>, stamp: Time) {
        let next = now + self.reordering;
        for number in numbers {
            let gap =
                Gap { noticed: now, stamp, asked: None, attempt: 0, is_said_again: true, next };
            self.gaps.insert(number, gap);
        }
        self.soonest = self.soonest.min(next);
    }

    /// A packet has come.
    pub fn on_arrival(&mut self, now: Time, number: u64) -> Was {
        let Some(gap) = self.gaps.remove(&number) else {
            return if self.given_up.remove(&number) { Was::GivenUp } else { Was::There };
        };
        let Some(asked) = gap.asked else {
            // So late by itself: the others wait a little longer.
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

    /// A packet was restored from others, which says nothing of how long packets and repeats take; whether it was missing.
    pub fn on_restored(&mut self, number: u64) -> bool {
        self.gaps.remove(&number).is_some()
    }

    /// Nothing below this number is waited for any more; returns how many were.
    pub fn give_up(&mut self, below: u64) -> u64 {
        let rest = self.gaps.split_off(&below);
        let gone = std::mem::replace(&mut self.gaps, rest);
        self.given_up.extend(gone.keys());
        while self.given_up.len() > MAX_MISSING as usize {
            self.given_up.pop_first();
        }
        gone.len() as u64
    }

    /// Nothing is waited for.
    pub fn clear(&mut self) {
        self.gaps.clear();
        self.soonest = Time::NEVER;
    }

    /// How long a repeat takes, where a round trip takes `rtt` (zero: not known), before it counts as lost.
    fn timeout(&self, rtt: Duration) -> Duration {
        let rtt = if rtt == Duration::ZERO { UNKNOWN_RTT } else { rtt };
        let estimate = match self.repeat {
            None => rtt.mul_f64(1.5),
            Some((mean, deviation)) => mean + deviation.saturating_mul(4).min(mean),
        };
        estimate.max(rtt.mul_f64(0.5)) + SLACK
    }

    /// When the next request is due.
    pub fn next(&self) -> Time {
        self.soonest
    }

    /// What is to be asked for now. `release` says when what has a stamp is played out: what could not come by then is
    /// not asked for.
    pub fn ask(&mut self, now: Time, rtt: Duration, release: impl Fn(Time) -> Time) -> Vec<Asked> {
        if self.soonest > now {
            return Vec::new();
        }
        let timeout = self.timeout(rtt);
        let again = AGAIN.min(timeout.mul_f64(0.25));
        let mut runs: Vec<Asked> = Vec::new();
        let mut last = None;
        self.soonest = Time::NEVER;
        for (number, gap) in &mut self.gaps {
            if gap.next <= now {
                // A repeat takes a round trip at least; half of one may have been a queue.
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
                        runs.push(Asked { first: *number as u32, more: 0, attempt });
                    }
                    _ => {
                        // The rest in the next request.
                        self.soonest = now;
                        break;
                    }
                }
                last = Some(*number);
                (gap.attempt, gap.is_said_again) = (attempt, !is_new);
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
    fn asked(first: u32, more: u8, attempt: u8) -> Asked {
        Asked { first, more, attempt }
    }

    #[test]
    fn a_gap_is_asked_for_twice_at_each_attempt_until_the_deadline() {
        let mut missing = Missing::default();
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
    fn what_was_only_overtaken_makes_the_others_wait_longer() {
        let mut missing = Missing::default();
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
        let mut missing = Missing::default();
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
        let mut missing = Missing::default();
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
