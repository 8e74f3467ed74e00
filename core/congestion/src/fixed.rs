//! A fixed rate: the unresponsive baseline to compare with.
//!
//! Ignores loss and marks, like a constant-bit-rate application over UDP.

use crate::{Ack, Controller, Environment, Requirements, SendLimits};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Rate, Settings, Status};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "fixed",
    summary: "a fixed rate without feedback: constant bit rate over UDP",
    source: "ns-2 Application/Traffic/CBR over Agent/UDP",
    senses: "nothing",
    sets: "rate: the one that is given",
    params: &[Param {
        name: "rate",
        help: "bits on the wire per second",
        kind: ParamKind::Number {
            unit: Unit::BitsPerSecond,
            min: 1.0,
            max: 1e13,
            default: 448_000.0,
        },
        origin: "ns-2 CBR rate_ 448 kbit/s",
    }],
    status: Status::Validated("its rate is the one given, by test"),
};

/// Builds the controller.
pub fn build(settings: &Settings, _environment: &Environment) -> Box<dyn Controller> {
    Box::new(Fixed { rate: Rate::from_bps_f64(settings.number("rate")) })
}

#[derive(Clone, Debug)]
struct Fixed {
    rate: Rate,
}

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::paced(f64::INFINITY, self.rate)
    }
    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }
}
