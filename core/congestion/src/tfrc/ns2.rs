//! The sender side as in ns-2.35's `Agent/TFRC`, at that version's defaults.
//!
//! Differences from RFC 5348:
//!
//! - It sends 300 B/s before the first report, then W_init/R until the third.
//! - R has a gain of 1/20 (`df_` 0.95); t_RTO is from TCP's integer estimator with ticks of 0.1 s.
//! - In slow start, where the rate doubles per RTT, the pacing rises packet by packet to the new rate, each report
//!   releases a packet at once, and a rate above twice X_recv falls to X_recv.
//! - Below the equation the rate rises by s/R per RTT, at most 2 s/R at once, and does not jump.
//! - The limit is 2 X_recv of the last report alone, at least s/R.
//! - The nofeedback timer is max(2R, 2s/X), halves the rate and releases a packet.
//! - A gap is fixed when the packet before it is sent, so a new rate counts from the next packet on.
//! - The rate is at most 25 MB/s.

use super::options::{Options, paced, show};
use crate::feedback::Feedback;
use crate::{Ack, Controller, Requirements, SendLimits, Sent, bounded, positive};
use narrows_base::{Duration, Time};

/// `InitRate_`, bytes per second.
const FIRST_RATE: f64 = 300.0;
/// MAXRATE of the equation, bytes per second.
const MAX_RATE: f64 = 25_000_000.0;
/// `tcp_tick_`, seconds.
const TICK: f64 = 0.1;
/// `ssmult_`.
const SLOW_START: f64 = 2.0;
/// `scmult_`: limit of a conservative sender without losses, as a multiple of X_recv.
const WITHOUT_LOSS: f64 = 1.5;
/// Lowest rate in bytes per second; ns-2 has no lower bound.
const MIN_RATE: f64 = 0.125;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ns2Phase {
    SlowStart,
    Later,
}

/// TCP's estimator, in ticks.
#[derive(Clone, Debug)]
struct TickEstimator {
    /// TCP's estimator: srtt in eighths and rttvar in quarters of a tick; the timeout, seconds.
    srtt: i64,
    rttvar: i64,
    rto: f64,
}

/// Times without data of the application, s.
#[derive(Clone, Debug)]
struct OutOfData {
    /// Whether the application is out of data, whether it has been since before the timer was set, and the end of the
    /// last such time.
    now: bool,
    all_idle: bool,
    until: f64,
}

/// ns-2's sender side. Rates are in bytes per second, times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Ns2TfrcSender {
    options: Options,
    phase: Ns2Phase,
    rate: f64,
    /// Present pacing rate of the rise to `rate` in slow start, and its step per packet.
    risen: f64,
    rise: f64,
    /// The rate of the gap after the last packet; infinite releases one at once.
    gap: f64,
    rtt: f64,
    rtt_now: f64,
    root_mean: f64,
    /// TCP's estimator, in ticks.
    ticks: TickEstimator,
    /// Limits from the last report: in slow start, and later; 0 before the first report.
    slow_limit: f64,
    limit: f64,
    changed: f64,
    /// Number of reports and timer expiries; whether a report has ever arrived.
    round: u64,
    heard: bool,
    urgent: bool,
    timer: Time,
    p: f64,
    recv: f64,
    /// Times without data of the application, s.
    limited: OutOfData,
}

impl Ns2TfrcSender {
    pub fn new(options: &Options) -> Ns2TfrcSender {
        Ns2TfrcSender {
            options: *options,
            phase: Ns2Phase::SlowStart,
            rate: FIRST_RATE,
            risen: FIRST_RATE,
            rise: 0.0,
            gap: FIRST_RATE,
            rtt: 0.0,
            rtt_now: 1.0,
            root_mean: 1.0,
            ticks: TickEstimator { srtt: 0, rttvar: 0, rto: 0.0 },
            slow_limit: 0.0,
            limit: 0.0,
            changed: 0.0,
            round: 0,
            heard: false,
            urgent: true,
            timer: Time::NEVER,
            p: 0.0,
            recv: 0.0,
            limited: OutOfData { now: false, all_idle: false, until: f64::NEG_INFINITY },
        }
    }

    fn sample(&mut self, sample: f64) {
        let ticks = ((sample / TICK + 0.5) as i64).clamp(1, 1 << 40);
        if self.ticks.srtt == 0 {
            self.ticks.srtt = ticks << 3;
            self.ticks.rttvar = ticks << 1;
        } else {
            let off = ticks - (self.ticks.srtt >> 3);
            self.ticks.srtt = (self.ticks.srtt + off).max(1);
            self.ticks.rttvar = (self.ticks.rttvar + off.abs() - (self.ticks.rttvar >> 2)).max(1);
        }
        let rto = ((self.ticks.rttvar << 3) + self.ticks.srtt) >> 3;
        self.ticks.rto = (rto as f64 * TICK).max(self.options.min_rto);
        let q = self.options.q;
        let root = sample.sqrt();
        if self.rtt > 0.0 {
            self.rtt = q * self.rtt + (1.0 - q) * sample;
            self.root_mean = q * self.root_mean + (1.0 - q) * root;
        } else {
            self.rtt = sample;
            self.root_mean = root;
        }
        self.rtt_now = sample;
    }
    fn fair(&self) -> f64 {
        let e = &self.options.equation;
        let rate = e.packets_per_second(self.p, self.rtt, self.ticks.rto) * self.options.packet;
        rate.min(MAX_RATE)
    }
    fn recently_limited(&self, now: f64) -> bool {
        self.limited.now || self.limited.until > now - 1.5 * self.rtt
    }

