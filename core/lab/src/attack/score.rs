//! Badness of a case for a protocol.

use super::case::Case;
use crate::measure::MEASURES;
use narrows_base::Duration;

/// The measure that the search maximizes. It is 1 at the best possible value and grows as it gets worse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hunt {
    /// Goodput of an omniscient sender (the link's rate without random losses, an equal share with competitors) over
    /// the goodput.
    Goodput,
    /// Mean RTT over that of the empty path.
    Delay,
    /// Bytes sent per byte delivered, corrected for random losses.
    Waste,
    /// Goodput of a competitor's flow with equal shares, over its goodput.
    Harm,
}

impl Hunt {
    /// Names on the command line.
    pub const NAMES: [(&'static str, Hunt); 4] = [
        ("goodput", Hunt::Goodput),
        ("delay", Hunt::Delay),
        ("waste", Hunt::Waste),
        ("harm", Hunt::Harm),
    ];

    /// The meaning of its figure, for tables.
    pub fn means(self) -> &'static str {
        match self {
            Hunt::Goodput => "times less goodput than an omniscient sender",
            Hunt::Delay => "times the round trip of the empty path",
            Hunt::Waste => "times the bytes that losses explain",
            Hunt::Harm => "times less for a neighbour than an equal share",
        }
    }

    /// Of one run; with a rival's run of the same case, relative to the rival's.
    pub fn badness(
        self,
        case: &Case,
        duration: Duration,
        own: &[f64],
        rival: Option<&[f64]>,
    ) -> f64 {
        let own = self.alone(case, duration, own);
        match rival {
            Some(rival) => own / self.alone(case, duration, rival).max(1e-9),
            None => own,
        }
    }

    fn alone(self, case: &Case, duration: Duration, measures: &[f64]) -> f64 {
        let of = |name: &str| {
            let at = MEASURES.iter().position(|m| m.name == name);
            at.and_then(|i| measures.get(i)).copied().filter(|x| x.is_finite())
        };
        let others = case.against.map_or(0, |(_, flows)| flows);
        let fair = case.flows as f64 / (case.flows + others) as f64;
        let passes = 1.0 - case.loss.map_or(0.0, |(p, _)| p);
        let goodput = of("goodput_bps").unwrap_or(0.0);
        match self {
            Hunt::Goodput => {
                let limit = of("goodput_limit_bps").unwrap_or(case.rate_bps);
                // The goodput counts as at least 1 bit/s.
                let open = case.open_share(duration.as_secs_f64());
                limit * open * passes * fair / goodput.max(1.0)
            }
            Hunt::Delay => {
                let empty = 2.0 * case.delay_s + case.jitter_s.unwrap_or(0.0) / 2.0;
                of("rtt_s_mean").map_or(1.0, |rtt| rtt / empty)
            }
            Hunt::Waste => of("offered_over_delivered").map_or(1.0, |ratio| ratio * passes),
            Hunt::Harm => match of("share") {
                // There is no competitor.
                None => 0.0,
                Some(share) => (1.0 - fair) / (1.0 - share).max(1e-3),
            },
        }
    }
}
