//! TEAR, TCP emulation at receivers (Jayaram 2001, chapters 3 and 4; Rhee, Ozdemir and Yi 2000).
//!
//! The receiver emulates TCP's window from the arriving packets (`tear/emulation.rs`). The rate is that window divided
//! by the RTT, averaged over the last epochs (`tear/smoothing.rs`), and the sender paces at it. The share is thus about
//! TCP's, without TCP's sawtooth. Every packet carries the sender's SRTT and RTT variation; reports are sent about once
//! per RTT.
//!
//! Reacts to loss (and ECN) at the receiver; [`tear_wireless`](super::tear_wireless) reacts to delay. The original
//! report and its ns-2 scripts were not available; the source is Jayaram's thesis. Where it is open, contradicts itself
//! or is misprinted:
//!
//! - *T_timeout* is printed as T_interarrival · lastCwnd · 2 · DEV, seconds squared. Read as
//!   T_interarrival · lastCwnd + 2 DEV; at least RTT + 4 DEV, and at least three arrivals, because fewer cannot end a
//!   gap. Its doubling lasts until a round is complete without loss, at most 64-fold. Time without arrivals counts in
//!   SLOW-START, too; the thesis names only CONGESTION-AVOIDANCE.
//! - *FAST-RECOVERY-READY* (section 3.4) appears nowhere else: read as CONGESTION-AVOIDANCE-READY.
//! - "Three acknowledgments (two dupacks)" against "at least two packets": the packet that reveals a gap and two more.
//!   They must lie within lastCwnd of the lost one, so a window below 4 can only time out, as TCP's.
//! - "Half of mincwnd, 2" is max(2, cwnd/2); the first ssthresh, "larger than 2", is 64.
//! - FAST-RECOVERY from SLOW-START would literally not reduce the window. Here it halves the window, sets ssthresh to
//!   it and continues in CONGESTION-AVOIDANCE, as TCP.
//! - A second hole behind one that is filled stays a gap; literally it would be forgotten.
//! - A round is stored with its window at its end. A timeout's round is (window before the reduction, RTO) in the epoch
//!   that it ends. The RTO is SRTT + 4 DEV, at least 1 s (RFC 6298), doubled as T_timeout. An epoch that loss ends
//!   before its first round counts as one round of its window and an RTT: otherwise a time of losses would have no
//!   effect on the average.
//! - Before the first round the rate is the window over the RTT. Before the first RTT sample the sender has one packet
//!   a second in flight, then one per RTT.
//! - Epochs, weights: see `tear/smoothing.rs`. Reports: see `tear/receiver.rs`.
//!
//! Additions of Narrows, without a counterpart in the thesis:
//!
//! - Discounting, in `tear/smoothing.rs`, and less than the mean after a halving, in `tear/yielding.rs`.
//! - A halving is taken back if the missing packet arrives after all. `tear-paper` is without these three.
//! - An ECN mark is a loss event without the gap.
//! - A report raises the rate at most twofold.
//! - The sender halves its rate if no feedback arrives for four RTTs (or two packets, if that is longer) after a
//!   packet, down to one packet in 8 s. It never stops, so it cannot deadlock.
//! - A packet after which the application has no more data is flagged: it does not widen the window, and the time
//!   without arrivals after it is no timeout.

mod emulation;
mod path_delay;
mod reassembly;
mod receiver;
mod sender;
mod sender_state;
mod smoothing;
mod wireless;
mod yielding;

use crate::{Controller, Environment, ReceiverSide, variables};
use emulation::TcpEmulation;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable};
use receiver::TearReceiver;
use sender::TearSender;
use smoothing::EpochHistory;
use wireless::Hysteresis;

/// First slow-start threshold.
pub(crate) const SSTHRESH: Param = Param {
    name: "ssthresh",
    help: "first slow-start threshold",
    kind: ParamKind::Number { unit: Unit::Packets, min: 2.0, max: 1e9, default: 64.0 },
    origin: "Jayaram 2001, section 3.6.1: larger than 2",
};

