//! SCReAM version 2, self-clocked rate adaptation for multimedia: Johansson, Westerlund and Kühlewind,
//! draft-johansson-ccwg-rfc8298bis-screamv2; for video with an encoder that follows a target rate.
//!
//! Measures losses, CE marks and the queueing delay of the forward path. The reference window W (in packets) falls at
//! most once per 25 ms (or round trip, if that is shorter). Otherwise it grows by a packet per round trip, and by 2% of
//! itself after a long time without congestion:
//!
//! ```text
//! W *= 0.7                                          a loss
//! W *= 0.8, or with l4s=on  1 - alpha / (2 r)       marks; alpha their mean share, r = max(1, srtt / 25 ms)
//! W *= 1 - (2 q / target - 1) / (2 r)               mean queueing delay q above half of its target (60 to 400 ms)
//! W += s min(1, srtt / 25 ms) (1 + 0.02 W c s) / W  per packet that arrived unmarked
//! target rate = W / srtt / 1.2
//! ```
//!
//! s is small near the window of the last congestion, c and s are 1 long after it. The growth is smaller while the
//! delay varies. Packets in flight may exceed W by 1.5 to 3 times, the more the steadier the delay.
//!
//! Departures: an ideal encoder, which hits its target exactly, replaces a real one. So packets are paced at the target
//! rate, and the part that adapts it to a queue of frames at the sender is left out. The rate counts bytes on the wire.
//! Choices that the draft leaves open: the smallest delay is that of ten minutes. The target delay is adapted every 50
//! ms from the last 200 of these. The rate of loss events is averaged over 100 round trips. At persistent congestion
//! the window is the smallest (RFC 9002 section 7.6.2).
//!
//! The authors publish rates of an implementation of October 2024 (github.com/EricssonResearch/scream, test-record.md).
//! Its average of the share of marks rises and falls at the same speed. The draft's average rises fast and falls
//! slowly, so it settles at a third of their 2 / p packets per RTT (a test here). With their average it is 0.67 of it,
//! and 1 / 1.2² would be 0.69. On 100 Mbit/s behind DualPI2 with 5, 10, 25, 50, 100 ms RTT it has 92, 91, 86, 75 and 52
//! Mbit/s alone (40 s from the start, two seeds). Theirs has 79, 78, 78, 76 and 71 with video frames. At 25 ms beside
//! one Prague it has 15, theirs 60. Beside one CUBIC with 50 ms of buffer it starves (0.2 of 20 Mbit/s): the target
//! stays below CUBIC's queue. `narrows compare --link 100Mbit/s,12.5ms,queue=5000kB,aqm=dualpi2 --protocols
//! 'scream(l4s=on)' --against rrtp+prague --duration 40s --seeds 2`.
//!
//! Marks are optional. Without them (or behind a queue as in RFC 3168, with `ecn=on`) it is a delay-based controller;
//! with `l4s=on` its packets are ECT(1), for queues such as DualPI2.

use crate::extreme::{Keep, SlidingExtreme};
use crate::{
    Ack, CongestionEvent, Controller, Environment, Requirements, SendLimits, Sent, bounded,
    positive, variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};
use target::DelayTarget;

mod target;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "scream",
    summary: "video's rate by delay, loss and marks; short queues, also L4S (SCReAM v2)",
    source: "draft-johansson-ccwg-rfc8298bis-screamv2",
    senses: "one-way delay, loss, congestion marks",
    sets: "window and pacing rate: +1 packet and 2% per RTT, down at most once per RTT",
    params: &[
        Param {
            name: "l4s",
            help: "whether its packets are ECT(1) and marks count in proportion",
            kind: ParamKind::Choice(&["off", "on"]),
            origin: "the draft's IS_L4S",
        },
        Param {
            name: "target",
            help: "smallest target of the queueing delay; it begins to slow down at half of it",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 0.001, max: 0.4, default: 0.06 },
            origin: "the draft's QDELAY_TARGET_LO",
        },
        Param {
            name: "competing",
            help: "whether the target rises to 0.4 s beside flows that fill the queue",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "the draft's section on competing flows",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::RATE,
    Variable::new("queueing_delay_fwd_s", "s", "mean delay of the way there beyond its smallest"),
    Variable::new("queueing_target_s", "s", "queueing delay at which the window is halved"),
    Variable::new("scream_alpha", "fraction", "mean share of marked packets"),
];

