//! The path's RTT and the timeouts that follow from it: the time threshold for losses and the PTO without back-off.

use super::forward_delay::{ForwardDelay, ForwardTime};
use crate::rtt::{RtoConfig, RttEstimator};
use narrows_base::{Duration, Time};

/// Limit on the back-off of the PTO once the path has acknowledged a packet, so that the end of an outage is detected
/// soon.
pub(super) const MAX_BACKOFF_TIMEOUT: Duration = Duration::from_secs(2);

/// RFC 9002 section 6.1.2.
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
const GRANULARITY: Duration = Duration::from_millis(1);
/// Limit on the PTO without back-off, or this many of the smallest RTT. Longer RTTs are a stall rather than a path:
/// this is five times that of a geostationary satellite with a queue of a second.
const MAX_BASE_PTO: Duration = Duration::from_secs(10);
const MAX_PTO_ROUND_TRIPS: u64 = 2;
/// The first PTO by the handshake's limit on the RTT: reports are delayed, and the path jitters.
const MARGIN: f64 = 1.25;
/// Bounds of the delay up to which a queue is short, which is an eighth of the smallest RTT: RFC 9406 section 4.2 takes
/// a path for not yet full below it.
const SHORT_QUEUE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// RTTs, and the packet sizes that they belong to.
#[derive(Debug)]
pub(super) struct RoundTrip {
    estimator: RttEstimator,
    /// The last RTT, and when the first was measured.
    latest_rtt: Duration,
    first_rtt_sample: Time,
    /// Bytes of the largest packet so far, and of the smallest that the present report acknowledges.
    largest: u16,
    smallest: u16,
    /// Smallest RTT of a packet of about the largest size.
    min_full_rtt: Duration,
    /// Limit on the PTO with back-off.
    max_pto: Duration,
    forward: ForwardDelay,
    overtaken: OvertakenPackets,
}

/// Packets of the present report that arrived behind ones of an earlier report, as some of a path that reorders do. The
/// RTT of the newest packet alone is too short there: packets that overtake are newest most often.
#[derive(Debug)]
struct OvertakenPackets {
    count: u64,
    /// Sum of their times from departure to the report.
    took: Duration,
    /// When the present report and the one before it arrived: the packets did so in between.
    report: Time,
    previous: Time,
}

