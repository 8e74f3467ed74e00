//! A policer: a token bucket without a queue. A steady load above its rate passes as long as the bucket lasts. From
//! then on packets arrive at the bucket's rate, and the rest is lost. A load below it loses no packets.

use crate::loss::RandomLoss;
use crate::rate::MAX_RATE;
use crate::statistics::{ConfidenceInterval, quantile};
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::Duration;

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PolicerFit {
    /// Rate in bits per second.
    pub rate: ConfidenceInterval,
    /// Size of the bucket in bytes.
    pub burst: f64,
}

/// Loss rate of a steady load above which a lower load is sent.
const SUSPICIOUS: f64 = 0.02;
/// The lower load, as a share of the first one's arrival rate.
const BELOW: f64 = 0.7;
const PACKETS: u32 = 600;
/// Fewest packets of the lower load: at a loss rate of [`SUSPICIOUS`], one or two of them are lost.
const FEWEST: u32 = 60;
const LONGEST: f64 = 1.0;
/// Losses further apart than this multiple of the usual distance have a pause of the sender between them.
const FAR: f64 = 10.0;

/// The lower load that distinguishes a policer from random loss, if the first one lost packets and time is left. Its
/// rate is computed from the arrivals, since a host may have sent more slowly than planned.
pub(crate) fn below(
    steady: &Train,
    observed: &TrainObservation,
    loss: &RandomLoss,
    left: Duration,
) -> Option<Train> {
    let first = observed.sent.first()?;
    let last = observed.sent.last()?;
    let arrived = observed.count();
    if loss.share.low < SUSPICIOUS || arrived < 10 {
        return None;
    }
    let gap = last.saturating_sub(*first) as f64 * 1e-9 / (arrived as f64 * BELOW);
    let max = LONGEST.min(left.as_secs_f64()) / gap;
    let packets = PACKETS.min(max as u32);
    let gap = Duration::from_secs_f64(gap);
    (packets >= FEWEST).then_some(Train { purpose: Purpose::Below, packets, gap, ..*steady })
}

/// The policer, if the lower load lost significantly less than the first.
pub(crate) fn read(
    steady: &Train,
    observed: &TrainObservation,
    above: &RandomLoss,
    below: &RandomLoss,
) -> Option<PolicerFit> {
    if below.share.high >= above.share.low {
        return None;
    }
    let bits = f64::from(steady.bytes) * 8.0;
    let start = *observed.sent.first()?;
    let at = |i: usize| Some(observed.sent.get(i)?.saturating_sub(start) as f64 * 1e-9);
    // At each loss the bucket was empty, so the packets between two losses used the tokens of that time. If the losses
    // are far apart, the sender had paused and the full bucket discarded tokens, so such pairs are left out. Random
    // losses distort this by their small share.
    let lost: Vec<usize> = (0..observed.sent.len())
        .filter(|i| observed.arrived.get(*i).is_some_and(Option::is_none))
        .collect();
    let apart = |pair: &[usize]| Some(at(*pair.last()?)? - at(*pair.first()?)?);
    let usual = quantile(&lost.windows(2).filter_map(apart).collect::<Vec<_>>(), 0.5);
    let mut passed = 0.0;
    let mut seconds = 0.0;
    for pair in lost.windows(2) {
        let apart = apart(pair)?;
        if let [from, to] = pair
            && apart <= FAR * usual.max(bits / MAX_RATE)
        {
            passed += (to - from - 1) as f64;
            seconds += apart;
        }
    }
    if passed < 10.0 || seconds <= 0.0 {
        return None;
    }
    let rate = passed * bits / seconds / (1.0 - below.share.value);
    // The largest excess of passed bits over the rate, from any moment on.
    let mut sum: f64 = 0.0;
    let mut min: f64 = 0.0;
    let mut held: f64 = 0.0;
    for (i, arrived) in observed.arrived.iter().enumerate() {
        min = min.min(sum - rate * at(i)?);
        sum += if arrived.is_some() { bits } else { 0.0 };
        held = held.max(sum - rate * at(i)? - min);
    }
    let error = rate * (2.0 / passed).max(0.004);
    Some(PolicerFit {
        rate: ConfidenceInterval { value: rate, low: rate - error, high: rate + error },
        burst: held / 8.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::count;
    use crate::statistics::wilson;

    /// Output of a token bucket of 8 Mbit/s and 60 kB at 16 Mbit/s. The sending host pauses for 300 ms in the middle.
    #[test]
    fn a_host_that_stands_still_changes_neither_rate_nor_bucket() {
        let gap = Duration::from_micros(200);
        let train = Train { purpose: Purpose::Steady, packets: 6000, bytes: 400, gap, ce: 0 };
        let mut sent = Vec::new();
        let mut arrived = Vec::new();
        let mut tokens = 60_000.0_f64;
        let mut before = 0;
        for i in 0..6000_u64 {
            let at = i * gap.as_nanos() + if i >= 3000 { 300_000_000 } else { 0 };
            tokens = (tokens + (at - before) as f64 * 1e-3).min(60_000.0);
            before = at;
            let passes = tokens >= 400.0;
            tokens -= if passes { 400.0 } else { 0.0 };
            sent.push(at);
            arrived.push(passes.then_some(at + 10_000_000));
        }
        let ecn = vec![0; sent.len()];
        let observed = TrainObservation { sent, arrived, ecn, late: 0 };
        let above = count(std::iter::once(&observed), 1.0);
        let lower = below(&train, &observed, &above, Duration::from_secs(2)).unwrap();
        assert!(lower.length() < Duration::from_secs(1));
        let none = RandomLoss { share: wilson(0.0, 600.0), packets: 600, lost: 0, burst: None };
        let found = read(&train, &observed, &above, &none).unwrap();
        assert!((found.rate.value / 8e6 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.burst / 60e3 - 1.0).abs() < 0.05, "{found:?}");
    }

    /// The lower load is shortened to the time that is left. If it would be too short to be useful, it is left out.
    #[test]
    fn lower_load_fits_into_the_remaining_budget() {
        let gap = Duration::from_millis(2);
        let train = Train { purpose: Purpose::Steady, packets: 1000, bytes: 400, gap, ce: 0 };
        let sent: Vec<u64> = (0..1000).map(|i| i * gap.as_nanos()).collect();
        let arrived = (0..1000).map(|i| (i % 2 == 0).then_some(i)).collect();
        let observed = TrainObservation { ecn: vec![0; 1000], sent, arrived, late: 0 };
        let loss = count(std::iter::once(&observed), 1.0);
        let of = |ms| below(&train, &observed, &loss, Duration::from_millis(ms));
        assert!(of(500).unwrap().length() <= Duration::from_millis(500));
        assert!(of(2_000).unwrap().length() <= Duration::from_secs(1));
        assert!(of(100).is_none(), "too few packets to tell");
    }
}
