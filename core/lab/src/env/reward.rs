//! The list of terms of a reward, which is their weighted sum.

use crate::env::step::EpisodeStep;
use narrows_base::{SpecError, math};

/// A term of a reward. Unlike an observation, it may use properties of the link.
#[derive(Clone, Copy, Debug)]
pub struct Reward {
    /// The name that users write.
    pub name: &'static str,
    /// Meaning in one line.
    pub help: &'static str,
    pub(crate) read: fn(&EpisodeStep) -> f64,
}

/// Smallest share of the capacity; smaller ones have the same logarithm.
const LEAST: f64 = 1e-3;

/// All terms.
pub static REWARDS: [Reward; 7] = [
    Reward {
        name: "throughput",
        help: "delivery rate over the link's capacity",
        read: EpisodeStep::throughput,
    },
    Reward {
        name: "log_throughput",
        help: "natural logarithm of throughput, which is taken to be at least 0.001",
        read: |s| math::ln(s.throughput().max(LEAST)),
    },
    Reward {
        name: "delay",
        help: "mean RTT beyond the path's own, in base RTTs",
        read: EpisodeStep::queueing_delay,
    },
    Reward {
        name: "log_delay",
        help: "natural logarithm of 1 + delay",
        read: |s| math::ln(1.0 + s.queueing_delay()),
    },
    Reward {
        name: "loss",
        help: "share of packets found lost among those found lost or delivered",
        read: EpisodeStep::loss,
    },
    Reward {
        name: "timeouts",
        help: "retransmission timeouts in the step",
        read: EpisodeStep::timeouts,
    },
    Reward {
        name: "change",
        help: "how far the window went: 1 if it was doubled or halved",
        read: EpisodeStep::change,
    },
];

impl Reward {
    /// The term of that name.
    ///
    /// # Errors
    /// An unknown name, with a suggestion.
    pub fn find(name: &str) -> Result<&'static Reward, SpecError> {
        REWARDS.iter().find(|r| r.name == name).ok_or_else(|| {
            let names: Vec<&str> = REWARDS.iter().map(|r| r.name).collect();
            SpecError::unknown("reward", name, &names)
        })
    }
}