const VIRTUAL_RTT_S: f64 = 0.025;
/// The draft's 3000 bytes, at its packets of 1000.
const MIN_WINDOW: f64 = 3.0;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
const MULTIPLICATIVE_INCREASE: f64 = 0.02;
const POST_CONGESTION_RTTS: f64 = 100.0;
const INFLECTION_RTTS: f64 = 10.0;
const FLIGHT_HEADROOM: f64 = 1.5;
const OVERHEAD: (f64, f64) = (1.5, 3.0);
/// How far the target rate stays below window over RTT.
const RATE_MARGIN: f64 = 1.2;
const MIN_RATE_BPS: f64 = 50_000.0;
const ALPHA_GAIN_UP: f64 = 1.0 / 8.0;
const ALPHA_GAIN_DOWN: f64 = 1.0 / 128.0;
const ALPHA_PERIOD: Duration = Duration::from_millis(10);
const DELAY_GAIN: f64 = 0.25;
const DEVIATION_GAIN: f64 = 1.0 / 64.0;
const DEVIATION_NORM_S: f64 = 0.025;
const MIN_DEVIATION_SCALE: f64 = 0.1;
const BASE_DELAY_WINDOW: Duration = Duration::from_secs(600);

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Scream {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        l4s: settings.choice("l4s") == "on",
        window: MIN_WINDOW,
        inflection: None,
        srtt: environment.hints.rtt.unwrap_or(Duration::ZERO),
        flight: Flight::default(),
        marks: MarkedShare::default(),
        delay: Delay::new(),
        target: DelayTarget::new(settings.number("target"), settings.choice("competing") == "on"),
        lost: false,
        marked: false,
        congested: None,
        reacted: None,
    })
}

/// Most packets in flight, of this round trip and the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    most: f64,
    most_before: f64,
}

/// The mean share of marked packets.
#[derive(Clone, Copy, Debug, Default)]
struct MarkedShare {
    alpha: f64,
    delivered: u64,
    marked: u64,
    updated: Time,
}

impl MarkedShare {
    fn update(&mut self, now: Time, srtt: Duration) {
        if now.since(self.updated) < ALPHA_PERIOD.min(srtt) || self.delivered == 0 {
            return;
        }
        let share = self.marked as f64 / self.delivered as f64;
        let gain = if share >= self.alpha { ALPHA_GAIN_UP } else { ALPHA_GAIN_DOWN };
        // Downwards the draft only decays.
        let towards = if share >= self.alpha { share } else { 0.0 };
        self.alpha = (self.alpha + gain * (towards - self.alpha)).clamp(0.0, 1.0);
        self.delivered = 0;
        self.marked = 0;
        self.updated = now;
    }
}

/// The queueing delay of the way there, its mean and its variation.
#[derive(Clone, Debug)]
struct Delay {
    base: SlidingExtreme,
    now_s: f64,
    mean_s: f64,
    deviation: f64,
    updated: Time,
}

impl Delay {
    fn new() -> Delay {
        Delay {
            base: SlidingExtreme::new(Keep::Smallest),
            now_s: 0.0,
            mean_s: 0.0,
            deviation: 0.0,
            updated: Time::ZERO,
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: f64) {
        let sample = ack.forward_delay.unwrap_or(ack.rtt).as_secs_f64();
        self.base.add(ack.now, BASE_DELAY_WINDOW, sample);
        self.now_s = self.base.get().map_or(0.0, |base| (sample - base).max(0.0));
        if ack.now.since(self.updated).as_secs_f64()
            < VIRTUAL_RTT_S.min(positive(ack.estimate.srtt))
        {
            return;
        }
        self.updated = ack.now;
        let gain = if self.now_s < self.mean_s { 1.0 } else { DELAY_GAIN };
        self.mean_s += gain * (self.now_s - self.mean_s);
        let excess = (self.now_s - DEVIATION_NORM_S / 4.0) / DEVIATION_NORM_S;
        let excess = excess.clamp(0.0, 1.5 * deviation_threshold(window));
        self.deviation += DEVIATION_GAIN * (excess - self.deviation);
    }

    /// 1 where the delay is steady, 0 where it varies much.
    fn steadiness(&self, window: f64) -> f64 {
        let threshold = deviation_threshold(window);
        ((threshold - self.deviation) / threshold).max(0.0)
    }
}

fn deviation_threshold(window: f64) -> f64 {
    (0.1 * (1.0 - 10.0 / window.max(1.0))).max(0.05)
}

#[derive(Clone, Debug)]
struct Scream {
    packet_bits: f64,
    l4s: bool,
    /// Packets.
    window: f64,
    /// The window at the last congestion, and when it was noted.
    inflection: Option<(f64, Time)>,
    srtt: Duration,
    flight: Flight,
    marks: MarkedShare,
    delay: Delay,
    target: DelayTarget,
    /// Whether losses or marks have arrived since the last reaction.
    lost: bool,
    marked: bool,
    /// When a loss or a mark was last seen.
    congested: Option<Time>,
    reacted: Option<Time>,
}

impl Scream {
    fn srtt_s(&self) -> f64 {
        positive(self.srtt)
    }

    /// Small near the window of the last congestion, else 1.
    fn distance_scale(&self) -> f64 {
        self.inflection.map_or(1.0, |(inflection, _)| {
            let distance = 8.0 * (self.window - inflection) / inflection;
            (distance * distance).clamp(0.1, 1.0)
        })
    }

    fn rtts_since(&self, now: Time, then: Option<Time>) -> f64 {
        let rtt = self.srtt_s().max(VIRTUAL_RTT_S);
        then.map_or(f64::INFINITY, |then| now.since(then).as_secs_f64() / rtt)
    }

