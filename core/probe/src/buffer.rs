//! The buffer: a load 1.2 times the rate until a queue overflows, stopped at the first burst of losses.

use crate::ecn::CE;
use crate::loss::RandomLoss;
use crate::rate::{FULL_BYTES, MAX_EXCESS};
use crate::statistics::{ConfidenceInterval, quantile};
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::Duration;

/// Losses are counted among this many latest packets.
const WINDOW: u32 = 48;
/// Runs of lost packets in [`WINDOW`] that indicate an overflow. At 1.2 times the rate, a full queue drops every sixth
/// packet; the path's own losses come on top. Runs are counted, not packets, since a fading path loses many packets in
/// one run.
const FEWEST_RUNS: f64 = 5.0;

/// Estimate of a buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Buffer {
    /// Capacity in packets of 1200 bytes. The upper end is infinite if no overflow was observed.
    pub packets: ConfidenceInterval,
    /// Whether packets were dropped before it was full: queue management acts.
    pub managed: bool,
}

/// When the receiver of a train stops it; zeros for never.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StopAt {
    /// Stop at this many runs of lost packets among the last 48.
    pub runs: u8,
    /// Stop at this many marked packets (ECN).
    pub marks: u8,
}

/// Detects from the arriving packets that a queue overflows, or is managed.
#[derive(Clone, Debug)]
pub struct OverflowWatch {
    missing: Vec<u32>,
    newest: Option<u32>,
    marks: u8,
    stop_at: StopAt,
}

impl OverflowWatch {
    /// For one train.
    pub fn new(stop_at: StopAt) -> OverflowWatch {
        OverflowWatch { missing: Vec::new(), newest: None, marks: 0, stop_at }
    }
    /// A packet has arrived with this ECN field. Returns whether to stop the train.
    pub fn on_arrival(&mut self, index: u32, ecn: u8) -> bool {
        self.marks = self.marks.saturating_add(u8::from(ecn == CE));
        if self.stop_at.marks > 0 && self.marks >= self.stop_at.marks {
            return true;
        }
        if self.stop_at.runs == 0 {
            return false;
        }
        let next = self.newest.map_or(0, |n| n.saturating_add(1));
        self.missing.retain(|m| *m != index);
        if index >= next {
            // No more than a window of them counts, however far it leaps.
            self.missing.extend(next.max(index.saturating_sub(WINDOW))..index);
            self.newest = Some(index);
        }
        let newest = self.newest.unwrap_or(index);
        self.missing.retain(|m| newest - m <= WINDOW);
        // In order, but without late packets that have arrived in the meantime.
        let runs = self.missing.windows(2).filter(|w| w[1] - w[0] > 1).count();
        runs + usize::from(!self.missing.is_empty()) >= usize::from(self.stop_at.runs)
    }
}

/// Runs of lost packets per packet without an overflow.
fn usual_runs(loss: &RandomLoss, share: f64) -> f64 {
    share * (1.0 - share) / loss.burst.unwrap_or(1.0)
}

/// The runs among the last 48 packets at which such a train stops, given the path's own losses.
pub(crate) fn stop_at(loss: &RandomLoss) -> u8 {
    (FEWEST_RUNS + 2.0 * f64::from(WINDOW) * usual_runs(loss, loss.share.value)) as u8
}

/// A train of at most this duration and number of bytes.
pub(crate) fn train(rate: f64, longest: Duration, bytes: u64) -> Option<Train> {
    let gap = f64::from(FULL_BYTES) * 8.0 / (MAX_EXCESS * rate);
    let packets = ((longest.as_secs_f64() / gap) as u64).min(bytes / u64::from(FULL_BYTES));
    let gap = Duration::from_secs_f64(gap);
    let packets = u32::try_from(packets).ok().filter(|n| *n >= 20)?;
    Some(Train { purpose: Purpose::Fill, packets, bytes: FULL_BYTES, gap, ce: 0 })
}

