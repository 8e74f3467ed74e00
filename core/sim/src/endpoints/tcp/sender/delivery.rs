//! Delivered segments and samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation).

use crate::endpoints::tcp::scoreboard::SentSegment;
use narrows_base::{Duration, Time};
use narrows_congestion::RateSample;

/// State of the delivery rate.
#[derive(Debug, Default)]
pub(super) struct DeliveryRate {
    /// Segments delivered so far, and the time of the last.
    delivered: u64,
    time: Time,
    /// Send time of the segment that was delivered last.
    first_sent: Time,
    /// Samples count as application-limited until this many segments are delivered.
    pub app_limited_until: u64,
    /// Duplicates already counted as delivered, without SACK.
    dup_credit: u64,
    /// Segments that the receiver reported as duplicates.
    duplicates: u64,
}

impl DeliveryRate {
    /// A flight begins now, and with it a sample.
    #[inline]
    pub fn begin_flight(&mut self, now: Time) {
        self.first_sent = now;
        self.time = now;
    }
    /// Records the present state in a segment that is sent.
    #[inline]
    pub fn stamp(&self, segment: &mut SentSegment) {
        segment.delivered = self.delivered;
        segment.delivered_time = self.time;
        segment.first_sent = self.first_sent;
        segment.app_limited = self.delivered < self.app_limited_until;
    }
    /// The application has no data, with this many segments outstanding.
    pub fn on_app_limited(&mut self, outstanding: u64) {
        self.app_limited_until = self.delivered + outstanding.max(1);
    }
    /// Segments delivered so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// A segment was delivered, after `others` that were sent before it.
    #[inline]
    pub fn deliver(
        &mut self,
        now: Time,
        others: u64,
        segment: &SentSegment,
        sample: &mut Option<SentSegment>,
    ) {
        self.delivered += others + 1;
        self.time = now;
        if sample.is_none_or(|s| segment.sent >= s.sent) {
            *sample = Some(*segment);
            self.first_sent = segment.sent;
        }
    }
    /// The receiver reports duplicates, which count as delivered. Returns false if the sender has retransmitted fewer.
    pub fn on_duplicates(&mut self, segments: u64, retransmissions: u64) -> bool {
        let sum = self.duplicates.saturating_add(segments);
        if sum > retransmissions {
            return false;
        }
        self.duplicates = sum;
        self.delivered += segments;
        true
    }
    /// Number of segments that an ACK delivers without SACK. A duplicate counts as one, and an advance is reduced by
    /// the duplicates counted before it. `is_all`: whether no segment remains.
    #[inline]
    pub fn count_without_sack(&mut self, newly_acked: u64, duplicate: bool, is_all: bool) -> u64 {
        if duplicate {
            self.dup_credit += 1;
            return 1;
        }
        let counted = self.dup_credit.min(newly_acked.saturating_sub(1));
        self.dup_credit -= counted;
        if is_all {
            self.dup_credit = 0;
        }
        newly_acked - counted
    }
    /// The sample of an ACK whose newest segment is `sample`.
    #[inline]
    pub fn sample(
        &self,
        now: Time,
        min_rtt: Duration,
        sample: Option<SentSegment>,
    ) -> Option<RateSample> {
        let s = sample?;
        let send = s.sent.since(s.first_sent);
        let ack = now.since(s.delivered_time);
        let interval = send.max(ack);
        // Shorter than the RTT: the sample is unreliable (ACK compression).
        if interval < min_rtt || interval == Duration::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - s.delivered,
            interval,
            prior_delivered: s.delivered,
            total_delivered: self.delivered,
            app_limited: s.app_limited,
        })
    }
}