    /// Reduces the window for losses, marks or delay since the last reaction, at most once per round trip.
    fn react(&mut self, now: Time) {
        let since = self.reacted.map_or(f64::INFINITY, |at| now.since(at).as_secs_f64());
        if since < self.srtt_s().min(VIRTUAL_RTT_S) {
            return;
        }
        let half = self.target.seconds() / 2.0;
        let is_delayed = self.delay.mean_s > half;
        if !self.lost && !self.marked && !is_delayed {
            return;
        }
        let scale = self.distance_scale();
        let noted = self.inflection.map_or(f64::INFINITY, |(_, at)| now.since(at).as_secs_f64());
        if noted > INFLECTION_RTTS * self.srtt_s() {
            self.inflection = Some((self.window, now));
        }
        let long_rtt = (self.srtt_s() / VIRTUAL_RTT_S).max(1.0);
        self.window *= if self.lost {
            BETA_LOSS
        } else if self.marked && self.l4s {
            self.forget_unused_window(now);
            1.0 - self.mark_backoff(scale) / long_rtt
        } else if self.marked {
            BETA_ECN
        } else {
            let excess = ((self.delay.mean_s - half) / half).clamp(0.0, 1.0);
            1.0 - excess / 2.0 / long_rtt
        };
        self.window = bounded(self.window, MIN_WINDOW);
        self.lost = false;
        self.marked = false;
        self.reacted = Some(now);
    }

    /// After a long time without congestion the window may be far above the packets in flight.
    fn forget_unused_window(&mut self, now: Time) {
        if self.rtts_since(now, self.reacted) > POST_CONGESTION_RTTS
            && self.flight.most_before > 0.0
        {
            self.window = self.window.min(self.flight.most_before);
        }
    }

    fn mark_backoff(&self, scale: f64) -> f64 {
        let backoff = self.marks.alpha / 2.0;
        if self.delay.now_s >= self.target.seconds() / 4.0 {
            return backoff;
        }
        let steadiness = self.delay.steadiness(self.window).max(MIN_DEVIATION_SCALE);
        backoff * scale.max(0.25) * steadiness
    }

    fn grow(&mut self, now: Time, unmarked: f64) {
        let scale = self.distance_scale();
        let calm = (self.rtts_since(now, self.congested) / POST_CONGESTION_RTTS).clamp(0.0, 1.0);
        let growth = unmarked / self.window.max(1.0)
            * (self.srtt_s() / VIRTUAL_RTT_S).min(1.0)
            * scale.max(0.25)
            * self.delay.steadiness(self.window).max(MIN_DEVIATION_SCALE)
            * (1.0 + MULTIPLICATIVE_INCREASE * self.window * calm * scale);
        let most = 1.0 + FLIGHT_HEADROOM * self.flight.most.max(self.flight.most_before);
        if self.window + growth <= most {
            self.window = bounded(self.window + growth, MIN_WINDOW);
        }
    }

    /// The target rate in bit/s on the wire.
    fn rate(&self) -> f64 {
        let small = 1.0 - (1.0 / self.window.max(1.0) - 0.1).clamp(0.0, 0.2);
        small * self.window * self.packet_bits / self.srtt_s() / RATE_MARGIN
    }
}

impl Controller for Scream {
    fn on_sent(&mut self, sent: &Sent) {
        self.flight.most = self.flight.most.max(sent.outstanding as f64);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.estimate.srtt;
        let marks = u64::from(ack.marks).min(ack.newly_delivered);
        self.marks.delivered = self.marks.delivered.saturating_add(ack.newly_delivered);
        self.marks.marked = self.marks.marked.saturating_add(marks);
        if marks > 0 {
            self.marked = true;
            self.congested = Some(ack.now);
        }
        if ack.round_start {
            self.target.on_round();
            self.flight = Flight { most: ack.outstanding as f64, most_before: self.flight.most };
        }
        self.marks.update(ack.now, self.srtt);
        self.delay.on_ack(ack, self.window);
        self.target.on_delay(ack.now, self.delay.now_s);
        self.react(ack.now);
        self.grow(ack.now, ack.newly_delivered.saturating_sub(marks) as f64);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(loss) => {
                self.lost = true;
                self.congested = Some(loss.now);
                self.target.on_loss();
                self.react(loss.now);
            }
            CongestionEvent::SlowStartRestart(_) => self.window = MIN_WINDOW,
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let steadiness = self.delay.steadiness(self.window);
        let overhead = OVERHEAD.0 + (OVERHEAD.1 - OVERHEAD.0) * steadiness;
        let cwnd = bounded(self.window * overhead, MIN_WINDOW);
        if self.srtt == Duration::ZERO {
            return SendLimits::unpaced(cwnd);
        }
        SendLimits::paced(cwnd, Rate::from_bps_f64(bounded(self.rate(), MIN_RATE_BPS)))
    }

    fn requirements(&self) -> Requirements {
        if self.l4s { Requirements::L4S } else { Requirements::RRTP }
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", bounded(self.rate(), MIN_RATE_BPS));
        put("queueing_delay_fwd_s", self.delay.mean_s);
        put("queueing_target_s", self.target.seconds());
        put("scream_alpha", self.marks.alpha);
    }
}

#[cfg(test)]
mod tests;
