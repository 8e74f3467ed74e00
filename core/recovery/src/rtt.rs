//! RTT estimation and the retransmission timeout: RFC 6298, or ns-2's ticks.

use narrows_base::{Duration, Time};

/// Configuration of the retransmission timeout. A [packet sender](crate::packet_sender) uses only the initial value,
/// until a round-trip time is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RtoConfig {
    /// Timeout before the first sample.
    pub initial: Duration,
    /// Minimum of the timeout.
    pub min: Duration,
    /// Maximum of the timeout.
    pub max: Duration,
    /// Clock granularity G (RFC 6298 section 2).
    pub granularity: Duration,
    /// How the timeout is computed.
    pub method: RtoMethod,
}

/// Method of computing the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoMethod {
    /// RFC 6298; every sample has the same weight.
    Rfc6298,
    /// Round-trip times in whole ticks of the granularity, as in ns-2.
    Ns2Ticks,
    /// Linux: the smoothed RTT plus four deviations, at least the minimum. The deviation is the largest of a round trip
    /// and decays once per round trip, so that many samples in one do not shrink it (RFC 7323 section 4.2). A smaller
    /// RTT counts an eighth towards it.
    Linux,
}

impl RtoConfig {
    /// The values of RFC 6298.
    pub const RFC: RtoConfig = RtoConfig {
        initial: Duration::from_secs(1),
        min: Duration::from_secs(1),
        max: Duration::from_secs(60),
        granularity: Duration::from_millis(1),
        method: RtoMethod::Rfc6298,
    };
    /// The values of ns-2.35.
    pub const NS2: RtoConfig = RtoConfig {
        initial: Duration::from_secs(3),
        min: Duration::from_millis(200),
        max: Duration::from_secs(60),
        granularity: Duration::from_millis(10),
        method: RtoMethod::Ns2Ticks,
    };
    /// Linux 6.1 at 250 Hz.
    pub const LINUX: RtoConfig = RtoConfig {
        initial: Duration::from_secs(1),
        min: Duration::from_millis(200),
        max: Duration::from_secs(120),
        granularity: Duration::from_millis(4),
        method: RtoMethod::Linux,
    };
}

/// Estimates the RTT and the retransmission timeout.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt: f64,
    rttvar: f64,
    samples: u64,
    min: Duration,
    /// The retransmission timeout without back-off, in seconds, and the same within its bounds.
    rto: f64,
    bounded_rto: Duration,
    min_rto: f64,
    max_rto: f64,
    granularity: f64,
    /// ns-2: whole ticks; srtt in eighths and rttvar in quarters of a tick.
    ticks: Option<(i64, i64)>,
    /// Linux: the deviation, its largest value of this round trip, and the segment that ends it.
    round: Option<RttRound>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RttRound {
    deviation: f64,
    largest: f64,
    end: u64,
}

impl RttEstimator {
    /// Without a sample.
    pub fn new(config: &RtoConfig) -> RttEstimator {
        let mut estimator = RttEstimator {
            srtt: 0.0,
            rttvar: 0.0,
            samples: 0,
            min: Duration::MAX,
            rto: config.initial.as_secs_f64(),
            bounded_rto: Duration::ZERO,
            min_rto: config.min.as_secs_f64(),
            max_rto: config.max.as_secs_f64(),
            granularity: config.granularity.as_secs_f64(),
            ticks: (config.method == RtoMethod::Ns2Ticks).then_some((0, 0)),
            round: (config.method == RtoMethod::Linux).then(RttRound::default),
        };
        estimator.bounded_rto = estimator.backed_off(0);
        estimator
    }

    /// Adds an RTT to the controller's smoothed values: one per acknowledgement.
    #[inline]
    pub fn observe(&mut self, rtt: Duration) {
        if rtt < self.min {
            self.min = rtt;
        }
        if self.round.is_some() {
            return;
        }
        let r = rtt.as_secs_f64();
        // RTTVAR first, then SRTT: RFC 6298 section 2.
        if self.samples == 0 {
            self.srtt = r;
            self.rttvar = r / 2.0;
        } else {
            self.rttvar += ((self.srtt - r).abs() - self.rttvar) / 4.0;
            self.srtt += (r - self.srtt) / 8.0;
        }
        self.samples += 1;
    }

    /// Adds a sample for the timeout (RFC 6298); the caller applies Karn's rule.
    #[inline]
    pub fn sample(&mut self, rtt: Duration, sent: Time) {
        match &mut self.ticks {
            None if self.round.is_some() => {}
            None => self.rto = self.srtt + (4.0 * self.rttvar).max(self.granularity),
            Some((srtt, rttvar)) => {
                let tick = self.granularity;
                // A clock with ticks counts the ticks between sending and now.
                let phase = sent.as_secs_f64() % tick;
                let t = (((rtt.as_secs_f64() + phase) / tick) as i64).max(1);
                if *srtt == 0 {
                    *srtt = t << 3;
                    *rttvar = t << 1;
                } else {
                    let delta = t - (*srtt >> 3);
                    *srtt = (*srtt + delta).max(1);
                    *rttvar = (*rttvar + delta.abs() - (*rttvar >> 2)).max(1);
                }
                self.rto = (((*rttvar << 3) + *srtt) >> 3) as f64 * tick;
            }
        }
        self.bounded_rto = self.backed_off(0);
    }

