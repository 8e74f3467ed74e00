//! The cause if no protocol delivered any data.

use super::aim::mean;
use super::{percent, rate, seconds};
use crate::outcome::{Estimate, Outcome};

/// A run in which fewer packets of full size than this fit on the link is too short for a transfer: handshake, first
/// window, its acknowledgement.
const FEWEST_PACKETS: f64 = 4.0;
/// A share of lost packets from which no handshake completes.
const NEARLY_ALL: f64 = 0.9;

/// A sentence with the cause; `packet` is the size of a data packet in bytes.
pub fn why(outcome: &Outcome, packet: u32) -> String {
    let Outcome { capacity_bps, duration_s, .. } = *outcome;
    let bits = 8.0 * f64::from(packet);
    let loss = |name| outcome.results.iter().map(|r| mean(r, name)).fold(0.0, f64::max);
    let queue = loss("queue_loss_rate");
    let random = loss("random_loss_rate");
    if capacity_bps <= 0.0 {
        return format!("The link's rate is 0 for the whole run of {duration_s} s.");
    }
    if capacity_bps * duration_s < FEWEST_PACKETS * bits {
        return format!(
            "A packet of {packet} bytes takes {} at {}, and the run lasts {duration_s} s: choose a \
             longer --duration or a smaller --packet.",
            seconds(exact(bits / capacity_bps)),
            rate(exact(capacity_bps)),
        );
    }
    if random >= NEARLY_ALL {
        return format!("The link loses {} of the packets at random.", percent(random));
    }
    if queue >= NEARLY_ALL {
        return format!("The queue drops {} of the packets: it is too small.", percent(queue));
    }
    format!(
        "The link passes packets, but no handshake and first round trip end within the run of {duration_s} s: \
         compare that with the base RTT, and look at the losses of the return path."
    )
}

fn exact(mean: f64) -> Estimate {
    Estimate::symmetric(mean, None)
}