    /// Sets the rate in slow start, to be reached within a round trip.
    fn slow_start(&mut self, now: f64) {
        let s = self.options.packet;
        let rtt = self.rtt;
        let initial = self.options.initial_window() / rtt;
        let hold = self.slow_limit > 0.0 && self.slow_limit < initial && self.recently_limited(now);
        let target = if self.round <= 2 || hold {
            self.rate.max(initial)
        } else if self.slow_limit <= 0.0 {
            self.risen = self.rate;
            self.rate = s / rtt;
            self.rise = 0.0;
            self.changed = now;
            return;
        } else if self.rate < self.slow_limit && now - self.changed > rtt {
            (SLOW_START * self.rate).min(self.slow_limit).max(s / rtt)
        } else if self.rate > self.slow_limit {
            self.rate = self.slow_limit / 2.0;
            self.risen = self.rate;
            self.rise = 0.0;
            self.changed = now;
            return;
        } else {
            return;
        };
        self.risen = self.rate;
        self.rate = target;
        self.rise = (target - self.risen) / (target * rtt / s);
        self.changed = now;
    }

    fn arm_timer(&mut self, now: Time) {
        let wait = (2.0 * self.rtt).max(2.0 * self.options.packet / self.rate);
        self.timer = now + Duration::from_secs_f64(wait);
    }
}

impl Controller for Ns2TfrcSender {
    fn on_sent(&mut self, sent: &Sent) {
        if self.timer.is_never() {
            self.arm_timer(sent.now);
        }
        if self.limited.now {
            self.limited.until = sent.now.as_secs_f64();
            self.limited.all_idle = false;
        }
        self.limited.now = sent.last_waiting;
        let rising = self.round > 2 && self.phase == Ns2Phase::SlowStart && self.risen < self.rate;
        self.gap = if rising {
            self.risen += self.rise;
            self.risen
        } else if self.options.oscillation {
            self.rate * self.root_mean / self.rtt_now.sqrt()
        } else {
            self.rate
        };
    }
    fn on_ack(&mut self, a: &Ack) {
        if a.feedback.is_empty() {
            return;
        }
        let now = a.now.as_secs_f64();
        self.round += 1;
        self.urgent = false;
        self.p = a.feedback.number(0).min(1.0);
        self.recv = a.feedback.number(1);
        let known = self.round > 1 && self.recv > 0.0;
        self.slow_limit = if known { 2.0 * self.recv } else { 0.0 };
        self.limit = match self.options.conservative {
            true if known && a.feedback.number(2) > 0.0 => self.recv,
            true if known => WITHOUT_LOSS * self.recv,
            _ => self.slow_limit,
        };
        self.sample(positive(a.rtt));
        let fair = self.fair();
        self.arm_timer(a.now);
        let one = self.options.packet / self.rtt;
        if self.phase == Ns2Phase::SlowStart {
            if self.p > 0.0 && self.heard {
                self.phase = Ns2Phase::Later;
                self.rate = fair;
            } else {
                self.slow_start(now);
                self.gap = f64::INFINITY;
            }
        } else if fair > self.rate {
            let rounds = ((now - self.changed) / self.rtt).min(2.0);
            let min = if self.recently_limited(now) {
                self.options.initial_window() / self.rtt
            } else {
                one
            };
            let max = self.limit.max(min).min(fair);
            self.rate = (self.rate + one * rounds).min(max);
            self.changed = now;
        } else {
            self.rate = fair.min(self.limit.max(one));
            self.changed = now;
        }
        self.heard = true;
        self.rate = bounded(self.rate, MIN_RATE);
    }

    fn on_tick(&mut self, now: Time) {
        if now < self.timer {
            return;
        }
        let initial = self.options.initial_window() / self.rtt.max(1e-9);
        if !self.limited.now && !self.limited.all_idle {
            self.rate = (self.rate / 2.0).max(MIN_RATE);
        } else if self.rate > 2.0 * initial {
            self.rate /= 2.0;
        } else {
            self.rate = self.rate.min(initial.max(MIN_RATE));
        }
        self.urgent = true;
        self.round += 1;
        self.arm_timer(now);
        self.limited.all_idle |= self.limited.now;
        self.gap = f64::INFINITY;
    }
    fn next_tick(&self) -> Time {
        self.timer
    }

    fn send_limits(&self) -> SendLimits {
        paced(self.gap)
    }
    fn feedback_to_receiver(&self) -> Feedback {
        let urgent = f64::from(u8::from(self.urgent));
        Feedback::of(&[self.rtt, self.ticks.rto, f64::from(self.round as u16), urgent])
    }
    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        show(put, self.rate, self.p, self.rtt, self.recv);
    }
}

#[cfg(test)]
#[path = "ns2_tests.rs"]
mod tests;
