//! Scores of a case: how badly a protocol does.

use super::case::Case;
use crate::measure::MEASURES;
use narrows_base::Duration;

/// What counts as bad. Every measure is 1 where nothing could be better and grows as things get worse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hunt {
    /// What an omniscient sender would deliver (the link's rate without random losses, an equal share
    /// beside others) over what was delivered.
    Goodput,
    /// Mean round-trip time over that of the empty path.
    Delay,
    /// Bytes sent per byte delivered, what random losses explain taken off.
    Waste,
    /// What a neighbour's flow would have if all had the same, over what it has.
    Harm,
}

impl Hunt {
    /// As on the command line.
    pub const NAMES: [(&'static str, Hunt); 4] = [
        ("goodput", Hunt::Goodput),
        ("delay", Hunt::Delay),
        ("waste", Hunt::Waste),
        ("harm", Hunt::Harm),
    ];

    /// What its figure says, for tables.
    pub fn means(self) -> &'static str {
        match self {
            Hunt::Goodput => "times less goodput than an omniscient sender",
            Hunt::Delay => "times the round trip of the empty path",
            Hunt::Waste => "times the bytes that losses explain",
            Hunt::Harm => "times less for a neighbour than an equal share",
        }
    }

    /// Of one run; beside a rival's run of the same case, over the rival's.
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
                // A share of the run of which nothing arrives is no smaller than a bit.
                let open = case.open_share(duration.as_secs_f64());
                limit * open * passes * fair / goodput.max(1.0)
            }
            Hunt::Delay => {
                let empty = 2.0 * case.delay_s + case.jitter_s.unwrap_or(0.0) / 2.0;
                of("rtt_s_mean").map_or(1.0, |rtt| rtt / empty)
            }
            Hunt::Waste => of("offered_over_delivered").map_or(1.0, |ratio| ratio * passes),
            Hunt::Harm => match of("share") {
                // Nobody to harm.
                None => 0.0,
                Some(share) => (1.0 - fair) / (1.0 - share).max(1e-3),
            },
        }
    }
}
