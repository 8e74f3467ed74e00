//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation), counted in packets.
//!
//! TCP's sender has the same fields in its scoreboard, where a segment may be sent several times;
//! here every packet is sent once.

use narrows_base::{Duration, Time};
use narrows_congestion::RateSample;

/// State of the rate sampler when a packet was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    app_limited: bool,
}

/// State of the rate sampler.
#[derive(Debug)]
pub(super) struct RateSampler {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    app_limited_until: u64,
    /// Of the packets that the present report acknowledges, the one sent last.
    newest: Option<(Time, Stamp)>,
}

impl RateSampler {
    pub fn new() -> RateSampler {
        RateSampler {
            delivered: 0,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited_until: 0,
            newest: None,
        }
    }

    /// A packet is sent; `first` if no other is in flight.
    #[inline]
    pub fn sent(&mut self, now: Time, first: bool) -> Stamp {
        if first {
            self.first_sent = now;
            self.delivered_time = now;
        }
        self.stamp()
    }

    /// The present state, for a packet that is not in flight.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited: self.delivered < self.app_limited_until,
        }
    }

    /// A packet sent at `sent` is acknowledged now.
    #[inline]
    pub fn arrived(&mut self, now: Time, sent: Time, stamp: &Stamp) {
        self.delivered += 1;
        self.delivered_time = now;
        if self.newest.is_none_or(|n| sent >= n.0) {
            self.newest = Some((sent, *stamp));
        }
    }

    /// A packet declared lost has arrived: it counts as delivered but gives no sample.
    pub fn arrived_late(&mut self, now: Time) {
        self.delivered += 1;
        self.delivered_time = now;
    }

    /// Send time of the newest packet that the present report acknowledges.
    pub fn newest_sent(&self) -> Option<Time> {
        self.newest.map(|n| n.0)
    }

    /// The report's sample; `None` if its interval is shorter than `min_rtt` and so unreliable.
    #[inline]
    pub fn sample(&mut self, now: Time, min_rtt: Duration) -> Option<RateSample> {
        let (sent, s) = self.newest.take()?;
        // The acknowledged packets may have been overtaken.
        self.first_sent = self.first_sent.max(sent);
        let interval = sent.since(s.first_sent).max(now.since(s.delivered_time));
        (interval >= min_rtt && interval > Duration::ZERO).then(|| RateSample {
            delivered: self.delivered - s.delivered,
            interval,
            prior_delivered: s.delivered,
            total_delivered: self.delivered,
            app_limited: s.app_limited,
        })
    }

    /// The application has no data to send while `in_flight` packets are in flight.
    #[inline]
    pub fn nothing_to_send(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight.max(1);
    }
}
