//! A window of a packet or two as TCP has it: ours, in the place of S1's rate mode.
//!
//! Where a flow has less than two packets per round trip, what TCP gets is decided by its timer and the timer's
//! back-off, of which the equation knows only a mean. A rate that follows the equation, or the mean of such a TCP, is
//! paced, and evenly spaced packets meet half the losses of TCP's at a full queue of few packets (0.19 and 0.39 with 16
//! of each on 1 Mbit/s): TCP starves beside it whatever the rate is computed from. So the flow itself plays that TCP: its
//! window grows and halves as TCP's, and silence for a timeout makes it one packet and doubles the timeout.
//!
//! When the doubling ends matters most. TCP times no packet that it has sent twice (Karn), so its timeout stays doubled
//! until what was lost has been sent again, and a new packet after it has been timed and acknowledged. If the first
//! acknowledgement ends it, TCP has 0.08 of the line beside 64 of these where it has 0.45 so.

use crate::bounded;
use narrows_base::{Duration, Time};

/// Least timeout in seconds: that of Linux and of ns-2.
const MIN_TIMEOUT: f64 = 0.2;
/// Acknowledgements of new packets until one has been timed.
const TIMED: u32 = 2;
/// Longest timeout in seconds.
const MAX_TIMEOUT: f64 = 60.0;

#[derive(Clone, Debug)]
pub(super) struct SmallWindow {
    cwnd: f64,
    ssthresh: f64,
    /// Losses of packets sent until then belong to the last reduction.
    reduced: Time,
    backoff: f64,
    /// Acknowledgements to come before the back-off ends.
    untimed: u32,
    /// Nothing is sent before.
    silent_until: Option<Time>,
}

impl SmallWindow {
    /// It begins with this window.
    pub fn new(cwnd: f64, now: Time) -> SmallWindow {
        SmallWindow {
            cwnd,
            ssthresh: cwnd.max(2.0),
            reduced: now,
            backoff: 1.0,
            untimed: 0,
            silent_until: None,
        }
    }

    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }
    /// Until when nothing is sent.
    pub fn silent_until(&self) -> Option<Time> {
        self.silent_until
    }
    /// Whether a silence is over, which was not a timeout of its own.
    pub fn ends_silence(&mut self) -> bool {
        self.silent_until.take().is_some()
    }

    /// The timer's length, of an SRTT and its variation in seconds.
    pub fn timeout(&self, srtt: f64, rttvar: f64) -> Duration {
        let timeout = (srtt + 4.0 * rttvar).max(MIN_TIMEOUT) * self.backoff;
        Duration::from_secs_f64(timeout.min(MAX_TIMEOUT))
    }

    /// A packet sent then was lost or marked. With fewer than four packets TCP's third duplicate does not come: it waits
    /// for its timer, which has run since then.
    pub fn on_loss(&mut self, sent: Time, now: Time, timeout: Duration) {
        if sent <= self.reduced {
            return;
        }
        if self.cwnd < 4.0 {
            self.silent_until = Some((sent + timeout).max(now));
            self.on_timeout(now);
        } else {
            self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
            self.cwnd = bounded(self.cwnd / 2.0, 1.0);
            self.reduced = now;
        }
    }

    /// A packet was acknowledged.
    pub fn on_ack(&mut self, window_limited: bool) {
        self.untimed = self.untimed.saturating_sub(1);
        if self.untimed == 0 {
            self.backoff = 1.0;
        }
        if window_limited {
            self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        }
    }

    /// Nothing came for a timeout.
    pub fn on_timeout(&mut self, now: Time) {
        self.untimed = self.untimed.max(self.cwnd as u32 + TIMED);
        self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
        self.cwnd = 1.0;
        self.backoff = (2.0 * self.backoff).min(64.0);
        self.reduced = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: f64) -> Time {
        Time::from_secs_f64(s)
    }
    fn seconds(w: &SmallWindow) -> f64 {
        w.timeout(0.05, 0.01).as_secs_f64()
    }

    #[test]
    fn silence_makes_the_window_one_packet_and_doubles_the_timeout() {
        let mut w = SmallWindow::new(3.0, at(0.0));
        assert_eq!((w.cwnd(), seconds(&w)), (3.0, 0.2), "the least");
        for (n, timeout) in [0.4, 0.8, 1.6].into_iter().enumerate() {
            w.on_timeout(at(n as f64));
            assert_eq!(w.cwnd(), 1.0);
            assert!((seconds(&w) - timeout).abs() < 1e-9);
        }
        assert!((w.timeout(50.0, 1.0).as_secs_f64() - 60.0).abs() < 1e-9, "at most a minute");
    }

    /// Three packets are sent again, and the second new one is timed.
    #[test]
    fn the_doubling_ends_when_a_new_packet_has_been_timed() {
        let mut w = SmallWindow::new(3.0, at(0.0));
        w.on_timeout(at(1.0));
        (0..4).for_each(|_| w.on_ack(true));
        assert!((seconds(&w) - 0.4).abs() < 1e-9);
        w.on_ack(true);
        assert_eq!(seconds(&w), 0.2);
    }

    /// TCP's third duplicate does not come; what was sent before belongs to the same loss.
    #[test]
    fn a_loss_in_a_window_below_four_is_a_timeout_and_silence() {
        let mut w = SmallWindow::new(3.0, at(0.0));
        w.on_loss(at(1.0), at(1.1), Duration::from_millis(200));
        assert_eq!((w.cwnd(), w.silent_until()), (1.0, Some(at(1.2))));
        w.on_loss(at(1.05), at(1.15), Duration::from_millis(400));
        assert_eq!(w.silent_until(), Some(at(1.2)), "once");
        assert!(w.ends_silence() && !w.ends_silence());
        let mut w = SmallWindow::new(8.0, at(0.0));
        w.on_loss(at(1.0), at(1.1), Duration::from_millis(200));
        assert_eq!((w.cwnd(), w.silent_until()), (4.0, None), "halved");
    }

    #[test]
    fn it_grows_as_tcps() {
        let mut w = SmallWindow::new(2.0, at(0.0));
        w.on_ack(true);
        assert_eq!(w.cwnd(), 2.5);
        w.on_timeout(at(1.0));
        (0..2).for_each(|_| w.on_ack(true));
        assert_eq!(w.cwnd(), 2.5, "1 in slow start, then 1/2");
        w.on_ack(false);
        assert_eq!(w.cwnd(), 2.5, "not if the window was not the limit");
    }
}
