//! The list of observations: values that a sender can measure.

use crate::env::step::EpisodeStep;
use narrows_base::SpecError;
use std::ops::RangeInclusive;

/// A number that a policy may see. Each is finite for any step.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The name that users write.
    pub name: &'static str,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Lower bound.
    pub low: f32,
    /// Upper bound.
    pub high: f32,
    /// Meaning in one line.
    pub help: &'static str,
    pub(crate) read: fn(&EpisodeStep) -> f64,
}

const fn entry(
    name: &'static str,
    unit: &'static str,
    bounds: RangeInclusive<f32>,
    help: &'static str,
    read: fn(&EpisodeStep) -> f64,
) -> Observation {
    let low = *bounds.start();
    let high = *bounds.end();
    Observation { name, unit, low, high, help, read }
}

/// Bounds of observations without a natural upper bound.
const POSITIVE: RangeInclusive<f32> = 0.0..=1e9;

/// All observations. Those of ratios mean the same on every link.
pub static OBSERVATIONS: [Observation; 17] = [
    entry(
        "rate_ratio",
        "",
        0.0..=1.0,
        "delivery rate over the highest of the episode so far",
        EpisodeStep::rate_ratio,
    ),
    entry(
        "rtt_ratio",
        "",
        0.0..=1e6,
        "mean RTT over the smallest of the connection",
        EpisodeStep::rtt_ratio,
    ),
    entry(
        "least_rtt_ratio",
        "",
        0.0..=1e6,
        "smallest RTT of the step over the smallest of the connection",
        EpisodeStep::least_rtt_ratio,
    ),
    entry(
        "rtt_gradient",
        "",
        -1e6..=1e6,
        "change of the RTT over the step per time",
        EpisodeStep::rtt_gradient,
    ),
    entry(
        "loss",
        "",
        0.0..=1.0,
        "share of packets found lost among those found lost or delivered",
        EpisodeStep::loss,
    ),
    entry("marks", "", 0.0..=1.0, "share of delivered packets with a CE mark", EpisodeStep::marks),
    entry(
        "delivery_ratio",
        "",
        0.0..=1e6,
        "delivered packets per packet sent; 1 without sent packets",
        EpisodeStep::delivery_ratio,
    ),
    entry(
        "bdp_ratio",
        "",
        0.0..=1e6,
        "packets in flight over highest delivery rate × smallest RTT",
        EpisodeStep::bdp_ratio,
    ),
    entry(
        "in_flight",
        "packets",
        POSITIVE,
        "packets in flight as loss recovery counts them",
        EpisodeStep::in_flight,
    ),
    entry(
        "window",
        "packets",
        POSITIVE,
        "window; with a pacing rate alone, rate × RTT",
        EpisodeStep::window,
    ),
    entry(
        "delivery_rate",
        "Mbit/s",
        POSITIVE,
        "packets acknowledged in the step, as a rate",
        EpisodeStep::delivery_rate,
    ),
    entry(
        "send_rate",
        "Mbit/s",
        POSITIVE,
        "packets sent in the step, as a rate",
        EpisodeStep::send_rate,
    ),
    entry(
        "pacing_rate",
        "Mbit/s",
        POSITIVE,
        "pacing rate; 0 without pacing",
        EpisodeStep::pacing_rate,
    ),
    entry(
        "rtt",
        "s",
        POSITIVE,
        "mean RTT; without an acknowledgement, the last one",
        EpisodeStep::rtt_s,
    ),
    entry("min_rtt", "s", POSITIVE, "smallest RTT of the connection", EpisodeStep::min_rtt_s),
    entry("acks", "", POSITIVE, "acknowledgements in the step", EpisodeStep::acks),
    entry("timeouts", "", POSITIVE, "retransmission timeouts in the step", EpisodeStep::timeouts),
];

impl Observation {
    /// The observation of that name.
    ///
    /// # Errors
    /// An unknown name, with a suggestion.
    pub fn find(name: &str) -> Result<&'static Observation, SpecError> {
        OBSERVATIONS.iter().find(|o| o.name == name).ok_or_else(|| {
            let names: Vec<&str> = OBSERVATIONS.iter().map(|o| o.name).collect();
            SpecError::unknown("observation", name, &names)
        })
    }

    /// Its value in a step.
    pub(crate) fn of(&self, step: &EpisodeStep) -> f32 {
        ((self.read)(step) as f32).clamp(self.low, self.high)
    }
}
