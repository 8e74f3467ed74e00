//! The search for a path's rate: packet trains somewhat faster than the estimate (TOPP, BART), each too short to
//! fill more than a few packets of a queue.
//!
//! A train that arrives more slowly than it was sent has passed the bottleneck at the bottleneck's rate; one that
//! arrives as it was sent has not found it, and the next one is faster. Packets are counted by their numbers: one
//! that is lost behind the bottleneck has used its transmission time there.

use crate::statistics::{ConfidenceInterval, MeasuredSample, RegressionLine, least_squares, mean};
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::Duration;

/// No train is faster than this times the measured rate.
pub const MAX_EXCESS: f64 = 1.2;
/// Of the first train: as many as any connection begins with (RFC 6928).
pub const OPENING_PACKETS: u32 = 10;
/// Packets of a train for the rate. The IP packet that every path carries is 1280 bytes long.
pub const FULL_BYTES: u32 = 1200;
/// Bytes of packets on slow paths, so that a train of [`USUAL_PACKETS`] takes no longer than [`LONGEST`] seconds.
const SHORT_BYTES: u32 = 300;
const USUAL_PACKETS: f64 = 88.0;
const LONGEST: f64 = 0.25;

/// Highest rate in bits per second; higher reports of the peer are capped.
pub(crate) const MAX_RATE: f64 = 10e9;
/// Factor by which trains exceed the rate once it has been found.
const SMALL_EXCESS: f64 = 1.1;
/// Packets that a train makes wait at its end.
const QUEUED: f64 = 8.0;
/// Trains that found the rate, at least and at most.
const FEWEST: usize = 4;
const MOST: usize = 12;
/// Packets of a train that fills a queue.
const FEWEST_OF_FILL: usize = 60;
/// The search ends when the interval is this narrow, as a share of the rate.
const NARROW: f64 = 0.015;
/// Clocks and timers of hosts: the interval is no narrower.
const FLOOR: f64 = 0.004;

#[derive(Clone, Debug, Default)]
pub(crate) struct RateSearch {
    /// Current estimate in bits per second.
    estimate: Option<f64>,
    excess: f64,
    /// Rates that were found.
    found: Vec<MeasuredSample>,
    /// Trains that arrived as they were sent, since the last one that did not.
    unhindered: u32,
    arrived: u32,
}

impl RateSearch {
    /// The next train; `None` once the interval is narrow enough.
    pub fn next(&mut self) -> Option<Train> {
        let Some(estimate) = self.estimate else {
            let packets = OPENING_PACKETS;
            let bytes = FULL_BYTES;
            return Some(Train {
                purpose: Purpose::Open,
                packets,
                bytes,
                gap: Duration::ZERO,
                ce: 0,
            });
        };
        let narrow = self.interval().is_some_and(|i| i.high - i.value < NARROW * i.value);
        if self.found.len() >= MOST || self.found.len() >= FEWEST && narrow {
            return None;
        }
        self.excess = if self.found.is_empty() { MAX_EXCESS } else { SMALL_EXCESS };
        // As in slow start, as many packets as arrived may be sent in addition.
        let packets = (QUEUED / (1.0 - 1.0 / self.excess)) as u32;
        let packets = packets.min(self.arrived.max(OPENING_PACKETS) + OPENING_PACKETS);
        let bytes = (estimate * LONGEST / 8.0 / USUAL_PACKETS) as u32;
        let bytes = bytes.clamp(SHORT_BYTES, FULL_BYTES);
        let gap = Duration::from_secs_f64(f64::from(bytes) * 8.0 / (self.excess * estimate));
        Some(Train { purpose: Purpose::Rate, packets, bytes, gap, ce: 0 })
    }

    /// Adds the observation of a train.
    pub fn on_train(&mut self, train: &Train, observed: &TrainObservation) {
        let bits = f64::from(train.bytes) * 8.0;
        self.arrived = self.arrived.saturating_add(observed.count() as u32);
        let mut arrivals = observed.arrival_times();
        if drops_at_the_end(observed) {
            arrivals.retain(|(i, _)| *i < observed.sent.len() / 2);
        }
        let Some(line) = least_squares(&arrivals) else {
            // Nearly all packets were lost: assume half of the rate of the train, or of the first train's bits in a
            // second.
            let tried = self.estimate.unwrap_or(bits * f64::from(train.packets));
            self.estimate = Some(tried * 0.5);
            return;
        };
        if self.estimate.is_none() {
            // Jitter presses packets together as well as apart: rather too slow than too fast.
            let slope = (line.slope + 2.0 * line.slope_error).max(bits / MAX_RATE);
            self.estimate = Some(bits / slope);
            return;
        }
        let sent = least_squares(&observed.sending_times()).map_or(0.0, |l| l.slope);
        // How much faster than the path it really was: a busy host sends late.
        let fastest = bits / MAX_RATE;
        let arrived_at = bits / line.slope.max(fastest);
        let sent_at = bits / sent.max(fastest);
        let halfway = 0.5 * (1.0 + 1.0 / self.excess);
        if arrived_at < halfway * sent_at {
            self.unhindered = 0;
            self.found.push(sample(bits, line, arrivals.len()));
            self.estimate = mean(&self.found, 0.0).map(|i| i.value);
        } else {
            self.unhindered += 1;
            if self.found.is_empty() || self.unhindered >= 2 {
                self.found.clear();
                let reached = self.estimate.map_or(sent_at, |e| e.max(sent_at.min(e * MAX_EXCESS)));
                self.estimate = Some(reached);
            }
        }
    }

    /// Also uses a train that fills a queue, if there was no time for enough trains of the search.
    pub fn on_fill(&mut self, train: &Train, observed: &TrainObservation) {
        let first_loss = observed.arrived.iter().position(Option::is_none);
        let mut arrivals = observed.arrival_times();
        arrivals.retain(|(i, _)| first_loss.is_none_or(|l| *i < l.max(FEWEST_OF_FILL)));
        let sent = least_squares(&observed.sending_times()).map_or(0.0, |l| l.slope);
        let Some(line) = least_squares(&arrivals).filter(|_| self.found.len() < FEWEST) else {
            return;
        };
        if line.slope > sent * 0.5 * (1.0 + MAX_EXCESS) {
            self.found.push(sample(f64::from(train.bytes) * 8.0, line, arrivals.len()));
        }
    }

    /// Rate in bits per second, with the interval found so far.
    pub fn interval(&self) -> Option<ConfidenceInterval> {
        match mean(&self.found, FLOOR) {
            Some(found) => Some(found),
            None => self.estimate.map(ConfidenceInterval::at_least),
        }
    }
}

/// The rate by a line through the arrivals of packets of `bits` bits. The error of a slope falls with the cube of the
/// number of packets.
fn sample(bits: f64, line: RegressionLine, packets: usize) -> MeasuredSample {
    let slope = line.slope.max(bits / MAX_RATE);
    let n = packets as f64;
    let value = bits / slope;
    let error = value * line.slope_error / slope;
    MeasuredSample { value, weight: n * n * n, error }
}

/// Whether a queue was full: the second half of a train lost much more than the first.
fn drops_at_the_end(observed: &TrainObservation) -> bool {
    let (first, second) = observed.arrived.split_at(observed.arrived.len() / 2);
    let lost = |half: &[Option<u64>]| half.iter().filter(|a| a.is_none()).count();
    lost(second) >= 3 + 3 * lost(first)
}
