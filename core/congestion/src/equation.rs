//! The TCP throughput equation that equation-based controllers share, and its inverse.
//!
//! Padhye, Firoiu, Towsley and Kurose 1998, simplified as in RFC 5348 section 3.1, in packets per
//! second: `1 / (R sqrt(2bp/3) + t_RTO 3 sqrt(3bp/8) p (1 + 32 p^2))`. The original paper and ns-2
//! let the factor `3 sqrt(3bp/8)` be at most 1; the RFC does not.

/// The equation's constants for one connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Equation {
    /// Packets that TCP acknowledges with one ACK.
    pub b: f64,
    /// Whether `3 sqrt(3bp/8)` is at most 1 (ns-2).
    pub capped: bool,
}

/// Halvings at most when the equation is inverted: 2^-60 is a rarer loss than any float needs.
const HALVINGS: u32 = 60;

impl Equation {
    /// Packets per second at a loss event rate of `p`, an RTT of `rtt` s and a retransmission
    /// timeout of `rto` s; infinite without loss or without delay.
    pub fn packets_per_second(&self, p: f64, rtt: f64, rto: f64) -> f64 {
        let p = p.clamp(0.0, 1.0);
        let mut timeouts = 3.0 * (3.0 * self.b * p / 8.0).sqrt();
        if self.capped {
            timeouts = timeouts.min(1.0);
        }
        let seconds =
            rtt * (2.0 * self.b * p / 3.0).sqrt() + rto * timeouts * p * (1.0 + 32.0 * p * p);
        1.0 / seconds
    }

    /// A loss event rate at which the equation gives `target` packets per second within 5 % (RFC 5348 section 6.3.1):
    /// the first bisection of (0, 1) that does. For a target below the value at p = 1, the result is practically 1.
    pub fn loss_event_rate(&self, target: f64, rtt: f64, rto: f64) -> f64 {
        let mut p = 0.5;
        let mut step = 0.25;
        for _ in 0..HALVINGS {
            let rate = self.packets_per_second(p, rtt, rto);
            if rate > 0.95 * target && rate < 1.05 * target {
                break;
            }
            p += if rate > target { step } else { -step };
            step /= 2.0;
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: Equation = Equation { b: 1.0, capped: false };
    const NS2: Equation = Equation { b: 1.0, capped: true };

    /// By hand for p = 1%, R = 100 ms, t_RTO = 400 ms: 0.1 * 0.081650 + 0.4 * 0.183712 *
    /// 0.01 * 1.0032 = 0.0081650 + 0.00073720 s, so 112.33 packets per second.
    #[test]
    fn equation_matches_values_computed_by_hand() {
        let rate = RFC.packets_per_second(0.01, 0.1, 0.4);
        assert!((rate - 112.33).abs() < 0.01, "{rate}");
        assert_eq!(rate.to_bits(), NS2.packets_per_second(0.01, 0.1, 0.4).to_bits());
        // p = 1: sqrt(2/3) R + 3 sqrt(3/8) 33 t_RTO, or 33 t_RTO with the cap.
        let rate = RFC.packets_per_second(1.0, 0.1, 0.4);
        assert!((1.0 / rate - (0.081_65 + 0.4 * 33.0 * 1.837_12)).abs() < 1e-3, "{rate}");
        let rate = NS2.packets_per_second(1.0, 0.1, 0.4);
        assert!((1.0 / rate - (0.081_65 + 0.4 * 33.0)).abs() < 1e-4, "{rate}");
        assert_eq!(RFC.packets_per_second(0.0, 0.1, 0.4), f64::INFINITY);
    }

    #[test]
    fn more_loss_is_never_more_rate() {
        for e in [RFC, NS2] {
            let mut before = f64::INFINITY;
            for i in 1..=1000 {
                let rate = e.packets_per_second(f64::from(i) / 1000.0, 0.05, 0.2);
                assert!(rate < before);
                before = rate;
            }
        }
    }

    #[test]
    fn the_inverse_is_within_five_percent() {
        for e in [RFC, NS2] {
            for target in [0.5, 1.0, 10.0, 1e3, 1e5, 1e7] {
                let p = e.loss_event_rate(target, 0.1, 0.4);
                let rate = e.packets_per_second(p, 0.1, 0.4);
                assert!((rate / target - 1.0).abs() < 0.05, "{target}: p {p} gives {rate}");
            }
            assert!(e.loss_event_rate(1e-3, 0.1, 0.4) > 0.999);
            let p = e.loss_event_rate(f64::INFINITY, 0.1, 0.4);
            assert!(p > 0.0 && p < 1e-15, "{p}");
        }
    }
}