/// Whether a long epoch discounts the past.
pub(crate) const DISCOUNT: Param = Param {
    name: "discount",
    help: "whether a long open epoch reduces the weight of earlier ones; off is Jayaram 2001",
    kind: ParamKind::Choice(&["on", "off"]),
    origin: "RFC 5348 section 5.5; not in Jayaram 2001",
};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "tear",
    summary: "the receiver emulates TCP's window; the sender paces at its average over epochs",
    source: "Jayaram 2001, chapter 3; Rhee, Ozdemir and Yi 2000",
    senses: "loss at the receiver, ECN marks, RTT",
    sets: "rate: the emulated window over the RTT, weighted over eight epochs",
    params: &[
        SSTHRESH,
        Param {
            name: "weights",
            help: "of the last eight epochs: tear (1/6 … 1/30) or shifts (1/2, 1/4 …)",
            kind: ParamKind::Choice(&["tear", "shifts"]),
            origin: "Jayaram 2001, tables 3.1 and 6.1",
        },
        DISCOUNT,
        Param {
            name: "yield",
            help: "whether it sends below the mean after a halving, until the queue has drained; off is Jayaram 2001",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "an addition; not in Jayaram 2001",
        },
        Param {
            name: "undo",
            help: "whether a halving is taken back if the missing packet was only late; off is Jayaram 2001",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "an addition, as present TCPs; not in Jayaram 2001",
        },
    ],
    status: Status::Differs(
        "on a lossy path as Jayaram 2001, section 4.2; beside TCP in one drop-tail queue below that share",
    ),
};

/// The emulated window.
pub const WINDOW: Variable =
    Variable::new("tear_cwnd", "packets", "window that the receiver emulates");
/// The emulated threshold.
pub const THRESHOLD: Variable =
    Variable::new("tear_ssthresh", "packets", "slow-start threshold that the receiver emulates");
/// The machine's state, in the order in which `receiver.rs` numbers them.
pub const STATE: Variable = Variable::state(
    "tear_state",
    "state of the TCP that the receiver emulates",
    &[
        "slow start ready",
        "slow start",
        "congestion avoidance ready",
        "congestion avoidance",
        "gap",
        "fast recovery",
        "timeout",
    ],
);
/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[variables::RATE, WINDOW, THRESHOLD, STATE];

/// Builds the sender side.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(TearSender::new(environment.packet_bytes))
}

/// Builds the receiver side.
pub fn receiver(settings: &Settings, _environment: &Environment) -> Box<dyn ReceiverSide> {
    let emulation = TcpEmulation::new(settings.number("ssthresh"), history(settings), None);
    let emulation = emulation.undoing(settings.choice("undo") == "on");
    let yields = settings.choice("yield") == "on";
    Box::new(TearReceiver::new(if yields { emulation.yielding() } else { emulation }))
}

/// Builds the receiver side that reacts to delay: with these thresholds of the RTT in seconds, or with adaptive ones.
pub(crate) fn by_delay(settings: &Settings, fixed: Option<(f64, f64)>) -> Box<dyn ReceiverSide> {
    let delay = fixed.map_or_else(Hysteresis::adaptive, |(r1, r2)| Hysteresis::fixed(r1, r2));
    let delay = delay.bounded(settings.choice("bound") == "on");
    let emulation = TcpEmulation::new(settings.number("ssthresh"), history(settings), Some(delay));
    Box::new(TearReceiver::new(emulation))
}

fn history(settings: &Settings) -> EpochHistory {
    let weights = match settings.choice("weights") {
        "shifts" => smoothing::SHIFTS,
        _ => smoothing::TEAR,
    };
    EpochHistory::new(weights, settings.choice("discount") == "on")
}

#[cfg(test)]
#[path = "tear/tests.rs"]
mod tests;
