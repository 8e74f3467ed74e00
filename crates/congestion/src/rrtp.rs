//! RRTP's regular mode: S3 section 3.4.1, "pre-emptive, bounded" control of the rate, made into one
//! that works unseeded, fills lossy links and shares clean ones.
//!
//! What S3 wants is kept: a rate that stays below the path's by watching queues instead of causing
//! losses; an upper bound from the rate that arrives; a gentle answer to incipient congestion and a
//! Reno-like one to congestion that drops; losses that the receiver takes for the radio's are only
//! repaired; what is told of the network beforehand replaces the search for it.
//!
//! How S3 does it is not kept, because it cannot work as printed:
//! - *The rate cannot rise.* S3 raises it where send rate over receive rate is below 0.95. A link
//!   that is not full delivers at the rate at which it is sent to, so the ratio is 1 and the rate stays:
//!   the thesis runs on seeds. Ours probes: 15 % more for one of eight round trips, and twice as
//!   much again after a probe that found something.
//! - *The ratio cannot tell whose queue it is.* Whoever always yields to a queue starves beside TCP,
//!   which fills it. Ours has two modes and asks which one is right (below).
//! - *Epochs of ten packets* are a sixth of a round trip on one of S3's links and ten on another, while
//!   what a rate does is seen after one. Ours counts in round trips. The averages of 10 and 50 gaps
//!   stayed in `rrtp-lasthop`, where they suffice.
//! - beta from 0.05 doubling to 0.5 reduces within six epochs by ten times, whatever the excess was.
//!   Ours returns to the product of bandwidth and smallest round trip at once.
//!
//! *Startup.* What the packets that open a connection tell (`on_dispersion`; ten packets leave by it until the first
//! acknowledgement, since it can be forged), or else four packets; the spacing of their acknowledgements is
//! a first rate (in S3, section 3.2, two probe packets). The next
//! flight is the product of that rate and the round trip, at
//! most 64 packets; if it is 64, its own spacing must confirm the rate. Then a quarter more per round
//! trip until a queue shows, or a round loses more than a tenth.
//!
//! *Default mode* (`rrtp/default_mode.rs`): the window is the product and a room of 4 ms, the rate 5 % above what
//! arrives, so that the window rules and a queue never grows beyond the room. Losses mean nothing, since
//! the queue that would have dropped them is not there.
//!
//! *Competitive mode* (`rrtp/competitive.rs`): a window that grows by a packet per round trip and leaves half
//! of itself at congestion, as Reno's.
//! Congestion is a loss that the receiver did not take for the radio's and that came while the
//! round trip was high. Two things depend on the queue. Behind a deep one a round trip is long, and the
//! window follows CUBIC's curve where that is faster. A shallow one is empty long before half: a cut
//! after which the queue was seen to be gone lets the next one leave what the path itself holds, and the
//! growth is less by as much (AIMD with the same mean window).
//!
//! *Which?* If the window is cut by a fifth for two round trips while a queue stands, whoever is alone
//! gets the same rate from a shorter queue. Whoever shares loses rate, as the others' packets stay:
//! with part s, 0.8/(1 - 0.2 s) of it remains. Two cuts in a row that leave 95 % (s above 0.8) begin
//! *default mode*. A queue that stands although our part is held short, a bandwidth that falls by a fifth, or
//! a flood of losses end it. So a changed path is asked the same question as a competitor, and the
//! question has no time constant of TCP's in it. Copa and Nimbus ask by other means. Cuts are whole packets,
//! an answer that a loss spoiled is asked for again, and the queue that the startup found does not grow
//! until it is answered: on a slow link each packet is half a second. Where the queue holds a packet or
//! two nothing can be asked; there congestion's own cuts are answers: two that leave all of the rate.
//!
//! Seeds: a told rate begins in *default mode* with the whole product; if it is wrong, the modes find out. A
//! told loss rate raises what counts as a flood. A told RTT counts until the first is measured.
//!
//! Known limits:
//! - Several of a kind, clean and long-lived, stay *competitive mode*. With room for one product (40 ms) two keep
//!   13 ms in the mean, as each is sometimes taken for nobody; four keep 29.
//! - Behind four products of queue it has 0.54 of the link beside one CUBIC, and then 0.66 beside one
//!   Reno, to which CUBIC leaves a quarter: what holds its own beside the one is too much for the other.
//! - Behind a quarter of the product it takes 0.67 beside one Reno with SACK, 0.70 beside four, 0.60 beside
//!   one CUBIC, as pacing keeps it from the bursts that such queues drop; Reno of 1990, which waits for its
//!   timer after several losses, is left 0.04. (docs/scenarios.md, "Shares", has the commands.)
//! - Where an answer that nobody else is there was wrong, the next question waits for 48 rounds: a
//!   competitor that leaves meanwhile is noticed that much later.
//! - Alone on a slow link (144 kbit/s, 500 ms, 1 % loss, a buffer of 50 packets) two of 120 runs took losses
//!   for a competitor's and let the buffer fill: 7 and 18 packets in the mean, where others keep one.
//! - In a queue of a fiftieth of the product (S3's long fat pipe) every probe overflows: 0.74 of the link.

