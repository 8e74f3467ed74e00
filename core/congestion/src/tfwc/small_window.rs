//! A TCP-like window of a packet or two: an addition of Narrows, in the place of Choi's rate mode.
//!
//! If a flow has less than two packets per round trip, TCP's rate depends on its timer and the timer's back-off, of
//! which the equation has only a mean. A rate by the equation, or by the mean of such a TCP, is paced. Evenly spaced
//! packets have half the loss rate of TCP's at a full queue of few packets (0.19 and 0.39 with 16 flows of each on 1
//! Mbit/s), so TCP starves beside any such rate. So the flow emulates such a TCP. Its window grows and halves as TCP's,
//! and a timeout sets it to one packet and doubles the timeout.
//!
//! The end of the doubling matters most. TCP does not time retransmitted packets (Karn), so its timeout stays doubled
//! until the lost packets have been sent again, and a new packet after them has been timed and acknowledged. A further
//! lost packet in the meantime is one more to send again. If the first acknowledgement ended the doubling, TCP would
//! have 0.08 of the link beside 64 of these flows rather than 0.49. For the same reason, a TCP without an RTT sample
//! waits for 3 s, and twice as long each time, until it has one. At a loss rate of one half, that is most of its life.
//! So a timer that expires before the first loss is detected also begins such a window, until a new packet has been
//! timed.
//!
//! Losses in a window of four or more, rounded to the nearest, halve it, as TCP's third duplicate does. In a smaller
//! one TCP waits for its timer. (With three, limited transmit causes the third duplicate if both of its packets arrive.
//! If windows are halved from three, from three and a half, or from four on, a TCP gets 0.44, 0.50 and 0.56 of 1 Mbit/s
//! with 16 of each.) TFWC has no retransmissions, so the first packet after a halving stands for TCP's retransmission:
//! if it is lost, TCP waits for its timer.

use super::clock::T0;
use crate::bounded;
use narrows_base::{Duration, Time};

/// Least timeout in seconds: that of Linux and of ns-2.
const MIN_TIMEOUT: f64 = 0.2;
/// Timeout in seconds before a packet has been timed.
const FIRST_TIMEOUT: f64 = 3.0;
/// Longest timeout in seconds.
const MAX_TIMEOUT: f64 = 60.0;
/// How often a timeout doubles, as a factor.
const MAX_BACKOFF: f64 = 64.0;
/// Acknowledgements of new packets until one has been timed.
const TIMED: u32 = 2;
/// Most acknowledgements to wait for, for any number of lost packets.
const MAX_UNTIMED: u32 = 8;
/// Clock of the author's TCP, in seconds.
const TICK: f64 = 0.1;

/// SRTT and RTTVAR in seconds, as TCP has them: of packets that it timed.
pub(super) type Estimate = Option<(f64, f64)>;

#[derive(Clone, Debug)]
pub(super) struct SmallWindow {
    cwnd: f64,
    ssthresh: f64,
    /// Losses of packets sent until then belong to the last reduction.
    reduced: Time,
    backoff: f64,
    estimate: Estimate,
    t0: T0,
    /// Remaining acknowledgements before the back-off ends.
    untimed: u32,
    /// No packets are sent before this time.
    silent_until: Option<Time>,
    /// The next packet stands for a retransmission of TCP.
    repeats: bool,
    /// Send time of that packet.
    repeated: Time,
}

impl SmallWindow {
    /// Begins with this window, the RTT estimate so far, and the timer's back-off so far.
    pub fn new(cwnd: f64, now: Time, timed: Estimate, backoff: f64, t0: T0) -> SmallWindow {
        SmallWindow {
            cwnd,
            ssthresh: cwnd.max(2.0),
            reduced: now,
            backoff,
            estimate: timed,
            t0,
            untimed: if backoff > 1.0 { cwnd as u32 + TIMED } else { 0 },
            silent_until: None,
            repeats: false,
            repeated: Time::ZERO,
        }
    }

    /// Whether the timeout is a doubled one.
    pub fn backs_off(&self) -> bool {
        self.backoff > 1.0
    }

