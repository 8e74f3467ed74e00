//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation), counted in packets.
//!
//! TCP's sender has the same fields in its scoreboard, where a segment may be sent several times;
//! here every packet is sent once.

use narrows_base::{Duration, Time};
use narrows_congestion::RateSample;

/// What a packet remembers of the moment when it left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    app_limited: bool,
}

/// The connection's side.
#[derive(Debug)]
pub(super) struct Delivery {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    app_limited_until: u64,
    /// Of the packets that the report being read shows delivered, the one that left last.
    newest: Option<(Time, Stamp)>,
}

impl Delivery {
    pub fn new() -> Delivery {
        Delivery {
            delivered: 0,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited_until: 0,
            newest: None,
        }
    }

    /// A packet is sent; `first` if nothing else is in flight.
    #[inline]
    pub fn sent(&mut self, now: Time, first: bool) -> Stamp {
        if first {
            (self.first_sent, self.delivered_time) = (now, now);
        }
        self.stamp()
    }

    /// The present state, for a packet that does not count.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited: self.delivered < self.app_limited_until,
        }
    }

    /// A packet that left at `sent` has arrived, as a report of now says.
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

    /// When the newest packet was sent that the present report shows delivered.
    pub fn newest_sent(&self) -> Option<Time> {
        self.newest.map(|n| n.0)
    }

    /// The sample of the report; `None` if its interval is shorter than `min_rtt` and so
    /// unreliable.
    #[inline]
    pub fn sample(&mut self, now: Time, min_rtt: Duration) -> Option<RateSample> {
        let (sent, s) = self.newest.take()?;
        // A report may be of packets that were overtaken.
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

    /// The application has nothing to send while `in_flight` packets are in flight.
    #[inline]
    pub fn nothing_to_send(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight.max(1);
    }
}
