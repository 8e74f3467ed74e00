//! Biaz's rule: Biaz and Vaidya, ASSET 1999; section 3.6 of the RRTP thesis.
//!
//! If the radio link is the bottleneck and the last hop, packets arrive evenly spaced. Packets lost on it still take
//! their transmission time: after n of them the next packet arrives n + 1 spacings after the previous one. A drop by a
//! queue leaves no such gap, or a much longer one. A loss is attributed to the radio link if `(n + sigma) Tmin <= Tsep
//! < (n + phi) Tmin`, with Tmin the smallest spacing seen.
//!
//! The thesis prints both comparisons as strict. An exactly even arrival with sigma = 1 lies on the lower bound. The
//! original paper includes it, and so does this code, with a tolerance of a thousandth for clocks.

use super::{ArrivalWithGap, LossClassifier};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Time};

pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "biaz",
    summary: "radio, if the gap lasts as long as the missing packets would have taken",
    source: "Biaz and Vaidya 1999; the RRTP thesis, section 3.6",
    senses: "times between arrivals",
    sets: "the cause of missing packets",
    params: &[
        Param {
            name: "sigma",
            help: "shortest gap of a radio loss, in spacings above the number missing",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 1.0 },
            origin: "the RRTP thesis, table 3.2",
        },
        Param {
            name: "phi",
            help: "longest gap of a radio loss, in spacings above the number missing",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 2.0 },
            origin: "the RRTP thesis, table 3.2",
        },
    ],
    status: Status::NotValidated,
};

/// Relative tolerance at the lower bound.
const SLACK: f64 = 1e-3;

/// Builds the classifier.
pub fn build(settings: &Settings) -> Box<dyn LossClassifier> {
    let sigma = settings.number("sigma");
    let phi = settings.number("phi");
    Box::new(Biaz { sigma, phi, last: None, least: f64::INFINITY })
}

struct Biaz {
    sigma: f64,
    phi: f64,
    last: Option<Time>,
    /// Smallest spacing, seconds.
    least: f64,
}

impl LossClassifier for Biaz {
    fn on_arrival(&mut self, arrival: &ArrivalWithGap) -> bool {
        let Some(last) = self.last.replace(arrival.now) else { return false };
        let gap = arrival.now.since(last).as_secs_f64();
        if arrival.missing == 0 {
            // Packets that arrive at one moment left a buffer together: no spacing of the link.
            if gap > 0.0 {
                self.least = self.least.min(gap);
            }
            return false;
        }
        let n = arrival.missing as f64;
        let low = (n + self.sigma) * self.least * (1.0 - SLACK);
        (low..(n + self.phi) * self.least).contains(&gap)
    }
}
