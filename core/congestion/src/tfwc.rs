//! TFWC: TCP-friendly window-based congestion control for media (Choi 2006, chapters 4 and 5).
//!
//! TFRC's smoothness with TCP's ACK clock: the window is that of TCP's throughput equation for the average loss
//! interval, so no round-trip time enters it. Every packet is acknowledged; the endpoint keeps the ACK vector and
//! reports every packet's outcome, in the order of numbers. Before the first loss, slow start. If the equation's window
//! is below 2, an ACK clock would stall, and Choi sends packets by timer instead: rate mode (`rate-mode=on`). The
//! default is an addition of Narrows: a window and a timer as TCP's (`small_window.rs`). TCP's share on narrow links
//! depends on its timer, which rate mode does not have, so TCP starves beside rate mode.
//!
//! Choices where the paper is open, or misprinted:
//!
//! - The round-trip time that separates loss events is SRTT, and it is measured from the send time of the packet that
//!   began the event: later losses of the event do not move it on.
//! - Algorithm 1's text looks for a window larger than cwnd. Its code, which breaks at the first smaller one, is
//!   followed. The report that reveals the first loss counts no packets.
//! - cwnd is at least 1: rounding 0.04 to 0 would stop an endpoint without rate mode.
//! - There are two "t_RTO": the timer, which backs off, and the spacing of equation 5.5. They are kept apart (`clock`),
//!   so leaving rate mode needs no repair of the timer.
//! - t0 in equation 5.5 is TCP's timeout, printed as SRTT + 4 RTTVAR (5.6). The author's code measures it by ns-2's
//!   clock of 0.1 s, so it is 0.3 s on a short path. By a fine clock it is little more than the RTT. Then rate mode
//!   sends up to twice as much as the window at the same loss rate, and TCP, with its minimum timeout, starves. Of 4
//!   TCP and 4 TFWC flows at 1 Mbit/s with a queue of 5 packets, TCP then gets 7 %, and 40 % by ticks. Ticks are the
//!   default; a small window uses the same clock.
//! - Rate mode ends with the acknowledgement that raises the window to the threshold; the window is in force again at
//!   once.
//! - Algorithm 4 raises the last acknowledgement by one at an expiry, to send one packet. Here that packet may exceed
//!   the window, until the next acknowledgement. Even if the window shrank below the packets in flight, one packet is
//!   sent.
//! - Rate mode has no back-off (algorithm 4): in an outage, packets are sent at the spacing of the last report.
//! - Choi's application always has data. Without data, slow start does not grow the window, and the timer is off while
//!   no packet is in flight.

mod clock;
mod equation;
mod intervals;
mod small_window;