/// Estimates the buffer from the train. `empty` is the usual delay without a queue of a packet of zero length, in
/// seconds by the same two clocks. `marked`: the queue marks packets, by ECN.
pub(crate) fn read(
    observed: &TrainObservation,
    rate: f64,
    empty: f64,
    loss: &RandomLoss,
    marked: bool,
) -> Option<Buffer> {
    let transmission = f64::from(FULL_BYTES) * 8.0 / rate;
    let waits: Vec<(usize, f64)> = observed
        .delays()
        .into_iter()
        .map(|(i, d)| (i, (d - empty - transmission) / transmission))
        .collect();
    let last = waits.last()?.0;
    let near = |index: usize| -> Vec<f64> {
        let close = waits.iter().filter(|(i, _)| i.abs_diff(index) <= WINDOW as usize / 2);
        close.map(|w| w.1).collect()
    };
    let all: Vec<f64> = waits.iter().map(|w| w.1).collect();
    let reached = quantile(&all, 1.0).max(0.0);
    let is_lost = |i: usize| observed.arrived.get(i).is_some_and(Option::is_none);
    let lost: Vec<usize> = (1..last).filter(|i| is_lost(*i) && !is_lost(i - 1)).collect();
    let usual = usual_runs(loss, loss.share.high) * last as f64;
    // The last packets count by themselves: a queue that has just become full has not dropped many.
    let late = lost.iter().filter(|i| **i + WINDOW as usize >= last).count();
    let overflows = late >= usize::from(stop_at(loss));
    if marked {
        return Some(Buffer { packets: ConfidenceInterval::at_least(reached), managed: true });
    }
    if !overflows && lost.len() as f64 <= 2.0 + 2.0 * usual {
        return Some(Buffer { packets: ConfidenceInterval::at_least(reached), managed: false });
    }
    // A full queue drops at one length throughout. A managed queue drops before it is full.
    let at_drops: Vec<f64> = lost.iter().map(|i| quantile(&near(*i), 0.9)).collect();
    let early = quantile(&at_drops, 0.25);
    let level = quantile(&at_drops, 1.0);
    if usual < 1.0 && early < 0.75 * level - 3.0 || early < 0.4 * level - 3.0 {
        return Some(Buffer { packets: ConfidenceInterval::at_least(reached), managed: true });
    }
    let full = quantile(&at_drops, 0.75);
    let error = (0.05 * full).max(1.5);
    let packets = ConfidenceInterval { value: full, low: full - error, high: full + error };
    Some(Buffer { packets, managed: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::ECT0;

    fn runs(runs: u8) -> StopAt {
        StopAt { runs, marks: 0 }
    }

    #[test]
    fn marks_stop_a_train_if_they_are_to() {
        let marked = |stop_at| {
            let mut watch = OverflowWatch::new(stop_at);
            (0..100).find(|i| watch.on_arrival(*i, if i % 10 == 0 { CE } else { ECT0 }))
        };
        assert_eq!(marked(StopAt { runs: 5, marks: 3 }), Some(20));
        assert_eq!(marked(runs(5)), None);
    }

    #[test]
    fn a_burst_of_losses_stops_and_scattered_ones_do_not() {
        let mut watch = OverflowWatch::new(runs(5));
        assert!((0..1000).filter(|i| i % 20 != 7).all(|i| !watch.on_arrival(i, ECT0)));
        let stopped = (1000..1100).filter(|i| i % 6 != 0).find(|i| watch.on_arrival(*i, ECT0));
        assert!((1013..1050).contains(&stopped.unwrap()), "{stopped:?}");
        let mut watch = OverflowWatch::new(runs(5));
        assert!((0..1000).filter(|i| i % 100 > 20).all(|i| !watch.on_arrival(i, ECT0)), "a fade");
    }

    #[test]
    fn leap_of_numbers_takes_constant_time() {
        let mut watch = OverflowWatch::new(runs(200));
        assert!(!watch.on_arrival(0, ECT0));
        watch.on_arrival(u32::MAX, ECT0);
        assert!(watch.missing.len() <= WINDOW as usize);
        assert!(!watch.on_arrival(1, ECT0));
    }
}
