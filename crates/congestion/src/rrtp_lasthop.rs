//! RRTP on a dedicated channel: S3 section 3.4.2, "wireless-last-hop networks".
//!
//! The radio channel is the bottleneck and belongs to this connection alone, so nobody has to be fair:
//! the sender keeps to the channel's rate, told or measured, and changes it only when the channel's
//! rate changes. The receiver side averages the gaps at which packets left and came
//! (`rrtp_lasthop/receiver.rs`) and reports each epoch of ten; r is the ratio of the two.
//!
//! - S3: where r leaves 0.95 to 1.05, the new rate is the recent one over r, in the direction of the
//!   receive rate. The gaps are those of the same packets, so that this *is* the receive rate and applying
//!   it twice does no harm. Down, only if the round trip shows the queue that must be there then; up, no
//!   more than left: packets that some host or radio held back come late, and then together, faster
//!   than the channel is.
//! - S3's sender cannot find that a channel became faster: as long as it sends less than fits, r is 1.
//!   Ours sends a quarter faster for a round trip every sixteenth epoch, and keeps what arrives at that
//!   rate. A probe that found something is followed by another, twice as far.
//! - S3 says nothing of the queue that was built before r told. Ours has a window: a quarter, and four
//!   packets, above what the rate and the smallest round trip need.
//!   A smallest round trip that was not seen again for a minute, or 240 of them, is asked for: the window
//!   falls below the product for two round trips, and what they take at least is the smallest from then on.
//! - Losses by the radio change nothing. Congestion halves the rate, as in S3's regular mode, once in a
//!   round trip and for a round trip: then 95 % of it come back, S3's "instantaneous recovery"
//!   (section 4.4.2). Without that the next probe would have to find the rate anew.
//! - S3 believes the receiver's loss classifier. On the channel of its own whatever queue there is is ours,
//!   so here a loss is congestion only if a queue shows in the round trips, too, or if a round lost
//!   more than any radio. Gaps between arrivals alone convict innocents wherever hosts hold packets
//!   back for a fraction of a gap.
//! - A rate is told (`rate=`), or taken from the spacing of the first packets that left together.

mod receiver;

use crate::packet_train::PacketTrain;
use crate::round_trips::RoundTrips;
use crate::{
    Ack, CongestionEvent, Controller, Environment, Feedback, PacketOutcome, PathEvent, PathHints,
    ReceiverSide, Requirements, SendLimits, variables,
};
use crate::{bounded, positive};
use narrows_base::{Descriptor, Rate, Settings, Status, Time, Variable};
use receiver::Receiver;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp-lasthop",
    summary: "keeps to the rate of a radio channel of its own (S3)",
    source: "S3 section 3.4.2; window and probe are ours",
    senses: "gaps of arrivals over gaps of departures",
    sets: "pacing rate, and a window as a bound",
    params: &[],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::RATE,
    variables::SPACING_RATIO,
    Variable::state(
        "probe_state",
        "where a probe for more bandwidth stands",
        &["none", "sent", "arriving", "successful"],
    ),
    Variable::new("arrival_spacing_s", "s", "mean time between arrivals, over the last epoch"),
    Variable::new(
        "arrival_spacing_long_s",
        "s",
        "mean time between arrivals, over the last five epochs",
    ),
];

/// S3: within this distance of 1, r is 1.
const DEAD: f64 = 0.05;
/// Epochs between two probes, what the first adds, and the most that one after successes adds.
const PROBE_EPOCHS: u32 = 16;
const PROBE: f64 = 0.25;
const MAX_PROBE: f64 = 1.0;
/// The window over the product, and packets more.
const WINDOW: f64 = 1.25;
const MORE: f64 = 4.0;
/// Packets of the first flight; so many less one that left together tell a first rate.
const FIRST: f64 = 4.0;
/// So few packets can mistake a host's haste for a fast channel: no more than this in the next round
/// trip, and probes that double.
const JUMP: f64 = 64.0;
/// Rounds that may pass until they do.
const FIRST_ROUNDS: u64 = 3;
/// Within this share of the smallest, a round trip is one without a queue.
const NEAR: f64 = 0.02;
/// … and hosts delay packets by so many seconds.
const HOST: f64 = 0.001;
/// Seconds and round trips without one, until the window falls to this part of the product for so many
/// round trips.
const DOUBT_SECONDS: f64 = 60.0;
const DOUBT_ROUNDS: f64 = 240.0;
const DRAIN: f64 = 0.85;
const DRAIN_ROUNDS: u32 = 2;
/// What comes back of the rate a round trip after congestion halved it.
const BACK: f64 = 0.95;