use crate::{
    Ack, Controller, Environment, PacketOutcome, Requirements, SendLimits, Sent, bounded, positive,
    variables,
};
use clock::{Backoff, RateStyle, T0, TfwcTimers};
use intervals::Intervals;
use narrows_base::descriptor::ParamKind;
use narrows_base::random::RandomStream;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};
use small_window::SmallWindow;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "tfwc",
    summary: "a window from TCP's equation and the average loss interval, for media",
    source: "Choi 2006, chapters 4 and 5",
    senses: "loss (as intervals between loss events), ECN marks, RTT for its timer only",
    sets: "window: 1/f(p); below 2 packets one as TCP's, or a rate",
    params: &[
        Param {
            name: "history",
            help: "loss intervals that are averaged: 8, or 16 with hyperbolic weights",
            kind: ParamKind::Choice(&["8", "ewma16"]),
            origin: "Choi 2006, section 5.3.1; ewma16: the author's later code",
        },
        Param {
            name: "rounding",
            help: "the window is the nearest whole number, or the one below",
            kind: ParamKind::Choice(&["nearest", "down"]),
            origin: "Choi 2006, algorithm 3; down: the author's later code",
        },
        Param {
            name: "rate-mode",
            help: "replacement of a small window: a window and timer as TCP's (fairest), the equation's rate, or off",
            kind: ParamKind::Choice(&["tcp", "on", "off"]),
            origin: "an addition; on: Choi 2006, section 5.4.1",
        },
        Param {
            name: "rate-threshold",
            help: "the window below which rate mode is on",
            kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 100.0, default: 2.0 },
            origin: "Choi 2006, algorithm 3; 2.5 in the author's later code",
        },
        Param {
            name: "rate-style",
            help: "spacing in rate mode: the equation's, or 0.8 of it times sqrt(RTT)/mean",
            kind: ParamKind::Choice(&["s1", "later"]),
            origin: "Choi 2006, equation 5.5; later: the author's later code",
        },
        Param {
            name: "t0",
            help: "timeout in rate mode's equation: RTO by 0.1 s ticks, SRTT + 4 RTTVAR, or 4 RTT",
            kind: ParamKind::Choice(&["ticks", "variance", "4rtt"]),
            origin: "the author's code; variance: Choi 2006, equation 5.6; 4rtt: equation 4.1",
        },
        Param {
            name: "backoff",
            help: "timeout after an expiry",
            kind: ParamKind::Choice(&["double", "2srtt"]),
            origin: "Choi 2006, section 5.5; 2srtt: the author's later code",
        },
        Param {
            name: "rtt-gain",
            help: "weight of a sample in the smoothed RTT",
            kind: ParamKind::Number { unit: Unit::None, min: 0.001, max: 1.0, default: 0.125 },
            origin: "Choi 2006, equation 5.7; 0.1 in the author's later code",
        },
        Param {
            name: "spread",
            help: "probability that a window of 4 or more leaves a send opportunity to the next, against phase effects",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 0.9, default: 0.06 },
            origin: "Choi 2006, appendix C.1.2, as future work; .03 to .51 in the author's later code",
        },
        Param {
            name: "initial-window",
            help: "window at the start",
            kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 1e6, default: 1.0 },
            origin: "Choi 2006, section 4.2.1: TCP's slow start, then from one packet",
        },
    ],
    status: Status::Differs(
        "loss intervals and windows of the paper by test; on slow links a window and timer as TCP's, since its rate \
         mode starves TCP (docs/sources.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::LOSS_EVENT_RATE,
    Variable::new("mean_loss_interval", "packets", "weighted mean of the last loss intervals"),
    variables::OPEN_LOSS_INTERVAL,
    Variable::new("last_loss_interval", "packets", "packets between the last two loss events"),
    Variable::new("equation_window", "packets", "window of TCP's equation at that loss event rate"),
    Variable::state("rate_mode", "limit of sending", &["a window", "a rate"]),
    Variable::new("rto_s", "s", "retransmission timeout"),
];

/// Smallest window that leaves send opportunities out after the first loss. In a smaller one each costs a large part of
/// a round trip.
const SPREAD_FROM: f64 = 4.0;

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Tfwc::new(settings, environment))
}

/// Progress of the connection.
#[derive(Clone, Copy, PartialEq, Debug)]
enum TfwcPhase {
    /// No loss yet.
    SlowStart,
    /// The first loss, of a packet sent then, is in the report that is being read.
    FirstLoss(Time),
    /// The equation sets the window.
    Equation,
}

/// When a rate replaces small windows.
#[derive(Clone, Debug)]
struct RateMode {
    /// Below this equation window rate mode is on; 0 if it never is.
    threshold: f64,
    spread: f64,
    /// Whether small windows are as TCP's, in place of rate mode.
    as_tcp: bool,
}

#[derive(Clone)]
struct Tfwc {
    nearest: bool,
    /// When a rate replaces small windows.
    rate_mode: RateMode,
    style: RateStyle,
    random_key: RandomStream,
    packet_bits: f64,

    phase: TfwcPhase,
    cwnd: f64,
    /// The average loss interval that the window was last computed from.
    average: f64,
    /// The equation's window, not rounded.
    equation_window: f64,
    loss_rate: f64,
    intervals: Intervals,
    /// Send time of the packet that began the current loss event.
    event: Time,
    clock: TfwcTimers,
    /// Seconds between packets, in rate mode.
    dispersion: Option<f64>,
    /// TCP's window in the place of rate mode.
    small: Option<SmallWindow>,
    /// Packets that expired timers allow over the window.
    credit: f64,
    /// This send opportunity is left unused.
    deferred: bool,
    flight: u64,
    /// Time of the last acknowledgement in order.
    progress: Time,
    due: Time,
}

