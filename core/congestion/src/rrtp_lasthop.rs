//! RRTP on a dedicated channel: the RRTP thesis, section 3.4.2, "wireless-last-hop networks".
//!
//! The radio channel is the bottleneck and belongs to this connection alone, so fairness does not matter. The sender
//! keeps to the channel's rate, given or measured, and changes it only when the channel's rate changes. The receiver
//! side averages the gaps between packets at departure and at arrival (`rrtp_lasthop/receiver.rs`) and reports each
//! epoch of ten; r is the ratio of the two.
//!
//! - The thesis: if r leaves 0.95 to 1.05, the new rate is the recent one over r, in the direction of the receive rate.
//!   The gaps are those of the same packets, so this *is* the receive rate, and applying it twice does no harm. The
//!   rate falls only if the round trip shows the queue that must be there then. It rises to no more than the sending
//!   rate: packets that a host or radio held back arrive late, and then together, faster than the channel is.
//! - The thesis's sender cannot detect that a channel became faster: below the channel's rate, r is 1. This sender is a
//!   quarter faster for a round trip every sixteenth epoch, and keeps the receive rate of that time. A successful probe
//!   is followed by another, twice as large.
//! - The thesis does not treat the queue that is built before r changes. This sender has a window: a quarter, and four
//!   packets, above the rate times the smallest round trip. If the smallest round trip is not measured again for a
//!   minute, or 240 round trips, it is measured anew. The window falls below the BDP for two round trips, and their
//!   minimum is the new smallest round trip.
//! - Losses by the radio have no effect. Congestion halves the rate, as in the thesis's regular mode, once in a round
//!   trip and for a round trip. Then 95 % of it is restored, the thesis's "instantaneous recovery" (section 4.4.2).
//!   Without that the next probe would have to find the rate again.
//! - The thesis relies on the receiver's loss classifier. On a dedicated channel any queue is the flow's own, so here a
//!   loss counts as congestion only if the round trips show a queue, too, or if a round lost more than any radio. Gaps
//!   between arrivals alone are unreliable if hosts delay packets by a fraction of a gap.
//! - The rate is given (`rate=`), or measured by the spacing of the first packets that were sent together.

mod receiver;

use crate::packet_train::PacketTrain;
use crate::round_trips::RoundTrips;
use crate::{
    Ack, CongestionEvent, Controller, Environment, Feedback, PacketOutcome, PathEvent, PathHints,
    ReceiverSide, Requirements, SendLimits, variables,
};
use crate::{bounded, positive};
use narrows_base::{Descriptor, Rate, Settings, Status, Time, Variable};
use receiver::LasthopReceiver;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp-lasthop",
    summary: "keeps to the rate of a radio channel of its own",
    source: "the RRTP thesis, section 3.4.2; window and probe are additions",
    senses: "gaps of arrivals over gaps of departures",
    sets: "pacing rate, and a window as a bound",
    params: &[],
    status: Status::Differs(
        "holds the channel's rate at any loss, as the thesis; so does a present TCP at 1%; outages cost it more than TCP (docs/validation.md, s3-f4.1, s3-t4.6)",
    ),
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

/// The RRTP thesis: within this distance of 1, r counts as 1.
const DEAD: f64 = 0.05;
/// Epochs between two probes, the first probe's share of the rate, and the largest share after successful ones.
const PROBE_EPOCHS: u32 = 16;
const PROBE: f64 = 0.25;
const MAX_PROBE: f64 = 1.0;
/// The window as a multiple of the BDP, and packets added to it.
const WINDOW: f64 = 1.25;
const MORE: f64 = 4.0;
/// Packets of the first flight. The first rate is measured if all but one of them were sent together.
const FIRST: f64 = 4.0;
/// With so few packets, delays in hosts may look like a fast channel. So the next round trip has at most this many
/// packets, and probes that double.
const JUMP: f64 = 64.0;
/// Rounds without a measurement before probes double.
const FIRST_ROUNDS: u64 = 3;
/// Relative difference from the smallest round trip within which the queue counts as empty.
const NEAR: f64 = 0.02;
/// Delay in hosts, in seconds, that does not count as a queue.
const HOST: f64 = 0.001;
/// Seconds and round trips without an empty queue, after which the window falls to [`DRAIN`] of the BDP for
/// [`DRAIN_ROUNDS`] round trips.
const DOUBT_SECONDS: f64 = 60.0;
const DOUBT_ROUNDS: f64 = 240.0;
const DRAIN: f64 = 0.85;
const DRAIN_ROUNDS: u32 = 2;
/// Share of the rate that is restored a round trip after congestion halved it.
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
        probe: ProbeState::No,
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
    Box::new(LasthopReceiver::default())
}