    /// A packet is sent.
    pub fn on_sent(&mut self, now: Time) {
        if std::mem::take(&mut self.repeats) {
            self.repeated = now;
        }
    }

    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }
    /// Time until which no packets are sent.
    pub fn silent_until(&self) -> Option<Time> {
        self.silent_until
    }
    /// Whether a pause without sending is over. It was not a timeout of its own.
    pub fn ends_silence(&mut self) -> bool {
        self.silent_until.take().is_some()
    }

    /// The timer's length.
    pub fn timeout(&self) -> Duration {
        let base = self.estimate.map_or(FIRST_TIMEOUT, |(srtt, rttvar)| match self.t0 {
            T0::Ticks => ((srtt / TICK).ceil() + (4.0 * rttvar / TICK).ceil()) * TICK,
            T0::Variance => srtt + 4.0 * rttvar,
            T0::FourRtt => 4.0 * srtt,
        });
        Duration::from_secs_f64((base.max(MIN_TIMEOUT) * self.backoff).min(MAX_TIMEOUT))
    }

    /// A packet sent then was lost or marked. With fewer than four packets, or for a retransmission, TCP gets no third
    /// duplicate: it waits for its timer, which has run since then.
    pub fn on_loss(&mut self, sent: Time, now: Time, timeout: Duration) {
        if sent <= self.reduced {
            return;
        }
        if self.cwnd.round() < 4.0 || sent <= self.repeated {
            self.silent_until = Some((sent + timeout).max(now));
            self.on_timeout(now);
        } else {
            self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
            self.cwnd = bounded(self.cwnd / 2.0, 1.0);
            self.reduced = now;
            self.repeats = true;
        }
    }

    /// A packet was acknowledged, this many seconds after it was sent.
    pub fn on_ack(&mut self, window_limited: bool, rtt: f64) {
        self.untimed = self.untimed.saturating_sub(1);
        if self.untimed == 0 {
            self.backoff = 1.0;
            self.estimate = Some(match self.estimate {
                None => (rtt, rtt / 2.0),
                Some((srtt, rttvar)) => {
                    (srtt + (rtt - srtt) / 8.0, rttvar + ((rtt - srtt).abs() - rttvar) / 4.0)
                }
            });
        }
        if window_limited {
            self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        }
    }

    /// The timeout expired without an acknowledgement.
    pub fn on_timeout(&mut self, now: Time) {
        self.untimed = (self.untimed + 1).max(self.cwnd as u32 + TIMED).min(MAX_UNTIMED);
        self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
        self.cwnd = 1.0;
        self.backoff = (2.0 * self.backoff).min(MAX_BACKOFF);
        self.reduced = now;
        self.repeats = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: f64) -> Time {
        Time::from_secs_f64(s)
    }
    fn window(cwnd: f64) -> SmallWindow {
        SmallWindow::new(cwnd, at(0.0), Some((0.05, 0.01)), 1.0, T0::Variance)
    }
    fn seconds(w: &SmallWindow) -> f64 {
        w.timeout().as_secs_f64()
    }
    fn is(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn silence_makes_the_window_one_packet_and_doubles_the_timeout() {
        let mut w = window(3.0);
        assert_eq!((w.cwnd(), seconds(&w)), (3.0, 0.2), "the least");
        for (n, timeout) in [0.4, 0.8, 1.6].into_iter().enumerate() {
            w.on_timeout(at(n as f64));
            assert_eq!(w.cwnd(), 1.0);
            assert!(is(seconds(&w), timeout));
        }
        (0..9).for_each(|n| w.on_timeout(at(n.into())));
        assert!(is(seconds(&w), 0.2 * MAX_BACKOFF));
        w.estimate = Some((50.0, 1.0));
        assert!(is(seconds(&w), 60.0), "at most a minute");
    }

    /// Three packets are sent again, and the second new one is timed; each further loss adds one.
    #[test]
    fn the_doubling_ends_when_a_new_packet_has_been_timed() {
        let mut w = window(3.0);
        w.on_timeout(at(1.0));
        (0..4).for_each(|_| w.on_ack(true, 0.05));
        assert!(is(seconds(&w), 0.4));
        w.on_ack(true, 0.05);
        assert_eq!(seconds(&w), 0.2);
        w.on_timeout(at(2.0));
        w.on_timeout(at(3.0));
        let untimed = w.untimed;
        (1..untimed).for_each(|_| w.on_ack(true, 0.05));
        assert!(is(seconds(&w), 0.8));
        w.on_ack(true, 0.05);
        assert_eq!((untimed, seconds(&w)), (6, 0.2), "five acknowledgements and one");
        (0..99).for_each(|n| w.on_timeout(at(n.into())));
        assert_eq!(w.untimed, MAX_UNTIMED);
    }

    /// A TCP with losses among its first packets has no RTT sample, even if other packets have been acknowledged since.
    #[test]
    fn only_packets_that_tcp_times_are_known_to_it() {
        let mut w = SmallWindow::new(1.0, at(0.0), None, 2.0, T0::Variance);
        assert_eq!(seconds(&w), 6.0, "two doublings of 3 s would be 12");
        (0..2).for_each(|_| w.on_ack(true, 1.0));
        assert_eq!(seconds(&w), 6.0);
        w.on_ack(true, 1.0);
        assert_eq!(seconds(&w), 3.0, "1 s and four times half of it");
        w.on_timeout(at(9.0));
        w.on_ack(true, 0.1);
        assert_eq!(seconds(&w), 6.0, "what is sent again is not timed");
    }

    #[test]
    fn the_timeout_is_that_of_the_clock_that_t0_says() {
        for (t0, expected) in [(T0::Ticks, 0.7), (T0::Variance, 0.61), (T0::FourRtt, 1.64)] {
            let w = SmallWindow::new(1.0, at(0.0), Some((0.41, 0.05)), 1.0, t0);
            assert!(is(seconds(&w), expected), "{t0:?}");
        }
    }

    /// TCP's third duplicate does not arrive; losses of packets sent before belong to the same event.
    #[test]
    fn loss_in_a_window_below_four_is_a_timeout() {
        let mut w = window(3.0);
        w.on_loss(at(1.0), at(1.1), Duration::from_millis(200));
        assert_eq!((w.cwnd(), w.silent_until()), (1.0, Some(at(1.2))));
        w.on_loss(at(1.05), at(1.15), Duration::from_millis(400));
        assert_eq!(w.silent_until(), Some(at(1.2)), "once");
        assert!(w.ends_silence() && !w.ends_silence());
        for (cwnd, halved) in [(8.0, 4.0), (3.5, 1.75)] {
            let mut w = window(cwnd);
            w.on_loss(at(1.0), at(1.1), Duration::from_millis(200));
            assert_eq!((w.cwnd(), w.silent_until()), (halved, None));
        }
    }

    /// The first packet after a halving stands for TCP's retransmission.
    #[test]
    fn a_repeated_packet_that_is_lost_is_a_timeout() {
        let halved = || {
            let mut w = window(16.0);
            w.on_loss(at(1.0), at(1.1), Duration::from_millis(200));
            w.on_sent(at(1.2));
            w.on_sent(at(1.3));
            w
        };
        let mut first = halved();
        let mut second = halved();
        first.on_loss(at(1.2), at(1.4), Duration::from_millis(400));
        assert_eq!((first.cwnd(), first.silent_until()), (1.0, Some(at(1.6))));
        second.on_loss(at(1.3), at(1.4), Duration::from_millis(400));
        assert_eq!((second.cwnd(), second.silent_until()), (4.0, None));
        let mut expired = halved();
        expired.on_timeout(at(1.4));
        expired.on_sent(at(1.5));
        assert_eq!(expired.repeated, at(1.2), "what a timer repeats is another matter");
    }

    #[test]
    fn it_grows_as_tcps() {
        let mut w = window(2.0);
        w.on_ack(true, 0.05);
        assert_eq!(w.cwnd(), 2.5);
        w.on_timeout(at(1.0));
        (0..2).for_each(|_| w.on_ack(true, 0.05));
        assert_eq!(w.cwnd(), 2.5, "1 in slow start, then 1/2");
        w.on_ack(false, 0.05);
        assert_eq!(w.cwnd(), 2.5, "not if the window was not the limit");
    }
}