impl RoundTrip {
    /// Without a sample.
    pub fn new(rto: &RtoConfig) -> RoundTrip {
        RoundTrip {
            estimator: RttEstimator::new(&RtoConfig {
                initial: rto.initial.min(MAX_BACKOFF_TIMEOUT),
                ..*rto
            }),
            latest_rtt: Duration::ZERO,
            first_rtt_sample: Time::NEVER,
            largest: 0,
            smallest: u16::MAX,
            min_full_rtt: Duration::MAX,
            max_pto: rto.max,
            forward: ForwardDelay::default(),
            overtaken: OvertakenPackets {
                count: 0,
                took: Duration::ZERO,
                report: Time::ZERO,
                previous: Time::ZERO,
            },
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
    pub fn min_rtt(&self) -> Duration {
        self.estimator.min()
    }
    #[inline]
    pub fn latest_rtt(&self) -> Duration {
        self.latest_rtt
    }
    /// When the first sample came; [`Time::NEVER`] before.
    #[inline]
    pub fn first_rtt_sample(&self) -> Time {
        self.first_rtt_sample
    }

    /// Sets an RTT measured elsewhere, which is no sample of full packets.
    pub fn know(&mut self, now: Time, rtt: Duration) {
        self.estimator.observe(rtt);
        self.estimator.forget_min();
        self.latest_rtt = rtt;
        self.first_rtt_sample = self.first_rtt_sample.min(now);
    }
    /// Sets an upper limit on the RTT, before any sample.
    pub fn limit_rtt(&mut self, max_rtt: Duration) {
        let first = max_rtt.mul_f64(MARGIN);
        self.estimator.raise_initial(first);
        self.max_pto = self.max_pto.max(first);
    }
    #[inline]
    pub fn on_sent(&mut self, bytes: u16) {
        self.largest = self.largest.max(bytes);
    }
    /// Called before a report's acknowledgements.
    #[inline]
    pub fn begin_report(&mut self, now: Time) {
        self.smallest = u16::MAX;
        let overtaken = &mut self.overtaken;
        overtaken.count = 0;
        overtaken.took = Duration::ZERO;
        overtaken.previous = overtaken.report;
        overtaken.report = now;
    }
    /// A packet of this report arrived behind ones of an earlier report, at most `took` after it was sent.
    pub fn on_overtaken(&mut self, took: Duration) {
        self.overtaken.count += 1;
        self.overtaken.took += took;
    }
    /// Number and mean RTT of such packets. The receiver reported them half the time between reports after their
    /// arrival, on average.
    #[inline]
    pub fn overtaken(&self) -> Option<(u64, Duration)> {
        let OvertakenPackets { count, took, report, previous } = self.overtaken;
        if count == 0 {
            return None;
        }
        let mean = Duration::from_nanos(took.as_nanos() / count);
        let waited = Duration::from_nanos(report.since(previous).as_nanos() / 2);
        Some((count, (mean - mean.min(waited)).max(self.min_rtt().min(mean))))
    }
    /// Adds the RTT of overtaken packets to the estimate.
    pub fn sample_overtaken(&mut self, rtt: Duration) {
        self.estimator.observe(rtt);
    }
    /// The report acknowledges a packet of this size.
    #[inline]
    pub fn on_arrived(&mut self, bytes: u16) {
        self.smallest = self.smallest.min(bytes);
    }
    /// Adds a report's RTT and returns the RTT to use. Small packets are transmitted faster than full ones, which on a
    /// slow link looks like a queue that vanished. So they never set a minimum below that of full packets.
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
        self.latest_rtt = rtt;
        self.first_rtt_sample = self.first_rtt_sample.min(now);
        self.estimator.observe(rtt);
        rtt
    }

    /// The forward delay of a report's packet with this RTT.
    #[inline]
    pub fn forward_delay(&mut self, time: ForwardTime, rtt: Duration) -> Duration {
        self.forward.of(time, rtt)
    }

    #[inline]
    pub fn newest_forward_delay(&self) -> Option<Duration> {
        self.forward.newest()
    }

    /// The RTT that packets are expected to have now (RFC 9002 section 6.1.2).
    pub fn expected(&self) -> Duration {
        self.srtt().max(self.latest_rtt)
    }
    /// Limit on the PTO with back-off.
    pub fn max_pto(&self) -> Duration {
        self.max_pto
    }
    /// The time threshold: how late a packet may be once a later one has arrived (RFC 9002 section 6.1.2).
    pub fn loss_delay(&self) -> Duration {
        self.expected().mul_f64(TIME_THRESHOLD).max(GRANULARITY)
    }
    /// The PTO without back-off (RFC 9002 section 6.2.1); before the first RTT sample, the initial RTO. It is bounded,
    /// so that a path that held packets for half a minute (a peer's suspended process) does not make the sender wait
    /// for minutes.
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        if self.first_rtt_sample.is_never() {
            return self.estimator.rto(0);
        }
        let deviation = self.estimator.rttvar().saturating_mul(4).max(GRANULARITY);
        let longest = match self.min_rtt() {
            Duration::MAX => MAX_BASE_PTO,
            min => MAX_BASE_PTO.max(min.saturating_mul(MAX_PTO_ROUND_TRIPS)),
        };
        (self.srtt() + deviation + max_ack_delay).min(longest)
    }
    /// A packet with a smaller RTT met a shorter queue than one that overflows.
    pub fn short_queue(&self) -> Duration {
        let (low, high) = SHORT_QUEUE;
        match self.min_rtt() {
            Duration::MAX => Duration::ZERO,
            min => min + min.mul_f64(0.125).clamp(low, high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn overtaken_packets_have_their_own_rtt() {
        let mut path = RoundTrip::new(&RtoConfig::RFC);
        path.begin_report(Time::ZERO + ms(50));
        path.sample(Time::ZERO + ms(50), ms(10));
        assert_eq!(path.overtaken(), None);
        path.begin_report(Time::ZERO + ms(54));
        path.on_overtaken(ms(20));
        path.on_overtaken(ms(24));
        assert_eq!(path.overtaken(), Some((2, ms(20))), "reported 2 ms after they arrived");
        path.sample_overtaken(ms(20));
        assert!(path.srtt() > ms(10));
        path.begin_report(Time::ZERO + ms(58));
        assert_eq!(path.overtaken(), None);
    }

    #[test]
    fn overtaken_packets_have_at_least_the_smallest_rtt() {
        let mut path = RoundTrip::new(&RtoConfig::RFC);
        path.begin_report(Time::ZERO + ms(10));
        path.sample(Time::ZERO + ms(10), ms(10));
        path.begin_report(Time::ZERO + ms(90));
        path.on_overtaken(ms(30));
        assert_eq!(path.overtaken(), Some((1, ms(10))));
    }
}
