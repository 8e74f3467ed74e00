//! The rate algorithms of the RRTP thesis: bounded LIMD for shared networks (section 3.4.1), and S/r for a channel of
//! the flow's own (section 3.4.2, `rrtp-lasthop-paper`).
//!
//! The receiver averages the gaps between packets at departure and at arrival (`limd/receiver.rs`) and reports each
//! epoch of ten packets; r is the sending rate over the receiving rate. An r above 1.05 counts as incipient congestion:
//! the rate is multiplied by max(1 - beta, 0.5), and beta, 0.05 at first, doubles with each consecutive such epoch. If
//! r is below 0.95 the rate grows by alpha and beta is reset. In between, the rate stays. The rate is kept within two
//! bounds that follow measurements.
//!
//! - As printed the rate never rises. Packets arrive faster than they were sent only while a queue empties, so a sender
//!   below the path's rate measures r = 1. `rise=probe` adds the missing rise: alpha every second epoch in which the
//!   rate stayed. `rise=printed` is the thesis's text. Its tests began with a given rate (`rate=`).
//! - Not printed: alpha (a packet per round trip and round trip, at most a tenth of the rate) and the bounds. The upper
//!   bound is a tenth above the largest of three rates: received, measured by the first flight, and given. The lower
//!   one is half of the mean rate of epochs in which it stayed. It is halved with each epoch in which beta has reached
//!   0.5.
//! - A loss that the receiver attributes to congestion halves the rate, once in a round trip (the thesis: "in a similar
//!   manner as TCP Reno"). "When the signs of congestion disappear, RRTP undergoes either a slow-start or a
//!   fast-recovery phase, depending on the severity". Section 2.6.1 has losses that acknowledgements show as the less
//!   severe form, timeouts as the more severe one. The phases are read so: after a round trip without another such loss
//!   all of the rate returns ("instantaneous recovery", section 4.4.2); after a timeout the rate is a packet per round
//!   trip, and doubles each epoch until r exceeds 1.05. A loss within this slow start interrupts it for its round trip.
//! - The receiver's notification of a rise of the trip times (section 3.6) counts as r above 1.05.
//! - On a channel of its own the new rate is the most recent one over r, as soon as r leaves 0.95 to 1.05. The most
//!   recent rate is that of the averages, so S/r is the receive rate, and applying it twice does no harm. Congestion is
//!   handled as above ("resorts back to its regular LIMD approach"). There is no probe, no window, no bound.
//!   `rrtp-lasthop` adds these.

mod receiver;

use narrows_base::descriptor::ParamKind;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};
use narrows_congestion::round_trips::RoundTrips;
use narrows_congestion::{
    Ack, CongestionEvent, Controller, ControllerEntry, Environment, Feedback, PacketOutcome,
    PathEvent, PathHints, ReceiverSide, Requirements, SendLimits, bounded, positive, variables,
};
use receiver::LimdReceiver;

/// Bounded LIMD.
pub const ENTRY: ControllerEntry =
    ControllerEntry::new(&DESCRIPTOR, build).with_variables(VARIABLES).with_receiver(receiver);

/// The rate algorithm for a channel of the flow's own. Only its printed form is listed.
pub const LASTHOP: ControllerEntry = ControllerEntry::new(&ON_LASTHOP, build_lasthop)
    .with_variables(VARIABLES)
    .with_receiver(receiver_lasthop);

const DESCRIPTOR: Descriptor = Descriptor {
    name: "limd",
    summary: "bounded linear increase and multiplicative decrease of the RRTP thesis, with a rise",
    source: "the RRTP thesis, section 3.4.1, figure 3.4",
    senses: "gaps of arrivals over gaps of departures, rising trip times",
    sets: "pacing rate",
    params: &[
        Param {
            name: "rise",
            help: "whether the rate rises where it is steady: never, or alpha every second epoch",
            kind: ParamKind::Choice(&["probe", "printed"]),
            origin: "the RRTP thesis, section 3.4.1: printed; probe: an addition",
        },
        Param {
            name: "notify",
            help: "whether the receiver reports rising trip times",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "the RRTP thesis, section 3.6",
        },
    ],
    status: Status::Differs(
        "as printed, the rate cannot rise; with a probe it fills the path and is fair (docs/validation.md, s3-limd)",
    ),
};

