//! When the next packet may leave: pacer and window.

use super::limiter::Verdict;
use super::{Cargo, Carrier, MOST_PENDING};
use narrows_base::{Duration, Rate, Time};
use narrows_control::Allowance;

/// Packets so far apart leave one by one: full ones below 5 Mbit/s.
const APART: Duration = Duration::from_micros(2400);
/// So many arrivals make a first flight of any controller, with the packets that open a
/// connection.
const FIRST_FLIGHT: u64 = 8;

/// Whether a packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Now. Either [`Carrier::sent`] follows at the same moment, or
    /// [`Carrier::nothing_to_send`].
    Now,
    /// The pacer says: not before this time.
    Paced(Time),
    /// The window is full, or as much left as what arrived permits: not before something is heard.
    WindowFull,
}

impl<C: Cargo> Carrier<C> {
    /// Never faster than this, whatever the controller says.
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.limit = most;
    }
    /// What the controller allows, in real bytes; its own limit on the rate is not in it.
    pub fn allowance(&self) -> Allowance {
        let a = self.controller.allowance();
        let real = |r: Rate| Rate::from_bps_f64(r.as_bps() as f64 / self.scale);
        Allowance { rate: a.rate.map(real), ..a }
    }
    /// A window's rate: twice as many packets in a round trip while it doubles, a quarter more
    /// otherwise, so that it is not the pacer that limits.
    #[cold]
    fn window_rate(&self, window: f64) -> Option<Rate> {
        let (_, bits) = self.paced?;
        let srtt = self.rtt.srtt().as_secs_f64();
        let doubles = self.controller.ssthresh().is_some_and(|s| window < s);
        let gain = if doubles { 2.0 } else { 1.25 };
        let bps = gain * window * self.full_bits.max(bits) / srtt;
        (srtt > 0.0 && bps < 1e15).then(|| Rate::from_bps_f64(bps))
    }
    /// The controller's rate and window, with a rate for a window without one (RFC 9002 section 7.7),
    /// so that a report that answers many packets does not set as many free at once.
    #[inline]
    fn paced_allowance(&self) -> Allowance {
        let a = self.controller.allowance();
        // The first flight leaves at once: its spacing at the far end tells the path's rate.
        if a.rate.is_some() || self.arrived < FIRST_FLIGHT {
            return a;
        }
        Allowance { rate: self.window_rate(a.window), ..a }
    }
    /// The rate at which packets leave, if any is set.
    pub fn pacing_rate(&self) -> Option<Rate> {
        let real = |r: Rate| Rate::from_bps_f64(r.as_bps() as f64 / self.scale);
        match (self.paced_allowance().rate.map(real), self.limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// When the pacer lets the next packet go by the rates of now, not by those of when the last one left:
    /// a raised rate counts at once. And whether it is our own limit that it waits for.
    #[inline]
    fn paced_until(&self, rate: Option<Rate>) -> Option<(Time, bool)> {
        let (last, bits) = self.paced?;
        let after = |bits: f64, r: Rate| {
            let gap = Duration::from_secs_f64(bits / r.as_bps().max(1) as f64);
            // Time must move on at any rate.
            last + gap.max(Duration::from_nanos(1))
        };
        let due = rate.map(|r| after(bits, r));
        let limited = self.limit.map(|r| after(bits / self.scale, r));
        match (due, limited) {
            (Some(due), Some(limited)) if limited > due => Some((limited, true)),
            (None, Some(limited)) => Some((limited, true)),
            (due, _) => due.map(|d| (d, false)),
        }
    }
    /// When the pacer lets the next packet go, if there is one.
    #[inline]
    pub fn next_pace(&self) -> Option<Time> {
        self.paced_until(self.paced_allowance().rate).map(|p| p.0)
    }

    /// Whether the next packet may leave now.
    #[inline]
    pub fn permission(&mut self, now: Time) -> Permission {
        let allowance = self.paced_allowance();
        let (due, ours) = self.paced_until(allowance.rate).unwrap_or((now, false));
        if due > now {
            if ours {
                // The path would carry more: no sample of it.
                self.delivery.nothing_to_send(self.in_flight);
            }
            if !self.force {
                return Permission::Paced(due);
            }
        }
        // A float's cast saturates: an infinite window is u64::MAX, and what is remembered of packets on
        // their way limits.
        if self.in_flight >= (allowance.window as u64).min(MOST_PENDING as u64) && !self.force {
            (self.window_limited, self.stalled) = (true, true);
            return Permission::WindowFull;
        }
        if !self.force && self.in_flight > 0 {
            let verdict = self.limiter.verdict(now);
            if verdict != Verdict::Free {
                // What the path carries is not known: no sample of it.
                self.delivery.nothing_to_send(self.in_flight);
                self.stalled = true;
                return match verdict {
                    Verdict::Until(due) => Permission::Paced(due),
                    Verdict::Acknowledgement | Verdict::Free => Permission::WindowFull,
                };
            }
        }
        // A window that opens sets many packets free, and none of them was late: without this, what a
        // report frees would leave together, as far as the credit goes.
        self.due = if std::mem::take(&mut self.stalled) { now } else { due };
        Permission::Now
    }

    /// How far a late pacer may catch up. Where packets are far apart, by less than one of them: two
    /// together are what small buffers of slow links drop.
    #[inline]
    pub(super) fn credit_for(&self, bytes: u32) -> Duration {
        if self.credit <= APART {
            return self.credit;
        }
        let Some(rate) = self.pacing_rate() else { return self.credit };
        let real = f64::from(bytes) * 8.0 / self.scale;
        let interval = Duration::from_secs_f64(real / rate.as_bps().max(1) as f64);
        if interval < APART { self.credit } else { self.credit.min(interval.mul_f64(0.9)) }
    }

    /// Permission was given and there is nothing to send.
    #[inline]
    pub fn nothing_to_send(&mut self) {
        self.delivery.nothing_to_send(self.in_flight);
        self.force = false;
        self.window_limited = false;
    }
}