/// A probe lasts a round trip and an epoch. Its result shows in the next round trip and an epoch later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProbeState {
    No,
    /// Packets are sent faster.
    Sent,
    /// Their arrivals are reported.
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
    probe: ProbeState,
    /// Share of the rate that the next probe adds.
    gain: f64,
    /// When the queue was empty last.
    near: Option<Time>,
    draining: Option<Drain>,
    cut_at: Option<Time>,
    /// The rate before it.
    before: Option<f64>,
    /// Ratio of the gaps of the last report.
    ratio: f64,
}

impl LastHop {
    fn learn(&mut self, hints: &PathHints) {
        if let Some(rate) = hints.rate {
            self.before = None;
            self.rate = Some(bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3));
            self.epochs = 0;
            self.probe = ProbeState::No;
        }
        if let Some(rtt) = hints.rtt {
            self.path.hint_base(positive(rtt));
            self.base = Some(positive(rtt));
        }
        if let Some(loss) = hints.loss {
            self.path.link_loss = loss.clamp(0.0, 1.0);
        }
    }
    /// Sets the first rate: that of packets that were sent together, or a flight per round trip if too few of them
    /// arrived; probes then double it.
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
    /// Takes an RTT sample. If all have been well above the smallest for long, begins to drain the queue.
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
            ProbeState::No if self.epochs >= PROBE_EPOCHS && self.before.is_none() => {
                self.probe = ProbeState::Sent;
                self.epochs = 0;
            }
            ProbeState::No => {}
            // On a slow channel a round trip is shorter than the epoch that must show the probe.
            ProbeState::Sent if self.epochs > 0 => {
                self.probe = ProbeState::Seen;
                self.epochs = 0;
            }
            ProbeState::Sent => {}
            // The channel may be faster than the probe: send another one, twice as large.
            ProbeState::Found => {
                self.gain = (2.0 * self.gain).min(MAX_PROBE);
                self.probe = ProbeState::Sent;
                self.epochs = 0;
            }
            ProbeState::Seen if self.epochs > 1 => {
                self.gain = PROBE;
                self.probe = ProbeState::No;
                self.epochs = 0;
            }
            ProbeState::Seen => {}
        }
    }
    /// At least a packet in four seconds, so that feedback arrives again after an outage.
    fn set(&mut self, rate: f64) {
        self.rate = Some(bounded(rate, 0.25));
    }
}

impl LastHop {
    /// Handles the gaps of an epoch: between arrivals, and between departures.
    fn take_feedback(&mut self, feedback: &Feedback) {
        let (came, left) = (feedback.number(0), feedback.number(1));
        let Some(rate) = self.rate.filter(|_| came > 0.0 && left > 0.0) else { return };
        self.ratio = came / left;
        self.epochs += 1;
        // Packets sent before a reduction only limit the rate that is restored.
        if let Some(before) = &mut self.before {
            if self.ratio > 1.0 + DEAD {
                *before = before.min(1.0 / came);
            }
            return;
        }
        let carried = 1.0 / came.max(left);
        if carried > rate * (1.0 + DEAD) {
            if matches!(self.probe, ProbeState::Sent | ProbeState::Seen) {
                self.probe = ProbeState::Found;
            }
            self.set(carried);
        } else if self.probe == ProbeState::Seen && carried > rate {
            // Not enough for another probe, but it shows the channel's rate.
            self.set(carried);
        } else if self.probe == ProbeState::No && self.ratio > 1.0 + DEAD && self.waits() {
            self.set(1.0 / came);
            self.epochs = 0;
        }
    }
}

impl Controller for LastHop {
    fn on_ack(&mut self, ack: &Ack) {
        let round = self.path.on_ack(ack);
        self.look(ack.now, positive(ack.rtt));
        if let Some(before) = self
            .before
            .filter(|_| self.cut_at.is_some_and(|at| ack.now.since(at) >= ack.estimate.srtt))
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
        (self.probe, self.gain, self.epochs) = (ProbeState::No, PROBE, 0);
        if let Some(rate) = self.rate {
            let before = self.before.get_or_insert(rate);
            // Lost packets of a burst loss took no time on the channel: the receive rate is its rate.
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
                // After an outage the channel may have its old rate: search for it at once, by doubling.
                (self.probe, self.gain, self.epochs) = (ProbeState::No, MAX_PROBE, PROBE_EPOCHS);
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
        let gain = if self.probe == ProbeState::Sent { 1.0 + self.gain } else { 1.0 };
        let window = match self.base {
            Some(base) if self.draining.is_some() => DRAIN * rate * base,
            Some(base) => WINDOW * gain * rate * base + MORE,
            // No feedback yet: a second at the given rate.
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
