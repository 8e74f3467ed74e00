//! After an emulated halving: less than the mean, until the queue that caused it has drained.
//!
//! Jayaram 2001 assumes that the loss rate does not depend on the sending rate (section 3.3). With a full queue it
//! does. The emulated TCP halves its window and lets the queue drain, while the mean over epochs goes on filling it,
//! loses more, and is halved again for the same queue. So the rate is at most 0.6 of the mean for up to two round trips
//! after a halving, or until half of the queueing delay is gone. Losses without a queue have no such effect.
//!
//! Alone on 1.5 Mbit/s, 60 ms with one BDP of buffer it thus fills 0.98 of the path (0.89 without), and the variation
//! of the rate from second to second does not grow. 0.7 of the lost window for three round trips gives a little more
//! beside web traffic (0.73 of TCP's rate, not 0.68), but then the rate varies a quarter more.

use super::sender_state::SenderState;
use narrows_base::Time;

/// Highest rate as a share of the mean.
const SHARE: f64 = 0.6;
/// Share of the queueing delay at which the queue counts as drained.
const LEFT: f64 = 0.5;
/// Longest duration in round trips: other flows may keep the queue full.
const MAX_ROUND_TRIPS: f64 = 2.0;

/// Limits the rate after a halving.
#[derive(Clone, Debug, Default)]
pub(super) struct Yielding {
    /// Smallest RTT in seconds; 0 before the first.
    min: f64,
    queue: Option<StandingQueue>,
}

#[derive(Clone, Copy, Debug)]
struct StandingQueue {
    /// Highest rate in packets per second.
    rate: f64,
    /// The limit ends at an RTT of at most this many seconds, or at `until`.
    gone: f64,
    until: Time,
}

impl Yielding {
    /// Takes the sender's state from a packet.
    pub fn observe(&mut self, now: Time, sender: &SenderState) {
        if sender.rtt <= 0.0 {
            return;
        }
        self.min = if self.min > 0.0 { self.min.min(sender.rtt) } else { sender.rtt };
        self.queue = self.queue.filter(|q| sender.rtt > q.gone && now <= q.until);
    }

    /// A loss halves the window; its mean is this rate in packets per second.
    pub fn begin(&mut self, now: Time, mean: f64, sender: &SenderState) {
        let rtt = sender.rtt.max(sender.srtt);
        let gone = self.min + LEFT * (rtt - self.min);
        if self.min > 0.0 && sender.srtt > 0.0 && sender.rtt > gone {
            let wait = narrows_base::Duration::from_secs_f64(MAX_ROUND_TRIPS * sender.srtt);
            self.queue = Some(StandingQueue { rate: SHARE * mean, gone, until: now + wait });
        }
    }

    /// Packets per second that may be sent at most.
    pub fn max_rate(&self) -> f64 {
        self.queue.map_or(f64::INFINITY, |q| q.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    fn sender_with(rtt: f64) -> SenderState {
        SenderState { srtt: 0.2, deviation: 0.0, rtt, idle: false }
    }
    /// A path of 0.1 s that a queue makes 0.2 s; at 100 packets/s a packet is lost to it.
    fn yielding() -> (Yielding, Time) {
        let mut y = Yielding::default();
        let now = Time::from_secs_f64(1.0);
        y.observe(now, &sender_with(0.1));
        y.observe(now, &sender_with(0.2));
        y.begin(now, 100.0, &sender_with(0.2));
        (y, now)
    }

    #[test]
    fn it_yields_until_the_queue_has_gone() {
        let (mut y, now) = yielding();
        assert_eq!(y.max_rate(), 60.0);
        y.observe(now, &sender_with(0.16));
        assert!(y.max_rate().is_finite(), "more than half of the queue is left");
        y.observe(now, &sender_with(0.14));
        assert_eq!(y.max_rate(), f64::INFINITY);
    }

    #[test]
    fn not_longer_than_two_round_trips() {
        let (mut y, now) = yielding();
        y.observe(now + Duration::from_millis(400), &sender_with(0.2));
        assert!(y.max_rate().is_finite());
        y.observe(now + Duration::from_millis(401), &sender_with(0.2));
        assert_eq!(y.max_rate(), f64::INFINITY, "others keep it full");
    }

    #[test]
    fn loss_without_a_queue_keeps_the_rate() {
        let mut y = Yielding::default();
        y.observe(Time::ZERO, &sender_with(0.1));
        y.begin(Time::ZERO, 20.0, &SenderState { srtt: 0.1, ..sender_with(0.1) });
        assert_eq!(y.max_rate(), f64::INFINITY);
        y.begin(Time::ZERO, 20.0, &SenderState::default());
        assert_eq!(y.max_rate(), f64::INFINITY, "no RTT is known");
    }
}
