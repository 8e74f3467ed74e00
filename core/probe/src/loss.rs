//! Losses that no queue explains: of a steady load below the rate.

use crate::statistics::{ConfidenceInterval, wilson};
use crate::train::TrainObservation;

/// Share of packets lost without a full queue, and their bursts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomLoss {
    /// The share of packets.
    pub share: ConfidenceInterval,
    /// Packets that were counted.
    pub packets: u32,
    /// Of these, lost ones.
    pub lost: u32,
    /// Mean length of a run of lost packets, if losses clearly occur in runs.
    pub burst: Option<f64>,
}

/// Fewest runs of losses for bursty loss.
const RUNS: u32 = 5;
/// Losses are bursty if the mean run is at least this many times as long as with independent losses.
const BURST: f64 = 1.5;

/// Counts over one load or several.
#[derive(Default)]
struct LossCounts {
    packets: u32,
    lost: u32,
    runs: u32,
    /// Packets behind a lost one, and those of them that were lost, too.
    pairs: u32,
    after_loss: u32,
}

impl LossCounts {
    fn add(&mut self, observed: &TrainObservation, queue_s: f64) {
        let delays = observed.delays();
        let min = delays.iter().map(|d| d.1).fold(f64::INFINITY, f64::min);
        let mut by_index = vec![None; observed.sent.len()];
        for (i, delay) in delays {
            if let Some(place) = by_index.get_mut(i) {
                *place = Some(delay - min);
            }
        }
        let mut waited = 0.0;
        let mut before = false;
        for delay in by_index {
            let gone = delay.is_none();
            waited = delay.unwrap_or(waited);
            if waited > queue_s {
                before = false;
                continue;
            }
            self.packets += 1;
            self.lost += u32::from(gone);
            self.runs += u32::from(gone && !before);
            self.pairs += u32::from(before);
            self.after_loss += u32::from(gone && before);
            before = gone;
        }
    }
}

/// Counts the losses of steady loads. Losses behind a packet that had waited longer than `queue_s` are left out, as
/// a queue's: with them, the load was more than the path carries at that time.
pub(crate) fn count<'a>(
    loads: impl Iterator<Item = &'a TrainObservation>,
    queue_s: f64,
) -> RandomLoss {
    let mut counted = LossCounts::default();
    for observed in loads {
        counted.add(observed, queue_s);
    }
    let LossCounts { packets, lost, runs, pairs, after_loss } = counted;
    let n = f64::from(packets.max(1));
    let p = f64::from(lost) / f64::from(packets.max(1));
    // Correlation of neighbours, from a chain of two states. It reduces the number of independent packets.
    let again = f64::from(after_loss) / f64::from(pairs.max(1));
    let alike = ((again - p) / (1.0 - p).max(1e-9)).clamp(0.0, 0.98);
    let mean_run = f64::from(lost) / f64::from(runs.max(1));
    // Of independent losses the next is lost too with p.
    let bursty = runs >= RUNS && mean_run > BURST / (1.0 - p).max(0.1);
    let alike = if bursty { alike } else { 0.0 };
    let effective = n * (1.0 - alike) / (1.0 + alike);
    let share = wilson(p * effective, effective);
    RandomLoss { share, packets, lost, burst: bursty.then_some(mean_run) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::RandomKey;

    fn observed(lost: impl Fn(usize) -> bool, wait_ns: impl Fn(usize) -> u64) -> TrainObservation {
        let sent: Vec<u64> = (0..5000).map(|i| i * 1_000_000).collect();
        let arrived = sent.iter().enumerate();
        let arrived = arrived.map(|(i, s)| (!lost(i)).then(|| s + 10_000_000 + wait_ns(i)));
        TrainObservation { arrived: arrived.collect(), ecn: vec![0; sent.len()], sent, late: 0 }
    }

    fn one(observed: &TrainObservation, queue_s: f64) -> RandomLoss {
        count(std::iter::once(observed), queue_s)
    }

    #[test]
    fn random_losses_are_no_bursts_and_runs_are() {
        let key = RandomKey::from_seed(3);
        let random = one(&observed(|i| key.draw(i as u64) < 0.05, |_| 0), 1.0);
        assert!(random.burst.is_none() && random.share.holds(0.05), "{random:?}");
        let runs = one(&observed(|i| i % 160 < 8, |_| 0), 1.0);
        assert!((7.9..8.1).contains(&runs.burst.unwrap()), "{runs:?}");
        let width = |l: &RandomLoss| l.share.high - l.share.low;
        assert!(width(&runs) > 2.0 * width(&random), "bursts are fewer independent packets");
    }

    #[test]
    fn losses_behind_a_queue_are_not_random() {
        let full = |i: usize| (1000..2000).contains(&i);
        let seen = observed(|i| full(i) && i % 2 == 0, |i| if full(i) { 20_000_000 } else { 0 });
        let with = one(&seen, 0.005);
        assert!(with.lost <= 1 && with.packets < 4100, "{with:?}");
        assert_eq!(one(&seen, 1.0).lost, 500);
    }
}