/// The send rate follows the receive rate; the averages are those of bounded LIMD.
const ON_LASTHOP: Descriptor = Descriptor {
    name: "limd-lasthop",
    summary: "the RRTP thesis on a channel of its own: the send rate over r",
    source: "the RRTP thesis, section 3.4.2",
    senses: "gaps of arrivals over gaps of departures",
    sets: "pacing rate",
    params: &[],
    status: Status::Differs(
        "keeps a hinted rate as the thesis states; without a hint the rate cannot rise (docs/papers.md)",
    ),
};

/// The variables that it reports over time.
const VARIABLES: &[Variable] = &[
    variables::RATE,
    variables::SPACING_RATIO,
    Variable::new(
        "decrease",
        "fraction",
        "share by which the next sign of congestion reduces the rate (beta of the RRTP thesis)",
    ),
];

/// The RRTP thesis: within this distance of 1, r counts as 1.
const DEAD: f64 = 0.05;
/// The RRTP thesis's beta: at first, and at most.
const FIRST_BETA: f64 = 0.05;
const MAX_BETA: f64 = 0.5;
/// Packets of an epoch, as the receiver counts them.
const EPOCH: f64 = 10.0;
/// The largest step up, as a share of the rate.
const MAX_STEP: f64 = 0.1;
/// The bounds as multiples of the rates that they follow.
const ABOVE: f64 = 1.1;
const BELOW: f64 = 0.5;
/// Epochs in which the rate stayed until a probe.
const STEADY: u64 = 2;
/// Packets of the first flight, from which the first rate is measured: the thesis's P1 and P2 (section 3.2).
const FIRST: f64 = 2.0;
/// Round trips without a pair that arrived, after which a flight per round trip is the first rate.
const FIRST_ROUNDS: u64 = 3;
/// Packets per second: another packet in four seconds, so that feedback arrives again after an outage.
const MIN_RATE: f64 = 0.25;

/// Builds the sender side.
fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let rise = if settings.choice("rise") == "probe" { Rise::Probe } else { Rise::Printed };
    with_rise(rise, environment)
}

/// Builds the sender side for a channel of the flow's own.
fn build_lasthop(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    with_rise(Rise::OverRatio, environment)
}

fn with_rise(rise: Rise, environment: &Environment) -> Box<dyn Controller> {
    let mut limd = Limd {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        rise,
        rate: None,
        path: RoundTrips::default(),
        first: None,
        paired: None,
        out: 0,
        beta: FIRST_BETA,
        known: 0.0,
        min: 0.0,
        steady: Steady::default(),
        slow_start: false,
        cut_at: None,
        before: None,
        epoch: 0.0,
        ratio: 1.0,
    };
    limd.learn(&environment.hints);
    Box::new(limd)
}

/// Builds the receiver side.
fn receiver(settings: &Settings, _environment: &Environment) -> Box<dyn ReceiverSide> {
    Box::new(LimdReceiver::new(settings.choice("notify") == "on"))
}

/// Builds the receiver side for a channel of the flow's own, on which no trip times are reported.
fn receiver_lasthop(_settings: &Settings, _environment: &Environment) -> Box<dyn ReceiverSide> {
    Box::new(LimdReceiver::new(false))
}

/// How the rate rises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rise {
    /// Bounded LIMD as printed.
    Printed,
    /// Bounded LIMD that also rises in steady epochs.
    Probe,
    /// A channel of the flow's own: the rate follows the receive rate.
    OverRatio,
}

/// Consecutive epochs in which the rate stayed, and the sum of their rates.
#[derive(Clone, Copy, Debug, Default)]
struct Steady {
    epochs: u64,
    sum: f64,
}

