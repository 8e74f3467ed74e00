//! The ST-PD thesis's analytic model of the protocol (section 4.3): the control loop's reaction to a lost packet.
//!
//! Time is counted in packets of the bottleneck. One connection; `a` packets arrive per packet time, one departs, `b`
//! wait, the set point `r` is one packet, and measurements of the queue are `m` packet times old:
//!
//! ```text
//!  a(n) = a(n-1) + kp e(n-m) + kd (e(n-m) - e(n-m-1))      equation 4.1
//!  e(n) = r(n) - b(n)                                      4.2
//!  b(n) = b(n-1) + a(n) - d(n)                             4.6, without the floor at zero of 4.5
//!  r(n) = u(n) + sum of delta(n-i), i from p to p+m        4.15: a packet is lost at time p
//!  Q = 1/K sum of min(a(i), 1), i from 0 to K-1            4.19: throughput if one of K packets is lost
//! ```
//!
//! Without `b` and `e` this is equation 4.17. Its poles are the roots of
//! `z^(m+1) - 2 z^m + z^(m-1) + (kp + kd) z - kd`.
//!
//! It holds if all poles lie within the unit circle, and as long as the loop has settled from one loss before the next
//! ([`Loop::largest_loss_rate`]). It has no timeouts, so the thesis's simulations fall below it beyond 1% loss.
//!
//! A real sender's loop differs: acknowledgements clock packets out, so that the arrival rate follows the
//! window instead of summing up its changes. Then the queue integrates the control once, not twice
//! ([`Loop::clocked_by_acks`]): `z^(m+1) - z^m + (kp + kd) z - kd`.

use crate::polynomial::Polynomial;

/// A proportional and derivative control loop with a delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loop {
    /// Round-trip time in packet times, `m`; at least 1.
    pub delay: usize,
    /// Proportional gain.
    pub kp: f64,
    /// Derivative gain.
    pub kd: f64,
    /// Whether ACKs clock arrivals out, so that they follow the window; the thesis's model sums them up instead.
    pub clocked_by_acks: bool,
}

/// State of the loop before time 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopStart {
    /// No arrivals and an empty queue, as in the thesis's z-transforms.
    Rest,
    /// One packet arrives per packet time and one waits.
    Equilibrium,
}

/// A loop counts as settled when arrivals stay within this share of the link's rate.
const SETTLED: f64 = 0.05;
/// Loops that have not settled by then are given up.
const MAX_SETTLING: usize = 100_000;

impl Loop {
    /// The model of the thesis.
    pub fn of_s0(delay: usize, kp: f64, kd: f64) -> Loop {
        Loop { delay: delay.max(1), kp, kd, clocked_by_acks: false }
    }

    /// Arrivals per packet time, a(0) to a(steps - 1), of the thesis's model; a packet is lost at time `loss`.
    pub fn arrivals(&self, start: LoopStart, loss: Option<usize>, steps: usize) -> Vec<f64> {
        let (before, reference) = match start {
            LoopStart::Rest => (0.0, 0.0),
            LoopStart::Equilibrium => (1.0, 1.0),
        };
        let mut arrivals: Vec<f64> = Vec::with_capacity(steps);
        let mut errors: Vec<f64> = Vec::with_capacity(steps);
        let mut queue = reference;
        for n in 0..steps {
            // Before time 0 the error is 0 either way.
            let error = |ago: usize| n.checked_sub(ago).map_or(0.0, |at| errors[at]);
            let now = error(self.delay);
            let previous = error(self.delay + 1);
            let last = arrivals.last().copied().unwrap_or(before);
            let a = last + self.kp * now + self.kd * (now - previous);
            queue += a - 1.0;
            let lost = loss.is_some_and(|p| (p..=p + self.delay).contains(&n));
            errors.push(1.0 + f64::from(u8::from(lost)) - queue);
            arrivals.push(a);
        }
        arrivals
    }

    /// The share of the link that is used if one of `k` packets is lost (equation 4.19), as the mean over its places:
    /// the equation does not give the place.
    pub fn throughput(&self, start: LoopStart, k: usize) -> f64 {
        let without = self.arrivals(start, None, k);
        let with = self.arrivals(LoopStart::Equilibrium, Some(0), k);
        // The loop is linear: a loss at time p adds its response from there on.
        let used = |place: usize| {
            let before = without[..place].iter().map(|a| a.min(1.0));
            let after = without[place..].iter().zip(&with).map(|(a, w)| (a + w - 1.0).min(1.0));
            before.chain(after).sum::<f64>()
        };
        (0..k).map(used).sum::<f64>() / (k * k).max(1) as f64
    }

    /// The characteristic polynomial.
    pub fn characteristic(&self) -> Polynomial {
        let mut c = vec![0.0; self.delay + 2];
        c[0] -= self.kd;
        c[1] += self.kp + self.kd;
        if self.clocked_by_acks {
            c[self.delay] -= 1.0;
        } else {
            c[self.delay - 1] += 1.0;
            c[self.delay] -= 2.0;
        }
        c[self.delay + 1] += 1.0;
        Polynomial::new(c)
    }

    /// Whether all poles lie within the unit circle.
    pub fn is_stable(&self) -> bool {
        self.characteristic().roots_within(1.0)
    }

    /// Packet times after a loss until arrivals stay within a twentieth of the link's rate; `None` for a loop
    /// that is not stable.
    pub fn settling_time(&self) -> Option<usize> {
        if !self.is_stable() {
            return None;
        }
        let mut steps = 1_000;
        while steps <= MAX_SETTLING {
            let arrivals = self.arrivals(LoopStart::Equilibrium, Some(0), steps);
            let away = arrivals.iter().rposition(|a| (a - 1.0).abs() > SETTLED);
            let settled = away.map_or(0, |at| at + 1);
            if settled < steps / 2 {
                return Some(settled);
            }
            steps *= 10;
        }
        None
    }

    /// Highest loss rate at which the model holds: one loss per settling time.
    pub fn largest_loss_rate(&self) -> Option<f64> {
        self.settling_time().map(|steps| 1.0 / steps.max(1) as f64)
    }

    /// The largest stable proportional gain with the other parameters unchanged; 0 if the loop is never stable.
    pub fn largest_stable_kp(&self) -> f64 {
        const STEPS: usize = 120;
        const MOST: f64 = 4.0;
        let stable = |kp: f64| Loop { kp, ..*self }.is_stable();
        // The stable gains are an interval; its upper end, between the last stable and the next step. Each step is a
        // tenth less than the next, the first 1e-5.
        let mut steps = vec![MOST];
        while steps.len() <= STEPS {
            steps.push(steps[steps.len() - 1] * 0.9);
        }
        steps.reverse();
        let of = |step: usize| steps[step];
        let Some(last) = (0..STEPS).rev().find(|step| stable(of(*step))) else { return 0.0 };
        let mut low = of(last);
        let mut high = of(last + 1);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if stable(middle) { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
#[path = "stpd_model_tests.rs"]
mod tests;
