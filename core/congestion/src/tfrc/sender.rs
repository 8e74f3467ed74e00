//! The sender side as RFC 5348 section 4 has it.

use super::limited::Limited;
use super::options::{Options, paced, show};
use crate::feedback::Feedback;
use crate::{Ack, Controller, Requirements, SendLimits, Sent, bounded, positive};
use narrows_base::{Duration, Time};

/// t_mbi: the longest time between packets, in seconds (RFC 5348 section 4.3).
const MAX_BETWEEN: f64 = 64.0;
/// The nofeedback timer before the first report (section 4.2).
const FIRST_TIMER: Duration = Duration::from_secs(2);
/// Factor on X_recv at a loss of a data-limited sender (section 4.3 step 4).
const LIMITED_LOSS: f64 = 0.85;

/// TFRC's sender side. Rates are in bytes per second, times in seconds.
#[derive(Clone, Debug)]
pub(super) struct TfrcSender {
    options: Options,
    /// X.
    rate: f64,
    /// The pacing rate: X, or X_inst of section 4.5.
    paced: f64,
    /// R, 0 before the first report.
    rtt: f64,
    /// R_sqmean.
    root_mean: Option<f64>,
    /// p and X_recv of the last report, for the nofeedback timer and to be watched.
    p: f64,
    recv: f64,
    /// X_recv_set: values and their arrival times.
    recv_set: Vec<(Time, f64)>,
    /// tld: when X was last doubled.
    doubled: Time,
    /// The nofeedback timer, and whether the sender has been idle since it was set.
    timer: Time,
    idle: bool,
    limited: Limited,
}

/// Values of X_recv_set at most: two round trips of reports, one more for each loss event.
const MAX_RATES: usize = 16;

impl TfrcSender {
    pub fn new(options: &Options) -> TfrcSender {
        let rate = options.packet;
        TfrcSender {
            options: *options,
            rate,
            paced: rate,
            rtt: 0.0,
            root_mean: None,
            p: 0.0,
            recv: 0.0,
            recv_set: Vec::new(),
            doubled: Time::ZERO,
            timer: Time::NEVER,
            idle: true,
            limited: Limited::default(),
        }
    }

    /// X_Bps: the rate of the equation.
    fn fair(&self) -> f64 {
        let rto = self.options.rto(self.rtt, 0.0);
        self.options.equation.packets_per_second(self.p, self.rtt, rto) * self.options.packet
    }
    /// s/t_mbi.
    fn min_rate(&self) -> f64 {
        self.options.packet / MAX_BETWEEN
    }
    /// The initial rate, and the recover rate of section 4.4: W_init/R.
    fn initial_rate(&self) -> f64 {
        self.options.initial_window() / self.rtt.max(1e-9)
    }
    fn largest(&self) -> f64 {
        self.recv_set.iter().map(|r| r.1).fold(0.0, f64::max)
    }
    /// Maximize X_recv_set (section 4.3).
    fn maximize(&mut self, now: Time, recv: f64) {
        self.recv_set.retain(|r| r.1.is_finite());
        let max = self.largest().max(recv);
        self.recv_set.clear();
        self.recv_set.push((now, max));
    }
    /// Update X_recv_set (section 4.3): values of the last two round trips.
    fn update(&mut self, now: Time, recv: f64) {
        let two = Duration::from_secs_f64(2.0 * self.rtt);
        self.recv_set.retain(|r| now.since(r.0) <= two);
        if self.recv_set.len() >= MAX_RATES {
            self.recv_set.remove(0);
        }
        self.recv_set.push((now, recv));
    }
    /// Step 4's last part: X from p and the receive limit.
    fn set_rate(&mut self, now: Time, limit: f64) {
        if self.p > 0.0 {
            self.rate = self.fair().min(limit).max(self.min_rate());
        } else if now.since(self.doubled).as_secs_f64() >= self.rtt {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial_rate());
            self.doubled = now;
        }
        self.rate = bounded(self.rate, self.min_rate());
    }
    /// Time without a report after which the nofeedback timer expires.
    fn patience(&self) -> Duration {
        Duration::from_secs_f64((4.0 * self.rtt).max(2.0 * self.options.packet / self.rate))
    }
    fn arm_timer(&mut self, now: Time, wait: Duration) {
        self.timer = now + wait;
        self.idle = true;
    }
    /// The nofeedback timer expired: section 4.4.
    fn starve(&mut self, now: Time) {
        if self.rtt <= 0.0 {
            if !self.idle {
                self.rate = (self.rate / 2.0).max(self.min_rate());
            }
            return;
        }
        let recv = self.largest();
        let recover = self.initial_rate();
        let low = if self.p > 0.0 { recv < recover } else { self.rate < 2.0 * recover };
        if self.idle && low {
            return;
        }
        if self.p <= 0.0 {
            self.rate = (self.rate / 2.0).max(self.min_rate());
            return;
        }
        let fair = self.fair();
        let limit = if fair > 2.0 * recv { recv } else { fair / 2.0 };
        let limit = limit.max(self.min_rate());
        self.recv_set.clear();
        self.recv_set.push((now, limit / 2.0));
        self.set_rate(now, limit);
    }
}

impl Controller for TfrcSender {
    fn on_sent(&mut self, sent: &Sent) {
        if self.timer.is_never() {
            self.timer = sent.now + FIRST_TIMER;
        }
        self.idle = false;
        if !sent.last_waiting {
            self.limited.not_limited(sent.now);
        }
    }
    fn on_ack(&mut self, a: &Ack) {
        if a.feedback.is_empty() {
            return;
        }
        let sample = positive(a.rtt);
        let p = a.feedback.number(0).min(1.0);
        let mut recv = a.feedback.number(1);
        let news = a.feedback.number(2) > 0.0 || p > self.p;
        let root = crate::smooth(&mut self.root_mean, sample.sqrt(), 0.1);
        let echoed = Time::from_nanos(a.now.as_nanos().saturating_sub(a.rtt.as_nanos()));
        let limited = self.limited.report(a.now, echoed);
        self.p = p;
        self.recv = recv;
        let wait;
        if self.rtt <= 0.0 {
            self.rtt = sample;
            self.rate = bounded(self.initial_rate(), self.min_rate());
            self.recv_set.push((a.now, f64::INFINITY));
            self.doubled = a.now;
            wait = self.patience();
        } else {
            self.rtt = self.options.q * self.rtt + (1.0 - self.options.q) * sample;
            wait = self.patience(); // Step 3: with X as it was.
            let limit = if !limited {
                self.update(a.now, recv);
                2.0 * self.largest()
            } else if news {
                self.recv_set.iter_mut().for_each(|r| r.1 /= 2.0);
                recv *= LIMITED_LOSS;
                self.maximize(a.now, recv);
                self.largest()
            } else {
                self.maximize(a.now, recv);
                2.0 * self.largest()
            };
            self.set_rate(a.now, limit);
        }
        self.paced = self.rate;
        if self.options.oscillation {
            self.paced = bounded(self.rate * root / sample.sqrt(), self.min_rate());
        }
        self.arm_timer(a.now, wait);
    }

    fn on_tick(&mut self, now: Time) {
        if now < self.timer {
            return;
        }
        let before = self.rate;
        self.starve(now);
        self.paced *= self.rate / before;
        self.arm_timer(now, self.patience());
    }
    fn next_tick(&self) -> Time {
        self.timer
    }

    fn send_limits(&self) -> SendLimits {
        paced(self.paced)
    }
    fn feedback_to_receiver(&self) -> Feedback {
        Feedback::of(&[self.rtt])
    }
    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        show(put, self.rate, self.p, self.rtt, self.recv);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