mod competitive;
mod default_mode;
mod flight;
mod path_model;
mod startup;

use crate::{
    Ack, CongestionEvent, Controller, Environment, PacketOutcome, PathEvent, PathHints,
    Requirements, SendLimits, bounded, variables,
};
use competitive::Competitive;
pub(crate) use flight::Flight;
use narrows_base::{Descriptor, Rate, Settings, Status, Time, Variable};
pub(crate) use path_model::PathModel;

/// Its descriptor.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp",
    summary: "short queues where it is alone, a fair share where it is not (after S3)",
    source: "S3 section 3.4.1, by other means: see its file",
    senses: "delivery rate, round-trip time, congestion losses",
    sets: "pacing rate and window",
    params: &[],
    status: Status::NotValidated,
};

/// What it shows over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state(
        "rrtp_state",
        "what the sender is at",
        &[
            "startup (looks for the rate)",
            "default (holds the queue short)",
            "competitive (takes its share)",
        ],
    ),
    variables::BANDWIDTH,
    variables::MIN_RTT,
    Variable::new("delivery_rate_bps", "bit/s", "delivery rate of the last round trip"),
    Variable::new(
        "own_window",
        "packets",
        "window of startup or of the competitive mode; the default mode has none",
    ),
];

/// Packets of the first flight: enough for a spacing, few enough for any queue.
const FIRST_FLIGHT: f64 = 4.0;

/// Builds it.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let mut rrtp = Rrtp {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        path: PathModel::default(),
        mode: Mode::Startup,
        window: bounded(environment.initial_window.min(FIRST_FLIGHT), 1.0),
        startup: startup::Startup::default(),
        default_mode: default_mode::DefaultMode::default(),
        competitive: Competitive::default(),
        first_flight: 0.0,
    };
    rrtp.first_flight = rrtp.window;
    rrtp.learn(&environment.hints);
    Box::new(rrtp)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Looks for the rate.
    Startup,
    /// Holds the queue short.
    Default,
    /// Takes its part.
    Competitive,
}

#[derive(Clone, Debug)]
struct Rrtp {
    packet_bits: f64,
    /// Packets of the first flight.
    first_flight: f64,
    path: PathModel,
    mode: Mode,
    /// Packets: the startup's, or the competitive mode's; *default mode* has none of its own.
    window: f64,
    startup: startup::Startup,
    default_mode: default_mode::DefaultMode,
    competitive: Competitive,
}

impl Rrtp {
    fn learn(&mut self, hints: &PathHints) {
        if let Some(rtt) = hints.rtt {
            self.path.set_base(crate::positive(rtt));
        }
        if let Some(loss) = hints.loss {
            self.path.radio_loss = loss.clamp(0.0, 1.0);
        }
        if let Some(rate) = hints.rate {
            let told = bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3);
            self.path.set_bandwidth(told);
            self.begin_default();
        }
    }
}

impl Controller for Rrtp {
    fn on_ack(&mut self, ack: &Ack) {
        let round = self.path.on_ack(ack);
        match self.mode {
            Mode::Startup => self.startup_ack(ack, round),
            Mode::Default => self.default_ack(ack, round),
            Mode::Competitive => self.competitive_ack(ack, round),
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if self.mode == Mode::Startup {
            self.startup_outcome(outcome);
        }
        if outcome.lost {
            self.path.on_loss();
            // No radio link loses as much as a flooded queue, whatever the trip times say.
            if self.path.is_flooded() || (!outcome.radio && self.path.is_queueing()) {
                self.congestion_loss(outcome);
            }
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(_) = event {
            self.path.forget_rates();
            self.mode = Mode::Startup;
            self.startup = startup::Startup::again();
            self.window = FIRST_FLIGHT.min(self.window.max(1.0));
        }
    }

    fn on_path_event(&mut self, _now: Time, event: &PathEvent) {
        match event {
            PathEvent::Hints(hints) => self.learn(hints),
            PathEvent::Dispersion(dispersion) if self.mode == Mode::Startup => {
                self.startup_dispersion(dispersion);
            }
            PathEvent::Dispersion(_) | PathEvent::PacketBytes(_) => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let (window, rate) = match self.mode {
            Mode::Startup => self.startup_limits(),
            Mode::Default => self.default_limits(),
            Mode::Competitive => self.competitive_limits(),
        };
        let bps = rate.map(|r| Rate::from_bps_f64(bounded(r * self.packet_bits, 1.0)));
        SendLimits { pacing_rate: bps, ..SendLimits::unpaced(bounded(window, 1.0)) }
    }

    fn requirements(&self) -> Requirements {
        Requirements::RRTP
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rrtp_state", f64::from(self.mode as u8));
        put("bandwidth_bps", self.path.bandwidth() * self.packet_bits);
        if let Some(base) = self.path.base() {
            put("min_rtt_s", base);
        }
        put("delivery_rate_bps", self.path.round_rate * self.packet_bits);
        put("own_window", self.window);
    }
}

#[cfg(test)]
mod tests;
