//! RAP, the Rate Adaptation Protocol: Rejaie, Handley and Estrin, IEEE INFOCOM 1999.
//!
//! Measures loss and the round-trip time, with an ACK for every packet. Controls the rate: it rises
//! by one packet per SRTT in every SRTT and is halved at a loss, which is TCP's AIMD without a
//! window. Losses of packets sent before the last halving belong to it. The first ACK sets the rate
//! to one packet per SRTT.
//!
//! As in ns-2's module where the paper leaves it open: the first packets are sent a second apart, and the timeout is
//! 1.2 SRTT + 4 RTTVAR. A source that used less than half of its rate does not raise it. Departures: SRTT and RTTVAR
//! are RFC 6298's (ns-2's gain is a half). One timer that ACKs restart replaces a timer per packet. A mark counts as a
//! loss (RFC 3168). Steps are at least 1 ms apart and do not raise the rate without an ACK; otherwise it would never
//! fall below a packet per round trip on a dead path. A packet is sent at least every 64 s, as in TFRC (RFC 5348
//! section 4.3).

use crate::{
    Ack, Controller, Environment, PacketOutcome, Requirements, SendLimits, Sent, bounded, positive,
    smooth, variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rap",
    summary: "a rate that adds a packet per round trip and halves at a loss",
    source: "Rejaie, Handley and Estrin 1999; ns-2 Agent/RAP",
    senses: "loss, round-trip time",
    sets: "rate: +1 packet per SRTT each SRTT, halved per loss episode",
    params: &[
        Param {
            name: "increase",
            help: "packets per round trip that a round trip adds",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1000.0, default: 1.0 },
            origin: "Rejaie et al. 1999; ns-2 alpha_",
        },
        Param {
            name: "decrease",
            help: "factor applied to the rate at a loss",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.01, max: 0.99, default: 0.5 },
            origin: "Rejaie et al. 1999; ns-2 beta_",
        },
        Param {
            name: "fine-grain",
            help: "whether a round trip longer than usual slows down at once",
            kind: ParamKind::Choice(&["off", "on"]),
            origin: "ns-2 useFineGrain_; averages of gain 0.9 and 0.01, kfrtt_ and kxrtt_",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[variables::RATE];

/// Lowest rate in packets per second: one every 64 s.
const MIN_RATE: f64 = 1.0 / 64.0;
/// Highest rate in packets per second: beyond any link.
const MAX_RATE: f64 = 1e9;
/// Shortest time between two steps.
const MIN_RTT: Duration = Duration::from_millis(1);

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Rap {
        packet_bits: f64::from(environment.packet_bytes) * 8.0,
        increase: settings.number("increase"),
        decrease: settings.number("decrease"),
        fine_grain: settings.choice("fine-grain") == "on",
        rate: 1.0,
        srtt: None,
        timeout: Duration::from_secs(2),
        cut_at: None,
        sent: 0,
        acked: false,
        step: Time::NEVER,
        timer: Time::NEVER,
        short: None,
        long: None,
    })
}

#[derive(Clone, Debug)]
struct Rap {
    packet_bits: f64,
    increase: f64,
    decrease: f64,
    fine_grain: bool,
    /// Packets per second.
    rate: f64,
    srtt: Option<Duration>,
    timeout: Duration,
    /// Time of the last reduction of the rate.
    cut_at: Option<Time>,
    /// Packets sent since the last step.
    sent: u64,
    /// Whether an ACK has arrived since the last step.
    acked: bool,
    /// When the rate rises next.
    step: Time,
    timer: Time,
    /// Round-trip times in seconds, averaged quickly and slowly.
    short: Option<f64>,
    long: Option<f64>,
}

impl Rap {
    fn period(&self) -> Duration {
        self.srtt.unwrap_or(Duration::from_secs(2)).max(MIN_RTT)
    }
    fn begin_step(&mut self, now: Time) {
        self.step = now + self.period();
        self.sent = 0;
        self.acked = false;
    }
    fn set(&mut self, rate: f64) {
        self.rate = bounded(rate, MIN_RATE).min(MAX_RATE);
    }
    fn cut(&mut self, now: Time) {
        self.set(self.rate * self.decrease);
        self.cut_at = Some(now);
        if self.srtt.is_some() {
            self.begin_step(now);
        }
    }
}

impl Controller for Rap {
    fn on_sent(&mut self, sent: &Sent) {
        self.sent = self.sent.saturating_add(1);
        if self.timer.is_never() {
            self.timer = sent.now + self.timeout;
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if (outcome.lost || outcome.marked) && self.cut_at.is_none_or(|cut| outcome.sent > cut) {
            self.cut(outcome.now);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.acked = true;
        let first = self.srtt.is_none();
        self.srtt = Some(ack.estimate.srtt);
        let deviation = ack.estimate.rttvar.saturating_mul(4);
        self.timeout = (ack.estimate.srtt.mul_f64(1.2) + deviation).max(MIN_RTT);
        let sample = positive(ack.rtt);
        smooth(&mut self.short, sample, 0.9);
        smooth(&mut self.long, sample, 0.01);
        if first {
            self.set(1.0 / self.period().as_secs_f64());
            self.begin_step(ack.now);
        }
        self.timer = if ack.outstanding == 0 { Time::NEVER } else { ack.now + self.timeout };
    }

    fn on_tick(&mut self, now: Time) {
        if now >= self.timer {
            // Everything in flight is lost. The next packet arms the timer again.
            self.timer = Time::NEVER;
            self.cut(now);
        }
        if now >= self.step {
            let period = self.period().as_secs_f64();
            // Below two packets per step, a step may pass without one.
            if self.acked && self.sent as f64 >= (0.5 * self.rate * period).floor() {
                self.set(self.rate + self.increase / period);
            }
            self.begin_step(now);
        }
    }

    fn next_tick(&self) -> Time {
        self.step.min(self.timer)
    }

    fn send_limits(&self) -> SendLimits {
        let mut rate = self.rate;
        if let (true, Some(short), Some(long)) = (self.fine_grain, self.short, self.long) {
            rate = bounded(rate * long / short, MIN_RATE);
        }
        let rate = Rate::from_bps_f64((rate * self.packet_bits).max(1.0));
        SendLimits::paced(f64::INFINITY, rate)
    }

    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.rate * self.packet_bits);
    }
}

#[cfg(test)]
#[path = "rap_tests.rs"]
mod tests;
