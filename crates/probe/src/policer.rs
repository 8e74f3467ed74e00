//! A policer: a token bucket without a queue. A steady load above its rate passes as long as the bucket lasts; from
//! then on what arrives has the bucket's rate, and the rest is lost. A load below it loses nothing.

use crate::loss::Loss;
use crate::statistics::Interval;
use crate::train::{Observed, Purpose, Train};
use narrows_base::Duration;

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Policer {
    /// Bits per second.
    pub rate: Interval,
    /// Bytes.
    pub burst: f64,
}

/// Losses of a steady load that call for a look at a lower one.
const SUSPICIOUS: f64 = 0.02;
/// The lower one, as a share of what arrived of the first.
const BELOW: f64 = 0.7;
const PACKETS: u32 = 600;
const LONGEST: f64 = 1.0;

/// The train that tells, if one is needed: by what arrived, since a host may have sent more slowly than it was to.
pub(crate) fn below(steady: &Train, observed: &Observed, loss: &Loss) -> Option<Train> {
    let (first, last) = (observed.sent.first()?, observed.sent.last()?);
    let arrived = observed.count();
    if loss.share.low < SUSPICIOUS || arrived < 10 {
        return None;
    }
    let gap = last.saturating_sub(*first) as f64 * 1e-9 / (arrived as f64 * BELOW);
    let packets = PACKETS.min((LONGEST / gap) as u32).max(10);
    Some(Train { purpose: Purpose::Below, packets, gap: Duration::from_secs_f64(gap), ..*steady })
}

/// The policer that explains why the lower load lost so much less.
pub(crate) fn read(
    steady: &Train,
    observed: &Observed,
    above: &Loss,
    below: &Loss,
) -> Option<Policer> {
    if below.share.high >= above.share.low {
        return None;
    }
    let bits = f64::from(steady.bytes) * 8.0;
    let start = *observed.sent.first()?;
    let at = |i: usize| Some(observed.sent.get(i)?.saturating_sub(start) as f64 * 1e-9);
    // While the bucket lasts nothing is lost but at random; the rest is a line of the policer's rate. What is lost at
    // random below it has not taken tokens here, or has, if it is lost behind: a small share in either case.
    let first = observed.arrived.iter().position(Option::is_none)?;
    let last = observed.sent.len().checked_sub(1)?;
    let from = first + (last - first) / 10;
    let passed = observed.arrived.get(from..)?.iter().flatten().count() as f64;
    let seconds = at(last)? - at(from)?;
    if passed < 10.0 || seconds <= 0.0 {
        return None;
    }
    let rate = passed * bits / seconds / (1.0 - below.share.value);
    let mut held: f64 = 0.0;
    let mut sum = 0.0;
    for (i, arrived) in observed.arrived.iter().enumerate() {
        sum += if arrived.is_some() { bits } else { 0.0 };
        held = held.max(sum - rate * at(i)?);
    }
    let error = rate * (2.0 / passed).max(0.004);
    Some(Policer {
        rate: Interval { value: rate, low: rate - error, high: rate + error },
        burst: held / 8.0,
    })
}
