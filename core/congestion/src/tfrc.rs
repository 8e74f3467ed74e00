//! TFRC, TCP-friendly rate control: RFC 5348, and as in ns-2.35.
//!
//! Measures loss events and their intervals at the receiver, and the round-trip time. Controls the
//! rate: the one that TCP would have at that loss event rate (the throughput equation), but at most
//! twice the receive rate; before the first loss event it doubles per round trip.
//!
//! The segment size s is the whole packet on the wire, as rates are. Choices that the RFC leaves open:
//!
//! - Oscillation prevention (section 4.5, optional) is on, because without it few flows on a drop-tail queue oscillate.
//! - A packet that arrives after it was counted as lost fills the hole, and from then on missing packets get the time
//!   of RFC 8985 (section 5.1 leaves both open).
//! - X_target of the first loss interval (section 6.3.1) is the largest of the present receive rate and those of the
//!   last two reports, and at least s/2R.
//! - Whether a report's interval was data-limited (section 8.2.1) is determined up to its echoed time, less the
//!   receiver's delay.
//! - t_RTO is 4R; `min-rto=1s` is the RFC's other choice.
//!
//! Preset `ns2` (automatic in that preset) follows ns-2.35's `Agent/TFRC` and `TFRCSink` at their defaults: see
//! `tfrc/ns2.rs` and `tfrc/receiver.rs`. Left out: variants that are off by default there (`voip_`, `ShortIntervals_`,
//! `maxHeavyRounds_`, `overhead_`), and effects of lost or duplicate packets on counters that no code reads.

mod history;
mod limited;
mod losses;
mod ns2;
mod options;
mod received;
mod receiver;
mod sender;

use crate::{Controller, Environment, ReceiverSide, variables};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable};
use options::Options;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "tfrc",
    summary: "the rate that TCP would have at the loss event rate that the receiver measures",
    source: "RFC 5348; preset ns2 as in ns-2.35 Agent/TFRC",
    senses: "loss events at the receiver, RTT, receive rate, ECN marks",
    sets: "rate: the TCP throughput equation, at most twice the receive rate",
    params: &[
        Param {
            name: "preset",
            help: "which TFRC: the RFC's or ns-2's; auto follows the run's preset",
            kind: ParamKind::Choice(&["auto", "rfc", "ns2"]),
            origin: "RFC 5348; ns-2.35",
        },
        Param {
            name: "intervals",
            help: "loss intervals n that are averaged",
            kind: ParamKind::Number { unit: Unit::None, min: 2.0, max: 64.0, default: 8.0 },
            origin: "RFC 5348 section 5.4; ns-2 NumSamples_",
        },
        Param {
            name: "discount",
            help: "a long loss-free interval discounts the older ones",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "RFC 5348 section 5.5; ns-2 discount_",
        },
        Param {
            name: "oscillation",
            help: "the rate falls while the RTT is above its mean",
            kind: ParamKind::Choice(&["on", "off"]),
            origin: "RFC 5348 section 4.5, optional there; ns-2 ca_ 1",
        },
        Param {
            name: "min-rto",
            help: "t_RTO of the equation is at least this",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 60.0, default: 0.0 },
            origin: "RFC 5348 section 4.3: 0, or max(4R, 1 s); ns-2 minrto_ 0",
        },
        Param {
            name: "b",
            help: "packets that one ACK of the imagined TCP acknowledges",
            kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 2.0, default: 1.0 },
            origin: "RFC 5348 section 3.1; ns-2 bval_",
        },
        Param {
            name: "q",
            help: "share of the old RTT kept at a new sample",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 0.999, default: 0.9 },
            origin: "RFC 5348 section 4.3; 0.95 in preset ns2 (df_)",
        },
        Param {
            name: "reorder",
            help: "later packets that must come before a missing one is lost (NDUPACK)",
            kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 64.0, default: 3.0 },
            origin: "RFC 5348 section 5.1; 1 in preset ns2 (numPkts_)",
        },
        Param {
            name: "conservative",
            help: "the limit is the receive rate after a loss, 1.5 times it otherwise (ns2 only)",
            kind: ParamKind::Choice(&["off", "on"]),
            origin: "ns-2 conservative_, scmult_ 1.5",
        },
    ],
    status: Status::Validated(
        "ns-2.35 in preset ns2: TCP's share on six DSL links within 0.05 (docs/validation.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::RATE,
    variables::LOSS_EVENT_RATE,
    variables::SMOOTHED_RTT,
    Variable::new("receive_rate_bps", "bit/s", "rate that the receiver reported (X_recv)"),
    Variable::new(
        "receiver_loss_event_rate",
        "fraction",
        "loss events per packet as the receiver has them now",
    ),
    variables::OPEN_LOSS_INTERVAL,
];

/// Builds the sender side.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let options = Options::read(settings, environment);
    if options.ns2 {
        Box::new(ns2::Ns2TfrcSender::new(&options))
    } else {
        Box::new(sender::TfrcSender::new(&options))
    }
}

/// Builds the receiver side.
pub fn build_receiver(settings: &Settings, environment: &Environment) -> Box<dyn ReceiverSide> {
    Box::new(receiver::TfrcReceiver::new(&Options::read(settings, environment)))
}

#[cfg(test)]
#[path = "tfrc_tests.rs"]
mod tests;
