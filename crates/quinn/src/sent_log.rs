//! What was delivered when a packet left, for delivery-rate samples
//! (draft-cheng-iccrg-delivery-rate-estimation). quinn names a packet by the moment at which it was sent.

use narrows_base::{Duration, Time};
use narrows_congestion::RateSample;
use std::collections::VecDeque;

/// Moments kept at most: at one per packet, ten seconds of 100 Mbit/s.
const MAX_MOMENTS: usize = 1 << 16;
/// How long a packet may be on its way.
const MAX_AGE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Moment {
    sent: Time,
    /// Packets delivered by then, and when the last was.
    delivered: u64,
    delivered_at: Time,
    /// When the packet left whose delivery began the interval.
    first_sent: Time,
    app_limited: bool,
}

#[derive(Clone, Debug, Default)]
pub struct SentLog {
    moments: VecDeque<Moment>,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
}

impl SentLog {
    /// Packets leave now; `is_first` if nothing else is in flight.
    pub fn sent(&mut self, now: Time, is_first: bool, app_limited: bool) {
        if is_first {
            (self.delivered_at, self.first_sent) = (now, now);
        }
        let old = |m: &Moment| now.since(m.sent) > MAX_AGE;
        while self.moments.len() >= MAX_MOMENTS || self.moments.front().is_some_and(old) {
            self.moments.pop_front();
        }
        if self.moments.back().is_some_and(|m| m.sent == now) {
            return;
        }
        self.moments.push_back(Moment {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited,
        });
    }

    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// So many packets of which the newest left at `sent` are delivered: the rate, and how much had been
    /// delivered when it left.
    pub fn acked(&mut self, now: Time, sent: Time, packets: u64) -> Option<RateSample> {
        self.delivered = self.delivered.saturating_add(packets);
        self.delivered_at = now;
        let at = self.moments.partition_point(|m| m.sent <= sent).checked_sub(1)?;
        let moment = *self.moments.get(at)?;
        self.first_sent = sent;
        // ACKs may come together, packets may leave together: the longer of the two intervals.
        let sending = sent.since(moment.first_sent).as_nanos();
        let acking = now.since(moment.delivered_at).as_nanos();
        let interval = Duration::from_nanos(sending.max(acking));
        (interval > Duration::ZERO).then_some(RateSample {
            delivered: self.delivered - moment.delivered,
            interval,
            prior_delivered: moment.delivered,
            total_delivered: self.delivered,
            app_limited: moment.app_limited,
        })
    }
}