/// When the first packet of a pair left, and when it was acknowledged.
#[derive(Clone, Copy, Debug)]
struct FirstOfPair {
    sent: Time,
    acked: Time,
}

#[derive(Clone, Debug)]
struct Limd {
    packet_bits: f64,
    rise: Rise,
    /// Packets per second.
    rate: Option<f64>,
    path: RoundTrips,
    first: Option<FirstOfPair>,
    /// Packets per second by a pair.
    paired: Option<f64>,
    out: u64,
    beta: f64,
    /// The largest given or measured rate of the path, and the lower bound, in packets per second.
    known: f64,
    min: f64,
    steady: Steady,
    slow_start: bool,
    cut_at: Option<Time>,
    /// The rate before a reduction that will be restored.
    before: Option<f64>,
    /// Number of the last epoch that was reported.
    epoch: f64,
    ratio: f64,
}

impl Limd {
    fn learn(&mut self, hints: &PathHints) {
        if let Some(rate) = hints.rate {
            let rate = bounded(rate.as_bps() as f64 / self.packet_bits, MIN_RATE);
            self.rate = Some(rate);
            self.known = rate;
            self.min = BELOW * rate;
            self.before = None;
            self.beta = FIRST_BETA;
            self.slow_start = false;
            self.steady = Steady::default();
        }
        if let Some(rtt) = hints.rtt {
            self.path.hint_base(positive(rtt));
        }
    }

    fn set(&mut self, rate: f64) {
        self.rate = Some(bounded(rate, MIN_RATE));
    }

    /// Measures with P1 and P2: the larger of their intervals at departure and at acknowledgement. The two are packets
    /// that left before feedback on the first; if one was lost, or one acknowledgement came for both, the next two are.
    fn pair(&mut self, outcome: &PacketOutcome) {
        let first = self.first.take().filter(|first| outcome.sent < first.acked && !outcome.lost);
        let Some(first) = first else {
            let next = FirstOfPair { sent: outcome.sent, acked: outcome.now };
            self.first = (!outcome.lost).then_some(next);
            return;
        };
        let arrived = outcome.now.since(first.acked);
        if arrived > Duration::ZERO {
            let interval = arrived.max(outcome.sent.since(first.sent)).as_secs_f64();
            self.paired = Some(f64::from(outcome.bytes) * 8.0 / self.packet_bits / interval);
        }
    }

    /// Sets the first rate: that of the first pair, or a flight per round trip if none arrived.
    fn begin(&mut self) {
        let Some(base) = self.path.base() else { return };
        if let Some(rate) = self.paired {
            self.known = rate;
            self.set(rate);
        } else if self.path.rounds >= FIRST_ROUNDS {
            self.slow_start = true;
            self.set(FIRST / base);
        }
    }

    /// An epoch has ended at the receiver.
    fn take_feedback(&mut self, feedback: &Feedback) {
        let arrival_gap = feedback.number(0);
        let left = feedback.number(1);
        let notified = feedback.number(2) > 0.0;
        let epoch = feedback.number(3);
        let Some(rate) =
            self.rate.filter(|_| arrival_gap > 0.0 && left > 0.0 && epoch != self.epoch)
        else {
            return;
        };
        self.epoch = epoch;
        self.ratio = arrival_gap / left;
        if self.rise == Rise::OverRatio {
            self.slow_start &= self.ratio <= 1.0 + DEAD;
            if self.before.is_none() {
                self.follow(rate, arrival_gap);
            }
            return;
        }
        self.known = self.known.max(1.0 / arrival_gap);
        if notified || self.ratio > 1.0 + DEAD {
            // The bound follows the present receiving rate.
            self.known = 1.0 / arrival_gap;
            self.decrease(rate);
        } else if self.slow_start {
            // A halved rate doubles no further until it has returned.
            if self.before.is_none() {
                self.set(2.0 * rate);
            }
        } else if self.ratio < 1.0 - DEAD {
            self.beta = FIRST_BETA;
            self.steady = Steady::default();
            self.increase(rate);
        } else {
            self.stay(rate);
        }
    }

