//! The round-trip time of the path, and the timeouts that follow from it: the time threshold for losses and
//! the probe timeout without back-off.

use super::MAX_BACKOFF_TIMEOUT;
use super::forward_delay::{ForwardDelay, ForwardTime};
use crate::rtt::{RtoConfig, RttEstimator};
use narrows_base::{Duration, Time};

/// RFC 9002 section 6.1.2.
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
const GRANULARITY: Duration = Duration::from_millis(1);
/// Round-trip times beyond it are a stall rather than a path: five times that of a path by a
/// geostationary satellite with a queue of a second.
const MAX_PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// A queue is short below an eighth of the smallest round-trip time, within these bounds: where RFC
/// 9406 section 4.2 takes a path for not yet full.
const SHORT_QUEUE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// Round-trip times, and the sizes of packets that they belong to.
#[derive(Debug)]
pub(super) struct RoundTrip {
    estimator: RttEstimator,
    /// The last round-trip time, and when the first was known.
    latest: Duration,
    first: Time,
    /// Bytes of the largest packet so far, and of the smallest that the report being read shows
    /// arrived.
    largest: u16,
    smallest: u16,
    /// Smallest round-trip time of a packet of about that size.
    min_full_rtt: Duration,
    /// The longest to which a timeout doubles.
    longest_timeout: Duration,
    forward: ForwardDelay,
}

impl RoundTrip {
    /// Before the first sample.
    pub fn new(rto: &RtoConfig) -> RoundTrip {
        RoundTrip {
            estimator: RttEstimator::new(&RtoConfig {
                initial: rto.initial.min(MAX_BACKOFF_TIMEOUT),
                ..*rto
            }),
            latest: Duration::ZERO,
            first: Time::NEVER,
            largest: 0,
            smallest: u16::MAX,
            min_full_rtt: Duration::MAX,
            longest_timeout: rto.max,
            forward: ForwardDelay::default(),
        }
    }
    #[inline]
    pub fn estimator(&self) -> &RttEstimator {
        &self.estimator
    }
    #[inline]
    pub fn srtt(&self) -> Duration {
        self.estimator.srtt()
    }
    #[inline]
    pub fn min(&self) -> Duration {
        self.estimator.min()
    }
    #[inline]
    pub fn latest(&self) -> Duration {
        self.latest
    }
    /// When the first sample came; [`Time::NEVER`] before.
    #[inline]
    pub fn first(&self) -> Time {
        self.first
    }

    /// A round-trip time from elsewhere: no sample of full packets.
    pub fn know(&mut self, now: Time, rtt: Duration) {
        self.estimator.observe(rtt);
        self.estimator.forget_min();
        self.latest = rtt;
        self.first = self.first.min(now);
    }
    /// A packet of so many bytes leaves.
    #[inline]
    pub fn on_sent(&mut self, bytes: u16) {
        self.largest = self.largest.max(bytes);
    }
    /// A report is read from now on.
    #[inline]
    pub fn begin_report(&mut self) {
        self.smallest = u16::MAX;
    }
    /// It shows that a packet of so many bytes arrived.
    #[inline]
    pub fn on_arrived(&mut self, bytes: u16) {
        self.smallest = self.smallest.min(bytes);
    }
    /// The report's sample, as it counts: small packets are transmitted faster than full ones, which
    /// on a slow link looks like a queue that vanished. So they never set a new minimum below full
    /// packets'.
    #[inline]
    pub fn sample(&mut self, now: Time, rtt: Duration) -> Duration {
        let rtt = if self.smallest >= self.largest / 4 * 3 {
            self.min_full_rtt = self.min_full_rtt.min(rtt);
            rtt
        } else if self.min_full_rtt == Duration::MAX {
            rtt
        } else {
            rtt.max(self.min_full_rtt)
        };
        self.latest = rtt;
        self.first = self.first.min(now);
        self.estimator.observe(rtt);
        rtt
    }

    /// The forward delay of a report's packet, whose round-trip time is `rtt`.
    #[inline]
    pub fn forward_delay(&mut self, time: ForwardTime, rtt: Duration) -> Duration {
        self.forward.of(time, rtt)
    }

    /// The round-trip time that packets may be expected to have now.
    pub fn expected(&self) -> Duration {
        self.srtt().max(self.latest)
    }
    /// The longest to which a timeout doubles.
    pub fn longest_timeout(&self) -> Duration {
        self.longest_timeout
    }
    /// How long an absent packet may be late once a later one has come.
    pub fn patience(&self) -> Duration {
        self.expected().mul_f64(TIME_THRESHOLD).max(GRANULARITY)
    }
    /// The probe timeout without back-off (6.2.1): before a round-trip time is known, the
    /// retransmission timer's first value. It is bounded: a path that kept packets for half a minute, since
    /// the peer's process stood still, makes no sender wait for minutes.
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        if self.first.is_never() {
            return self.estimator.rto(0);
        }
        let deviation = self.estimator.rttvar().saturating_mul(4).max(GRANULARITY);
        (self.srtt() + deviation + max_ack_delay).min(MAX_PROBE_TIMEOUT)
    }
    /// A packet whose round-trip time is below this saw less of a queue than one that overflows.
    pub fn short_queue(&self) -> Duration {
        let (low, high) = SHORT_QUEUE;
        match self.min() {
            Duration::MAX => Duration::ZERO,
            min => min + min.mul_f64(0.125).clamp(low, high),
        }
    }
}