    /// Adds a sample as Linux does; `una` is the oldest unacknowledged segment and `next` the next one to be sent.
    pub fn sample_in_round(&mut self, rtt: Duration, una: u64, next: u64) {
        let Some(round) = &mut self.round else { return };
        let r = rtt.as_secs_f64();
        if self.samples == 0 {
            self.srtt = r;
            round.deviation = r / 2.0;
            self.rttvar = round.deviation.max(self.min_rto / 4.0);
            round.largest = self.rttvar;
            round.end = next;
        } else {
            let error = r - self.srtt;
            self.srtt += error / 8.0;
            let step = error.abs() - round.deviation;
            let gain = if error < 0.0 && step > 0.0 { 32.0 } else { 4.0 };
            round.deviation += step / gain;
            if round.deviation > round.largest {
                round.largest = round.deviation;
                self.rttvar = self.rttvar.max(round.largest);
            }
            if una > round.end {
                if round.largest < self.rttvar {
                    self.rttvar -= (self.rttvar - round.largest) / 4.0;
                }
                round.largest = self.min_rto / 4.0;
                round.end = next;
            }
        }
        self.samples += 1;
        self.rto = self.srtt + 4.0 * self.rttvar;
        self.bounded_rto = self.backed_off(0);
    }

    /// Whether samples must be added by [`sample_in_round`](RttEstimator::sample_in_round).
    #[inline]
    pub fn counts_rounds(&self) -> bool {
        self.round.is_some()
    }

    /// The SYN was retransmitted: RFC 6298 section 5.7 starts at 3 s.
    pub fn opening_was_lost(&mut self) {
        self.raise_initial(Duration::from_secs(3));
    }
    /// Raises the timeout before the first sample to this one.
    pub fn raise_initial(&mut self, initial: Duration) {
        let initial = initial.as_secs_f64();
        self.rto = self.rto.max(initial);
        self.max_rto = self.max_rto.max(initial);
        self.bounded_rto = self.backed_off(0);
    }

    /// The timeout after `backoffs` doublings.
    #[inline]
    pub fn rto(&self, backoffs: u32) -> Duration {
        if backoffs == 0 { self.bounded_rto } else { self.backed_off(backoffs) }
    }

    #[inline]
    fn backed_off(&self, backoffs: u32) -> Duration {
        let doubled = self.rto.max(self.min_rto) * f64::from(1u32 << backoffs.min(16));
        Duration::from_secs_f64(doubled.min(self.max_rto))
    }
    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub fn srtt(&self) -> Duration {
        Duration::from_secs_f64(self.srtt)
    }
    /// RTT variation (RFC 6298 RTTVAR); zero before the first sample.
    #[inline]
    pub fn rttvar(&self) -> Duration {
        Duration::from_secs_f64(self.rttvar)
    }
    /// Smallest RTT so far; [`Duration::MAX`] before the first sample.
    #[inline]
    pub fn min(&self) -> Duration {
        self.min
    }
    /// Drops the smallest RTT, because the handshake's packets are smaller than data.
    pub fn forget_min(&mut self) {
        self.min = Duration::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298() {
        let config = RtoConfig { min: Duration::ZERO, ..RtoConfig::RFC };
        let mut e = RttEstimator::new(&config);
        assert_eq!(e.rto(0), Duration::from_secs(1));
        let r = Duration::from_millis(100);
        e.observe(r);
        e.sample(r, Time::ZERO);
        // First sample: R + 4 R/2.
        assert_eq!(e.rto(0), Duration::from_millis(300));
        e.observe(Duration::from_millis(200));
        e.sample(Duration::from_millis(200), Time::ZERO);
        // RTTVAR = 3/4 50 + 1/4 100 = 62.5 ms, SRTT = 112.5 ms.
        assert_eq!(e.rto(0), Duration::from_secs_f64(0.1125 + 0.25));
        assert_eq!(e.rto(2), Duration::from_secs_f64(4.0 * 0.3625));
        assert_eq!(e.rto(60), Duration::from_secs(60));
    }

    #[test]
    fn ns2_counts_ticks() {
        let low = RtoConfig { min: Duration::ZERO, ..RtoConfig::NS2 };
        for (config, expected) in [(RtoConfig::NS2, 200), (low, 120)] {
            let mut e = RttEstimator::new(&config);
            assert_eq!(e.rto(0), Duration::from_secs(3));
            let r = Duration::from_millis(47);
            e.observe(r);
            e.sample(r, Time::ZERO);
            // 4 ticks: srtt 4, rttvar 2, timeout 12 ticks; ns-2's floor is 200 ms.
            assert_eq!(e.rto(0), Duration::from_millis(expected));
        }
    }

    /// `srtt + max(200 ms, 4 rttvar)`; a hundred equal samples in one round trip do not shrink it.
    #[test]
    fn linux_adds_its_floor_to_the_rtt() {
        let mut e = RttEstimator::new(&RtoConfig::LINUX);
        for una in 1..100 {
            e.sample_in_round(Duration::from_millis(100), una, 1000);
        }
        assert_eq!(e.rto(0), Duration::from_millis(300));
        e.sample_in_round(Duration::from_millis(500), 100, 1000);
        let high = e.rto(0);
        for una in 101..900 {
            e.sample_in_round(Duration::from_millis(150), una, 1000);
        }
        assert!(e.rto(0) > Duration::from_millis(500), "{high} {}", e.rto(0));
    }
}
