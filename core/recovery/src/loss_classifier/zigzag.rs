//! ZigZag: Cen, Cosman and Voelker, "End-to-end differentiation of congestion and wireless losses", IEEE/ACM ToN 11(5),
//! 2003.
//!
//! A loss is attributed to the radio link if the one-way trip time of the next packet is below a bound. The bound rises
//! with the number of missing packets: the mean less a deviation for one, less half for two, the mean for three, and
//! half a deviation above it for more. Mean and deviation are exponential with gain 1/32 and 1/16. The RRTP thesis does
//! not use it.

use super::{ArrivalWithGap, LossClassifier};
use narrows_base::{Descriptor, Settings, Status};

pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "zigzag",
    summary: "radio, if the trip time is low for the number of packets missing",
    source: "Cen, Cosman and Voelker 2003",
    senses: "relative one-way trip time, its mean and deviation, packets missing",
    sets: "the cause of missing packets",
    params: &[],
    status: Status::NotValidated,
};

const GAIN: f64 = 1.0 / 32.0;

/// Builds the classifier.
pub fn build(_settings: &Settings) -> Box<dyn LossClassifier> {
    Box::new(Zigzag { mean: None, deviation: 0.0 })
}

struct Zigzag {
    /// Seconds.
    mean: Option<f64>,
    deviation: f64,
}

impl LossClassifier for Zigzag {
    fn on_arrival(&mut self, arrival: &ArrivalWithGap) -> bool {
        let rott = arrival.rott();
        let mean = self.mean.map_or(rott, |m| m + GAIN * (rott - m));
        self.mean = Some(mean);
        self.deviation += 2.0 * GAIN * ((rott - mean).abs() - self.deviation);
        let bound = match arrival.missing {
            0 | 1 => -1.0,
            2 => -0.5,
            3 => 0.0,
            _ => 0.5,
        };
        rott < mean + bound * self.deviation
    }
}