/// Builds the sender side.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let mut lasthop = LastHop {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        rate: None,
        path: RoundTrips::default(),
        flight: PacketTrain::default(),
        out: 0,
        epochs: 0,
        probe: Probe::No,
        gain: PROBE,
        base: None,
        near: None,
        draining: None,
        cut_at: None,
        before: None,
        ratio: 1.0,
    };
    lasthop.learn(&environment.hints);
    Box::new(lasthop)
}

/// Builds the receiver side.
pub fn receiver(_settings: &Settings, _environment: &Environment) -> Box<dyn ReceiverSide> {
    Box::new(Receiver::default())
}

/// A probe lasts a round trip, and an epoch, and is seen in the next, and an epoch longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Probe {
    No,
    /// Packets leave faster.
    Sent,
    /// They arrive.
    Seen,
    Found,
}

/// The queue is being emptied: round trips since, and the smallest of them in seconds.
#[derive(Clone, Debug)]
struct Drain {
    rounds: u32,
    least: f64,
}

#[derive(Clone, Debug)]
struct LastHop {
    packet_bits: f64,
    /// Packets per second.
    rate: Option<f64>,
    path: RoundTrips,
    /// Smallest RTT, seconds.
    base: Option<f64>,
    /// The first flights, and how many packets of one are out.
    flight: PacketTrain,
    out: u64,
    /// Since the last probe.
    epochs: u32,
    probe: Probe,
    /// What the next one adds.
    gain: f64,
    /// When the queue was empty last.
    near: Option<Time>,
    draining: Option<Drain>,
    cut_at: Option<Time>,
    /// The rate before it.
    before: Option<f64>,
    /// The last r.
    ratio: f64,
}

impl LastHop {
    fn learn(&mut self, hints: &PathHints) {
        if let Some(rate) = hints.rate {
            self.before = None;
            self.rate = Some(bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3));
            self.epochs = 0;
            self.probe = Probe::No;
        }
        if let Some(rtt) = hints.rtt {
            self.path.hint_base(positive(rtt));
            self.base = Some(positive(rtt));
        }
        if let Some(loss) = hints.loss {
            self.path.link_loss = loss.clamp(0.0, 1.0);
        }
    }
    /// The first rate: of packets that left together or, where too few of them came, a flight per round
    /// trip, which probes then double.
    fn begin(&mut self) {
        let Some(base) = self.base else { return };
        if let Some(rate) = self.flight.rate(FIRST as usize - 1) {
            let rate = rate / self.packet_bits;
            if rate * base > JUMP {
                self.gain = MAX_PROBE;
            }
            self.set(rate.min(JUMP / base));
        } else if self.path.rounds >= FIRST_ROUNDS {
            self.gain = MAX_PROBE;
            self.set(FIRST / base);
        } else {
            return;
        }
        self.epochs = PROBE_EPOCHS;
    }
    /// Takes a round trip in; one of an empty queue is looked for.
    fn look(&mut self, now: Time, rtt: f64) {
        let base = self.base.map_or(rtt, |b| b.min(rtt));
        self.base = Some(base);
        let near = *self.near.get_or_insert(now);
        if rtt <= base * (1.0 + NEAR) {
            self.near = Some(now);
            self.draining = None;
        } else if let Some(drain) = &mut self.draining {
            drain.least = drain.least.min(rtt);
        } else if now.since(near).as_secs_f64() > DOUBT_SECONDS.max(DOUBT_ROUNDS * rtt) {
            self.draining = Some(Drain { rounds: 0, least: rtt });
        }
    }
    /// Whether the newest round trip shows a queue that is more than a host's delay.
    fn waits(&self) -> bool {
        self.base.is_none_or(|base| self.path.rtt > base * (1.0 + NEAR) + HOST)
    }
    /// A round trip has passed.
    fn next_round(&mut self) {
        if let Some(drain) = &mut self.draining {
            drain.rounds += 1;
            if drain.rounds > DRAIN_ROUNDS {
                self.base = Some(drain.least);
                self.draining = None;
            }
        }
        match self.probe {
            Probe::No if self.epochs >= PROBE_EPOCHS && self.before.is_none() => {
                self.probe = Probe::Sent;
                self.epochs = 0;
            }
            Probe::No => {}
            // On a slow channel a round trip is less than the epoch whose mean must show it.
            Probe::Sent if self.epochs > 0 => {
                self.probe = Probe::Seen;
                self.epochs = 0;
            }
            Probe::Sent => {}
            // What the probe found may be all that it sent: one twice as far.
            Probe::Found => {
                self.gain = (2.0 * self.gain).min(MAX_PROBE);
                self.probe = Probe::Sent;
                self.epochs = 0;
            }
            Probe::Seen if self.epochs > 1 => {
                self.gain = PROBE;
                self.probe = Probe::No;
                self.epochs = 0;
            }
            Probe::Seen => {}
        }
    }
    /// At least a packet in each four seconds, or another could not be heard of within an outage.
    fn set(&mut self, rate: f64) {
        self.rate = Some(bounded(rate, 0.25));
    }
}