impl Tfwc {
    fn new(settings: &Settings, environment: &Environment) -> Tfwc {
        let rate_mode = settings.choice("rate-mode") != "off";
        let backoff =
            if settings.choice("backoff") == "double" { Backoff::Double } else { Backoff::TwoSrtt };
        let t0 = match settings.choice("t0") {
            "variance" => T0::Variance,
            "ticks" => T0::Ticks,
            _ => T0::FourRtt,
        };
        Tfwc {
            nearest: settings.choice("rounding") == "nearest",
            rate_mode: RateMode {
                threshold: if rate_mode { settings.number("rate-threshold") } else { 0.0 },
                spread: settings.number("spread"),
                as_tcp: settings.choice("rate-mode") == "tcp",
            },
            style: match settings.choice("rate-mode") {
                "on" if settings.choice("rate-style") == "later" => RateStyle::Later,
                _ => RateStyle::S1,
            },
            random_key: environment.random_key.named("spread").stream(),
            packet_bits: f64::from(environment.packet_bytes) * 8.0,
            phase: TfwcPhase::SlowStart,
            cwnd: settings.number("initial-window"),
            average: 0.0,
            equation_window: 0.0,
            loss_rate: 0.0,
            intervals: match settings.choice("history") {
                "8" => Intervals::eight(),
                _ => Intervals::sixteen(),
            },
            event: Time::ZERO,
            clock: TfwcTimers::new(settings.number("rtt-gain"), backoff, t0),
            dispersion: None,
            small: None,
            credit: 0.0,
            deferred: false,
            flight: 0,
            progress: Time::ZERO,
            due: Time::NEVER,
        }
    }

    /// Choi 2006, algorithm 1: the interval that corresponds to the halved window.
    fn first_loss(&mut self, sent: Time) {
        self.cwnd = bounded((self.cwnd / 2.0).floor(), 1.0);
        self.loss_rate = equation::rate_for(self.cwnd);
        self.equation_window = equation::window(self.loss_rate);
        self.intervals.begin((1.0 / self.loss_rate).floor());
        self.event = sent;
        self.phase = TfwcPhase::Equation;
    }

    /// Choi 2006, algorithm 3.
    fn window_from_intervals(&mut self) {
        let average = self.intervals.average();
        if average.to_bits() == self.average.to_bits() {
            return; // Between events the mean rests most of the time.
        }
        self.average = average;
        self.loss_rate = (1.0 / average).clamp(equation::MIN_LOSS_RATE, 1.0);
        self.equation_window = equation::window(self.loss_rate);
        let half = if self.nearest { 0.5 } else { 0.0 };
        self.cwnd = bounded((self.equation_window + half).floor(), 1.0);
    }

    fn rate_mode(&self) -> bool {
        self.phase == TfwcPhase::Equation && self.equation_window < self.rate_mode.threshold
    }

    fn window(&self) -> f64 {
        if self.small.as_ref().is_some_and(|s| s.silent_until().is_some()) {
            return 0.0;
        }
        let window = self.small.as_ref().map_or(self.cwnd, SmallWindow::cwnd) + self.credit;
        if self.deferred && self.flight > 0 { window.min(self.flight as f64) } else { window }
    }

    /// The timer's length.
    fn timeout(&self) -> Duration {
        self.small.as_ref().map_or(self.clock.timeout(), SmallWindow::timeout)
    }

    /// While a packet is in flight, the timer runs from every send and every acknowledgement. With a small window as
    /// TCP's it runs from the last acknowledgement in order.
    fn arm(&mut self, now: Time) {
        if let Some(until) = self.small.as_ref().and_then(SmallWindow::silent_until) {
            self.due = until;
            return;
        }
        self.due = if self.dispersion.is_some() || self.flight == 0 {
            Time::NEVER
        } else {
            let from = if self.small.is_some() { self.progress } else { now };
            (from + self.timeout()).max(now)
        };
    }

    /// A small window as TCP's that begins now, with the RTT estimate and the timer's back-off so far.
    fn small_window(&self, now: Time) -> SmallWindow {
        let clock = &self.clock;
        let timed = clock.timed();
        let factor = clock.backed_off();
        SmallWindow::new(self.cwnd, now, timed, factor, clock.kind_of_t0())
    }

    /// Takes a sample of the round trip. If the equation's window is small, updates its replacement.
    fn sample_and_replace_small_window(&mut self, ack: &Ack) {
        let small = match (&self.small, self.phase) {
            // A timer has expired: until a new packet has been timed, as TCP's.
            (Some(tcp), TfwcPhase::SlowStart) => {
                if !tcp.backs_off() {
                    self.cwnd = bounded(tcp.cwnd().floor(), 1.0);
                }
                tcp.backs_off()
            }
            _ => self.rate_mode(),
        };
        if self.rate_mode.as_tcp {
            // TCP's small window makes its own RTT estimate from new acknowledgements.
            let begun = self.small.take();
            self.small = small.then(|| begun.unwrap_or_else(|| self.small_window(ack.now)));
            if let Some(tcp) = self.small.as_mut().filter(|_| ack.newly_delivered > 0) {
                tcp.on_ack(ack.window_limited, positive(ack.rtt));
            }
        }
        self.clock.sample(ack.rtt);
        let rate = small && !self.rate_mode.as_tcp;
        self.dispersion = rate.then(|| self.clock.dispersion(self.loss_rate, self.style));
    }
}

