//! The Spike rule: Tobe, Tamura, Molano, Ghosh and Tokuda, LCN 2000, with the thresholds of Cen, Cosman and Voelker
//! (IEEE/ACM ToN 11(5), 2003); section 3.6 of the RRTP thesis.
//!
//! A queue that drops is long, so the one-way trip time is high when congestion causes losses. A spike begins when the
//! trip time exceeds the middle between the smallest and the largest seen, and ends when it falls below a third. Losses
//! in a spike are attributed to congestion, others to the radio link. The RRTP thesis does not print its thresholds.

use super::{ArrivalWithGap, LossClassifier};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status};

pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "spike",
    summary: "congestion, while the one-way trip time is high",
    source: "Tobe et al. 2000; Cen, Cosman and Voelker 2003; the RRTP thesis, section 3.6",
    senses: "relative one-way trip time",
    sets: "the cause of missing packets",
    params: &[
        Param {
            name: "begin",
            help: "a spike begins at this part of the way from the least to the most seen",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 1.0, default: 0.5 },
            origin: "Cen, Cosman and Voelker 2003",
        },
        Param {
            name: "end",
            help: "… and ends below this part",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 1.0, default: 1.0 / 3.0 },
            origin: "Cen, Cosman and Voelker 2003",
        },
    ],
    status: Status::NotValidated,
};

/// Builds the classifier.
pub fn build(settings: &Settings) -> Box<dyn LossClassifier> {
    let begin = settings.number("begin");
    let end = settings.number("end");
    Box::new(Spike { begin, end, least: f64::INFINITY, most: f64::NEG_INFINITY, high: false })
}

struct Spike {
    begin: f64,
    end: f64,
    /// Smallest and largest one-way trip time, seconds.
    least: f64,
    most: f64,
    high: bool,
}

impl LossClassifier for Spike {
    fn on_arrival(&mut self, arrival: &ArrivalWithGap) -> bool {
        let rott = arrival.rott();
        self.least = self.least.min(rott);
        self.most = self.most.max(rott);
        let at = |part: f64| self.least + part * (self.most - self.least);
        self.high = if self.high { rott >= at(self.end) } else { rott > at(self.begin) };
        !self.high
    }
}