impl LastHop {
    /// What the receiver says of an epoch: how far apart packets came, and left.
    fn take_feedback(&mut self, feedback: &Feedback) {
        let (came, left) = (feedback.number(0), feedback.number(1));
        let Some(rate) = self.rate.filter(|_| came > 0.0 && left > 0.0) else { return };
        self.ratio = came / left;
        self.epochs += 1;
        // What left before a cut says nothing of the rate since, but what to come back to.
        if let Some(before) = &mut self.before {
            if self.ratio > 1.0 + DEAD {
                *before = before.min(1.0 / came);
            }
            return;
        }
        let carried = 1.0 / came.max(left);
        if carried > rate * (1.0 + DEAD) {
            if matches!(self.probe, Probe::Sent | Probe::Seen) {
                self.probe = Probe::Found;
            }
            self.set(carried);
        } else if self.probe == Probe::Seen && carried > rate {
            // Too little for another probe, but what the channel carries is seen now.
            self.set(carried);
        } else if self.probe == Probe::No && self.ratio > 1.0 + DEAD && self.waits() {
            self.set(1.0 / came);
            self.epochs = 0;
        }
    }
}

impl Controller for LastHop {
    fn on_ack(&mut self, ack: &Ack) {
        let round = self.path.on_ack(ack);
        self.look(ack.now, positive(ack.rtt));
        if let Some(before) =
            self.before.filter(|_| self.cut_at.is_some_and(|at| ack.now.since(at) >= ack.srtt))
        {
            self.before = None;
            self.set(BACK * before);
        }
        self.out = ack.outstanding;
        if self.rate.is_none() {
            self.begin();
        } else if round {
            self.next_round();
        }
        if !ack.feedback.is_empty() {
            self.take_feedback(&ack.feedback);
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if self.rate.is_none() {
            self.flight.on_packet_outcome(outcome);
        }
        if !outcome.lost {
            return;
        }
        self.path.on_loss();
        let guilty = self.path.is_flooded() || (!outcome.radio && self.path.shows_queue());
        if !guilty || self.cut_at.is_some_and(|at| outcome.sent <= at) {
            return;
        }
        self.cut_at = Some(outcome.now);
        (self.probe, self.gain, self.epochs) = (Probe::No, PROBE, 0);
        if let Some(rate) = self.rate {
            let before = self.before.get_or_insert(rate);
            // The lost of a flood took no time on the channel: what arrived is what it carries.
            if self.path.is_flooded() {
                *before = before.min(self.path.delivered_rate());
            }
            let before = *before;
            self.set((rate / 2.0).min(before));
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(restart) = event {
            self.before = None;
            if let Some(rate) = self.rate {
                self.set((rate / 2.0).min(FIRST / positive(restart.srtt)));
                // The channel was away and may be what it was: looked for at once, by doubling.
                (self.probe, self.gain, self.epochs) = (Probe::No, MAX_PROBE, PROBE_EPOCHS);
            }
        }
    }

    fn on_path_event(&mut self, _now: Time, event: &PathEvent) {
        if let PathEvent::Hints(hints) = event {
            self.learn(hints);
        }
    }

    fn send_limits(&self) -> SendLimits {
        // A second flight waits until the first is heard of, or it would not leave together.
        let first = if self.out > 1 { 1.0 } else { FIRST };
        let Some(rate) = self.rate else { return SendLimits::unpaced(first) };
        let gain = if self.probe == Probe::Sent { 1.0 + self.gain } else { 1.0 };
        let window = match self.base {
            Some(base) if self.draining.is_some() => DRAIN * rate * base,
            Some(base) => WINDOW * gain * rate * base + MORE,
            // Nothing was heard yet: a second at the rate that was told.
            None => rate + MORE,
        };
        let bps = bounded(rate * gain * self.packet_bits, 1.0);
        SendLimits::paced(bounded(window, 1.0), Rate::from_bps_f64(bps))
    }

    fn requirements(&self) -> Requirements {
        Requirements::RRTP
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if let Some(rate) = self.rate {
            put("rate_bps", rate * self.packet_bits);
        }
        put("spacing_ratio", self.ratio);
        put("probe_state", f64::from(self.probe as u8));
    }
}

#[cfg(test)]
#[path = "rrtp_lasthop/tests.rs"]
mod tests;
