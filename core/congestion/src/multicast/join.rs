//! When a receiver joins and leaves layers.
//!
//! C(n) is the rate that the lowest n layers need. A receiver of n layers leaves the highest when TEAR's rate is below
//! C(n), and joins the next when it is at least C(n + 1). A join that is soon followed by a leave has failed, and the
//! next attempt waits twice as long, from 2 s to a minute (*join experiments* of S. McCanne, V. Jacobson and M.
//! Vetterli, *Receiver-driven layered multicast*, SIGCOMM 1996, described in section 2.3 of Jayaram 2001). After a
//! change the receiver waits for its effect before the next. The base layer is never left.

use crate::layers::MAX_LAYERS;
use narrows_base::{Duration, Time};

const SHORTEST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A join that is followed by a leave within this time has failed.
const EXPERIMENT: Duration = Duration::from_secs(10);
/// Shortest time before the next change.
const SETTLE: Duration = Duration::from_millis(500);

/// A change of a receiver's membership.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Membership {
    /// Joined the group of the next layer.
    Joined,
    /// Left the group of the highest layer.
    Left,
}

/// The layers that one receiver has joined.
#[derive(Clone, Debug)]
pub struct JoinRules {
    /// C(n) in bit/s for n = 0 …
    needs: Vec<f64>,
    level: usize,
    /// For each layer: the waiting time after its next failure, and when the next attempt is permitted.
    wait: [Duration; MAX_LAYERS],
    retry: [Time; MAX_LAYERS],
    joined: Time,
    settled: Time,
}

impl JoinRules {
    /// A receiver of the base layer; `rates` are the layers' in bit/s.
    pub fn new(rates: &[f64]) -> JoinRules {
        let mut needs = vec![0.0];
        for rate in rates.iter().take(MAX_LAYERS) {
            needs.push(needs[needs.len() - 1] + rate);
        }
        JoinRules {
            needs,
            level: 1,
            wait: [SHORTEST_WAIT; MAX_LAYERS],
            retry: [Time::ZERO; MAX_LAYERS],
            joined: Time::ZERO,
            settled: Time::ZERO,
        }
    }
    /// Layers joined, at least 1.
    pub fn level(&self) -> usize {
        self.level
    }
    /// The rate that the joined layers and the next one need, in bit/s; of the joined ones if there is no next.
    pub fn next_need(&self) -> f64 {
        self.needs[(self.level + 1).min(self.needs.len() - 1)]
    }

    /// TEAR's rate is `rate` bit/s at `now`; `rtt` is the time until a change takes effect.
    pub fn judge(&mut self, now: Time, rate: f64, rtt: Duration) -> Option<Membership> {
        if now < self.settled {
            return None;
        }
        if self.level > 1 && rate < self.needs[self.level] {
            self.level -= 1;
            let (wait, retry) = (&mut self.wait[self.level], &mut self.retry[self.level]);
            if now.since(self.joined) <= EXPERIMENT {
                *retry = now + *wait;
                *wait = (wait.saturating_mul(2)).min(LONGEST_WAIT);
            } else {
                *wait = SHORTEST_WAIT;
                *retry = now + *wait;
            }
            self.settled = now + SETTLE.max(rtt.saturating_mul(2));
            return Some(Membership::Left);
        }
        let next = self.level + 1;
        if next < self.needs.len() && rate >= self.needs[next] && now >= self.retry[self.level] {
            self.level = next;
            self.joined = now;
            self.settled = now + SETTLE.max(rtt.saturating_mul(2));
            return Some(Membership::Joined);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    fn at(s: f64) -> Time {
        Time::from_secs_f64(s)
    }

    #[test]
    fn layers_are_joined_singly_and_left_by_rate() {
        let mut j = JoinRules::new(&[100e3, 200e3, 400e3]);
        assert_eq!((j.level(), j.next_need()), (1, 300e3));
        assert_eq!(j.judge(at(1.0), 299e3, RTT), None);
        assert_eq!(j.judge(at(1.0), 900e3, RTT), Some(Membership::Joined));
        assert_eq!(j.judge(at(1.4), 900e3, RTT), None, "it has not settled");
        assert_eq!(j.judge(at(1.6), 900e3, RTT), Some(Membership::Joined));
        assert_eq!((j.level(), j.next_need()), (3, 700e3));
        assert_eq!(j.judge(at(3.0), 1e9, RTT), None, "there are three");
        assert_eq!(j.judge(at(30.0), 200e3, RTT), Some(Membership::Left));
        assert_eq!(j.judge(at(31.0), 200e3, RTT), Some(Membership::Left));
        assert_eq!(j.judge(at(32.0), 0.0, RTT), None, "the base layer stays");
    }

    #[test]
    fn failed_experiments_become_rare() {
        let mut j = JoinRules::new(&[100e3, 200e3]);
        let mut joins = Vec::new();
        for tenth in 0..6000 {
            let now = at(f64::from(tenth) / 10.0);
            // The path carries one layer: a second later the rate shows it.
            let carried =
                j.level() == 1 || joins.last().is_some_and(|t| now < *t + Duration::from_secs(1));
            if j.judge(now, if carried { 400e3 } else { 150e3 }, RTT) == Some(Membership::Joined) {
                joins.push(now);
            }
        }
        assert!((10..17).contains(&joins.len()), "{joins:?}");
        let last = joins[joins.len() - 1].since(joins[joins.len() - 2]);
        assert!(last >= LONGEST_WAIT, "{last}");
    }
}
