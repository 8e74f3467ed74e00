//! Distance of an estimate from the true properties of the links.

use crate::probe::{PathEstimate, WayEstimate};
use crate::statistics::ConfidenceInterval;
use narrows_link::{LinkConfig, QueueLimit};

/// With this many counted packets, the loss rate must be within a fifth of the truth, unless losses come in bursts.
pub const ENOUGH: u32 = 10_000;

/// One estimated value beside the truth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CheckedEstimate {
    /// The quantity: `rate`, `rtt`, `loss`, `policer`, `buffer`.
    pub what: &'static str,
    /// The true value.
    pub truth: f64,
    /// As it was estimated.
    pub found: ConfidenceInterval,
    /// Whether the estimate is within the required distance of the truth. Always true for a value that is estimated
    /// only as an interval.
    pub near: bool,
    /// Whether the truth lies in the interval.
    pub held: bool,
}

/// Compares the estimates with the links. Rates in bits per second, times in seconds, a buffer in packets; `loss` is
/// the links' mean loss rate in each direction.
pub fn judge(
    [up, down]: [&LinkConfig; 2],
    loss: [f64; 2],
    estimate: &PathEstimate,
) -> Vec<CheckedEstimate> {
    let rtt = up.delay.as_secs_f64() + down.delay.as_secs_f64();
    let mut out = Vec::new();
    let found = estimate.base_rtt;
    let near = (found.value - rtt).abs() <= (0.02 * rtt).max(0.001);
    out.push(CheckedEstimate { what: "rtt", truth: rtt, found, near, held: found.holds(rtt) });
    judge_way(&mut out, up, loss[0], &estimate.up);
    judge_way(&mut out, down, loss[1], &estimate.down);
    out
}

fn judge_way(out: &mut Vec<CheckedEstimate>, link: &LinkConfig, lost: f64, way: &WayEstimate) {
    let within = |found: &ConfidenceInterval, truth: f64, share: f64| {
        (found.value / truth - 1.0).abs() <= share
    };
    let rate = link.rate.as_bps() as f64;
    let near = within(&way.rate, rate, 0.05);
    out.push(CheckedEstimate {
        what: "rate",
        truth: rate,
        found: way.rate,
        near,
        held: way.rate.holds(rate),
    });
    if let Some(loss) = &way.loss {
        let truth = lost;
        let off = (loss.share.value - truth).abs();
        // Losses in bursts count as fewer independent ones.
        let few = loss.packets < ENOUGH || loss.burst.is_some();
        let near = few || off <= (0.2 * truth).max(0.002);
        let held = loss.share.holds(truth);
        out.push(CheckedEstimate { what: "loss", truth, found: loss.share, near, held });
    }
    match (&link.impairments.policer, &way.policer) {
        (Some(truth), found) => {
            let truth = truth.rate.as_bps() as f64;
            let found = found.map_or(ConfidenceInterval::exactly(0.0), |p| p.rate);
            let near = within(&found, truth, 0.05);
            out.push(CheckedEstimate {
                what: "policer",
                truth,
                found,
                near,
                held: found.holds(truth),
            });
        }
        (None, Some(wrong)) => {
            let found = wrong.rate;
            out.push(CheckedEstimate {
                what: "policer",
                truth: 0.0,
                found,
                near: false,
                held: false,
            });
        }
        (None, None) => {}
    }
    if let (Some(buffer), QueueLimit::Packets(truth) | QueueLimit::Either { packets: truth, .. }) =
        (&way.buffer, link.queue.limit)
    {
        let truth = truth as f64;
        let found = buffer.packets;
        let managed = link.queue.aqm.as_ref().is_some_and(|aqm| aqm.name != "droptail");
        let near = if found.high.is_finite() && !managed {
            within(&found, truth, 0.2)
        } else {
            // A lower bound; one packet is in service.
            found.low <= truth + 1.0
        };
        let held = found.low <= truth + 1.0 && truth <= found.high;
        let near = near && buffer.managed == managed;
        out.push(CheckedEstimate { what: "buffer", truth, found, near, held });
    }
}
