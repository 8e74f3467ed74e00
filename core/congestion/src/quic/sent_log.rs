//! Delivery counts at the time of sending, for delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation).
//! A packet is identified by its send time.

use crate::RateSample;
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// The most send times kept: with one per packet, ten seconds at 100 Mbit/s.
const MAX_MOMENTS: usize = 1 << 16;
/// Send times older than this are discarded.
const MAX_AGE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Moment {
    sent: Time,
    /// Packets delivered until then, and when the last of them was.
    delivered: u64,
    delivered_at: Time,
    /// Send time of the packet acknowledged at the beginning of the interval.
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
    /// Adds sent packets; `is_first` if no other packet is in flight.
    pub fn sent(&mut self, now: Time, is_first: bool, app_limited: bool) {
        if is_first {
            self.delivered_at = now;
            self.first_sent = now;
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

    /// `packets` packets were delivered, of which the newest was sent at `sent`: returns the delivery rate and the
    /// number delivered when that packet was sent.
    pub fn acked(&mut self, now: Time, sent: Time, packets: u64) -> Option<RateSample> {
        self.delivered = self.delivered.saturating_add(packets);
        self.delivered_at = now;
        let at = self.moments.partition_point(|m| m.sent <= sent).checked_sub(1)?;
        let moment = *self.moments.get(at)?;
        self.first_sent = sent;
        // ACKs may arrive in bursts and packets may leave in bursts, so the longer of the two
        // intervals counts.
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