    /// A channel of the flow's own: S/r.
    fn follow(&mut self, rate: f64, arrival_gap: f64) {
        if self.slow_start {
            self.set(2.0 * rate);
        } else if (self.ratio - 1.0).abs() > DEAD {
            self.set(1.0 / arrival_gap);
        }
    }

    fn decrease(&mut self, rate: f64) {
        self.slow_start = false;
        self.steady = Steady::default();
        if self.beta >= MAX_BETA {
            self.min /= 2.0;
        }
        let factor = 1.0 - self.beta;
        let min = self.min;
        let reduced = |rate: f64| (rate * factor).max(min.min(rate));
        self.before = self.before.map(reduced);
        self.set(reduced(rate));
        self.beta = (2.0 * self.beta).min(MAX_BETA);
    }

    /// A packet per round trip and round trip, over the duration of the epoch.
    fn increase(&mut self, rate: f64) {
        let Some(base) = self.path.base() else { return };
        let step = (EPOCH / rate / (base * base)).min(MAX_STEP * rate);
        self.set((rate + step).min((ABOVE * self.known).max(rate)));
    }

    /// The mean of such epochs is the characteristic rate, used from the second on.
    fn stay(&mut self, rate: f64) {
        self.steady.epochs += 1;
        self.steady.sum += rate;
        if self.steady.epochs >= STEADY {
            self.min = BELOW * self.steady.sum / self.steady.epochs as f64;
            if self.rise == Rise::Probe && self.steady.epochs.is_multiple_of(STEADY) {
                self.beta = FIRST_BETA;
                self.increase(rate);
            }
        }
    }
}

impl Controller for Limd {
    fn on_ack(&mut self, ack: &Ack) {
        self.path.on_ack(ack);
        let is_over = self.cut_at.is_some_and(|at| ack.now.since(at) >= ack.estimate.srtt);
        if let Some(before) = self.before.take_if(|_| is_over) {
            self.set(before);
        }
        self.out = ack.outstanding;
        if self.rate.is_none() {
            self.begin();
        }
        if !ack.feedback.is_empty() {
            self.take_feedback(&ack.feedback);
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if self.rate.is_none() {
            self.pair(outcome);
        }
        if !outcome.lost || outcome.radio || self.cut_at.is_some_and(|at| outcome.sent <= at) {
            return;
        }
        self.cut_at = Some(outcome.now);
        self.steady = Steady::default();
        if let Some(rate) = self.rate {
            self.before.get_or_insert(rate);
            self.set(rate / 2.0);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(restart) = event {
            self.steady = Steady::default();
            self.before = None;
            if let Some(rate) = self.rate {
                self.slow_start = true;
                self.min = 0.0;
                self.set(rate.min(1.0 / positive(restart.srtt)));
            }
        }
    }

    fn on_path_event(&mut self, _now: Time, event: &PathEvent) {
        if let PathEvent::Hints(hints) = event {
            self.learn(hints);
        }
    }

    fn send_limits(&self) -> SendLimits {
        // A second flight must wait for feedback on the first; otherwise the two would be sent together.
        let first = if self.out > 1 { 1.0 } else { FIRST };
        let Some(rate) = self.rate else { return SendLimits::unpaced(first) };
        let bps = bounded(rate * self.packet_bits, 1.0);
        SendLimits::paced(f64::INFINITY, Rate::from_bps_f64(bps))
    }

    fn requirements(&self) -> Requirements {
        Requirements::RRTP
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if let Some(rate) = self.rate {
            put("rate_bps", rate * self.packet_bits);
        }
        put("spacing_ratio", self.ratio);
        put("decrease", self.beta);
    }
}

#[cfg(test)]
#[path = "limd/tests.rs"]
mod tests;
