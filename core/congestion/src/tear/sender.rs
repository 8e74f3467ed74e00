//! The sender side: paces at the reported rate, and slows down without reports.

use crate::{Ack, Controller, Feedback, Requirements, SendLimits, Sent};
use narrows_base::{Duration, Rate, Time};

/// Slowest: packets per second.
const MIN_RATE: f64 = 1.0 / 8.0;
/// Fastest.
const MAX_RATE: f64 = 1e11;
/// Packets per second before the first RTT.
const FIRST: f64 = 1.0;

#[derive(Clone, Debug)]
pub(super) struct TearSender {
    /// Bits of a full packet on the wire.
    packet_bits: f64,
    /// Packets per second.
    rate: f64,
    srtt: f64,
    deviation: f64,
    rtt: f64,
    /// The application has no data after the packet that is being sent.
    idle: bool,
    /// Time at which the rate is halved without a report; `NEVER` while no packet is in flight.
    due: Time,
}

impl TearSender {
    pub fn new(packet_bytes: u32) -> TearSender {
        TearSender {
            packet_bits: f64::from(packet_bytes.max(1)) * 8.0,
            rate: FIRST,
            srtt: 0.0,
            deviation: 0.0,
            rtt: 0.0,
            idle: false,
            due: Time::NEVER,
        }
    }
}

impl Controller for TearSender {
    fn on_sent(&mut self, sent: &Sent) {
        self.idle = sent.last_waiting;
        if self.due.is_never() {
            let patience = (4.0 * self.srtt).max(2.0 / self.rate);
            self.due = sent.now + Duration::from_secs_f64(patience);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.feedback.is_empty() {
            return;
        }
        let first = self.srtt <= 0.0;
        self.srtt = ack.estimate.srtt.as_secs_f64().max(1e-6);
        self.deviation = ack.estimate.rttvar.as_secs_f64();
        self.rtt = ack.rtt.as_secs_f64().max(1e-6);
        let reported = ack.feedback.number(0);
        let rate = if reported > 0.0 {
            reported.min(2.0 * self.rate)
        } else if first {
            1.0 / self.srtt
        } else {
            self.rate
        };
        self.rate = rate.clamp(MIN_RATE, MAX_RATE);
        self.due = Time::NEVER;
    }

    fn on_tick(&mut self, now: Time) {
        if now >= self.due {
            self.rate = (self.rate / 2.0).max(MIN_RATE);
            self.due = Time::NEVER;
        }
    }
    fn next_tick(&self) -> Time {
        self.due
    }

    fn send_limits(&self) -> SendLimits {
        let bps = (self.rate * self.packet_bits).max(1.0);
        SendLimits::paced(f64::INFINITY, Rate::from_bps_f64(bps))
    }
    fn feedback_to_receiver(&self) -> Feedback {
        let idle = f64::from(u8::from(self.idle));
        Feedback::of(&[self.srtt, self.deviation, self.rtt, idle])
    }
    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.rate * self.packet_bits);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
