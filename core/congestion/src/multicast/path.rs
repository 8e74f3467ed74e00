//! The RTT and its deviation as a receiver without feedback estimates them, from one-way times alone.

use narrows_base::{Duration, Time};

/// Gains of the smoothed RTT and of the deviation (RFC 6298).
const GAIN: f64 = 0.125;
const DEVIATION_GAIN: f64 = 0.25;

#[derive(Clone, Debug)]
pub(super) struct OneWayPath {
    base_rtt_s: f64,
    /// Smallest difference of receiving and sending time so far, in seconds of two clocks.
    min: Option<f64>,
    mean: f64,
    deviation: f64,
}

impl OneWayPath {
    pub fn new(base_rtt: Duration) -> OneWayPath {
        OneWayPath { base_rtt_s: base_rtt.as_secs_f64(), min: None, mean: 0.0, deviation: 0.0 }
    }
    pub fn on_arrival(&mut self, now: Time, sent: Time) {
        let difference = now.as_secs_f64() - sent.as_secs_f64();
        let min = self.min.map_or(difference, |l| l.min(difference));
        if self.min.is_none() {
            self.mean = difference;
        }
        self.min = Some(min);
        // In the order of RFC 6298: the deviation from the mean before this sample.
        self.deviation += DEVIATION_GAIN * ((difference - self.mean).abs() - self.deviation);
        self.mean += GAIN * (difference - self.mean);
    }
    /// Smoothed RTT in seconds.
    pub fn srtt(&self) -> f64 {
        self.base_rtt_s + (self.mean - self.min.unwrap_or(self.mean)).max(0.0)
    }
    /// DEV in seconds: √2 times the deviation of one way, as if the other varied as much.
    pub fn deviation(&self) -> f64 {
        std::f64::consts::SQRT_2 * self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_need_not_agree() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        for offset in [0, 50_000] {
            let mut p = OneWayPath::new(Duration::from_millis(100));
            (0..100).for_each(|n| p.on_arrival(at(offset + 20 + n), at(n)));
            assert!((p.srtt() - 0.1).abs() < 1e-9 && p.deviation() < 1e-6);
            (0..200).for_each(|n| p.on_arrival(at(offset + 60 + n + 20 * (n % 2)), at(n)));
            assert!((p.srtt() - 0.15).abs() < 0.005, "{}", p.srtt());
            assert!((p.deviation() - 0.01 * std::f64::consts::SQRT_2).abs() < 0.003);
        }
    }
}