impl Controller for Tfwc {
    fn on_sent(&mut self, sent: &Sent) {
        self.flight = sent.outstanding;
        if sent.outstanding <= 1 {
            self.progress = sent.now;
        }
        if let Some(tcp) = &mut self.small {
            tcp.on_sent(sent.now);
        }
        self.arm(sent.now);
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        let struck = outcome.lost || outcome.marked;
        if !outcome.lost {
            self.progress = outcome.now;
        }
        if let Some(tcp) = self.small.as_mut().filter(|_| struck) {
            let timeout = tcp.timeout();
            tcp.on_loss(outcome.sent, outcome.now, timeout);
            // A loss may be detected by a timer, without an acknowledgement.
            if tcp.silent_until().is_some() {
                self.arm(outcome.now);
            }
        }
        match self.phase {
            TfwcPhase::SlowStart | TfwcPhase::FirstLoss(_) if struck => {
                self.phase = TfwcPhase::FirstLoss(outcome.sent);
            }
            TfwcPhase::SlowStart | TfwcPhase::FirstLoss(_) => {}
            // Choi 2006, algorithm 2: a loss within a round trip of the event's first counts as a received packet.
            TfwcPhase::Equation => {
                if struck && outcome.sent.since(self.event) > self.clock.srtt() {
                    self.intervals.event();
                    self.event = outcome.sent;
                } else {
                    self.intervals.packet();
                }
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        match self.phase {
            TfwcPhase::SlowStart => {
                if ack.newly_delivered > 0 && ack.window_limited {
                    self.cwnd = bounded(self.cwnd + 1.0, 1.0);
                }
            }
            TfwcPhase::FirstLoss(sent) => self.first_loss(sent),
            TfwcPhase::Equation => self.window_from_intervals(),
        }
        self.sample_and_replace_small_window(ack);
        self.credit = 0.0;
        self.flight = ack.flight;
        self.deferred = self.rate_mode.spread > 0.0
            && self.phase == TfwcPhase::Equation
            && self.window() >= SPREAD_FROM
            && self.random_key.chance(self.rate_mode.spread);
        self.arm(ack.now);
    }

    fn on_tick(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        self.clock.back_off();
        self.progress = now;
        if let Some(tcp) = &mut self.small {
            if !tcp.ends_silence() {
                tcp.on_timeout(now);
            }
        } else if self.rate_mode.as_tcp && self.phase == TfwcPhase::SlowStart {
            let clock = &self.clock;
            let mut tcp = SmallWindow::new(self.cwnd, now, clock.timed(), 1.0, clock.kind_of_t0());
            tcp.on_timeout(now);
            self.small = Some(tcp);
        }
        self.deferred = false;
        let cwnd = self.small.as_ref().map_or(self.cwnd, SmallWindow::cwnd);
        self.credit = self.credit.max(self.flight as f64 + 1.0 - cwnd);
        self.arm(now);
    }

    fn send_limits(&self) -> SendLimits {
        match self.dispersion {
            None => SendLimits::unpaced(bounded(self.window(), 0.0)),
            Some(seconds) => {
                let rate = Rate::from_bps_f64((self.packet_bits / seconds).clamp(1.0, 1e15));
                SendLimits::paced(f64::INFINITY, rate)
            }
        }
    }
    fn next_tick(&self) -> Time {
        self.due
    }
    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if self.phase == TfwcPhase::Equation {
            put("mean_loss_interval", self.intervals.average());
            put("open_loss_interval", self.intervals.open());
            put("last_loss_interval", self.intervals.closed().first().copied().unwrap_or(0.0));
            put("loss_event_rate", self.loss_rate);
            put("equation_window", self.equation_window);
        }
        put("rate_mode", f64::from(u8::from(self.dispersion.is_some())));
        put("rto_s", self.timeout().as_secs_f64());
    }
}

#[cfg(test)]
#[path = "tfwc_tests.rs"]
mod tests;
