//! State of a loaded congestion control, read from the memory that it shares with the kernel. Any process can read it,
//! even if the user-space side is stopped or has ended.

use crate::bpf::system::SharedMemory;
use crate::record::{LimitSource, SLOT_BYTES, SLOTS, control, slot};

/// Buckets per octave, and in all.
const PER_OCTAVE: usize = 8;
const BUCKETS: usize = 400;
/// Words of statistics before the buckets.
const HEAD: usize = 6;

/// Of the user-space side: how long records wait for the resulting limits.
#[derive(Clone, Debug)]
pub struct Statistics {
    records: u64,
    batches: u64,
    max_ns: u64,
    /// Start of the statistics, and time of the last finished batch (CLOCK_MONOTONIC).
    since: u64,
    last: u64,
    /// Processor time of the agent's thread.
    cpu_ns: u64,
    /// By the logarithm of the delay.
    buckets: Vec<u64>,
}

impl Default for Statistics {
    fn default() -> Statistics {
        let buckets = vec![0; BUCKETS];
        Statistics { records: 0, batches: 0, max_ns: 0, since: 0, last: 0, cpu_ns: 0, buckets }
    }
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(1) as f64;
    ((ns.log2() * PER_OCTAVE as f64) as usize).min(BUCKETS - 1)
}

impl Statistics {
    /// Records of these times were handled at `now`. `cpu_ns` is the thread's processor time so far.
    pub(crate) fn batch(&mut self, times: &[u64], now: u64, cpu_ns: u64) {
        self.cpu_ns = cpu_ns;
        if self.since == 0 {
            self.since = times.iter().copied().min().unwrap_or(now);
        }
        self.last = now;
        self.batches += 1;
        self.records += times.len() as u64;
        for time in times {
            let delay = now.saturating_sub(*time);
            self.max_ns = self.max_ns.max(delay);
            self.buckets[bucket(delay)] += 1;
        }
    }
    pub(crate) fn store(&self, shared: &SharedMemory) {
        let words = [self.records, self.batches, self.max_ns, self.since, self.last, self.cpu_ns];
        let all = words.iter().chain(&self.buckets);
        all.enumerate().for_each(|(i, w)| shared.store(control::STATISTICS + 8 * i, *w));
    }
    fn load(shared: &SharedMemory) -> Statistics {
        let word = |i: usize| shared.load(control::STATISTICS + 8 * i);
        let buckets = (0..BUCKETS).map(|i| word(HEAD + i)).collect();
        let since = word(3);
        let last = word(4);
        let cpu_ns = word(5);
        let records = word(0);
        let batches = word(1);
        let max_ns = word(2);
        Statistics { records, batches, max_ns, since, last, cpu_ns, buckets }
    }
    /// Handled records.
    pub fn records(&self) -> u64 {
        self.records
    }
    /// Batches in which they were read.
    pub fn batches(&self) -> u64 {
        self.batches
    }
    /// Processor time of the agent's thread, in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.cpu_ns as f64 * 1e-9
    }
    /// Records per second, from the first to the last.
    pub fn records_per_s(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.since) as f64 * 1e-9;
        if seconds > 0.0 { self.records as f64 / seconds } else { 0.0 }
    }
    /// Quantile of the delay in seconds: this part of the records was handled within it.
    pub fn delay_s(&self, part: f64) -> f64 {
        let wanted = (part * self.buckets.iter().sum::<u64>() as f64).ceil();
        let mut seen = 0;
        for (i, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen > 0 && seen as f64 >= wanted {
                return (((i as f64 + 0.5) / PER_OCTAVE as f64).exp2() * 1e-9).min(self.max_s());
            }
        }
        0.0
    }
    /// The longest, in seconds.
    pub fn max_s(&self) -> f64 {
        self.max_ns as f64 * 1e-9
    }
}

/// A connection, as the kernel has it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStatus {
    /// Number of the connection, counted since loading.
    pub number: u32,
    /// Source of its limits.
    pub decided_by: DecidedBy,
    /// Window in segments.
    pub cwnd: u32,
    /// Bytes of payload per second; 0: not paced.
    pub rate: u64,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// Segments delivered.
    pub delivered: u64,
    /// How often it went on as Reno.
    pub fallbacks: u32,
    /// Bytes of payload of a full segment.
    pub mss: u32,
}

/// Source of a connection's limits.
pub use crate::record::LimitSource as DecidedBy;

/// State of a congestion control.
#[derive(Clone, Debug)]
pub struct ControlStatus {
    /// Living connections that have a slot.
    pub connections: Vec<ConnectionStatus>,
    /// Connections so far that had one.
    pub seen: u64,
    /// Connections that found no free slot: plain Reno.
    pub without_slot: u64,
    /// Records that found the ring full.
    pub lost_records: u64,
    /// How often a connection continued as Reno because limits were late.
    pub fallbacks: u64,
    /// Of the user-space side.
    pub statistics: Statistics,
}

impl ControlStatus {
    /// Reads the state.
    pub fn read(slots: &SharedMemory, common: &SharedMemory) -> ControlStatus {
        let one = |number: usize| {
            let at = number * SLOT_BYTES;
            let connection = slots.load_u32(at + slot::CONNECTION);
            (connection != 0).then(|| ConnectionStatus {
                number: connection,
                decided_by: LimitSource::from_u32(slots.load_u32(at + slot::MODE)),
                cwnd: slots.load_u32(at + slot::APPLIED_CWND),
                rate: slots.load(at + slot::APPLIED_RATE),
                srtt_us: slots.load_u32(at + slot::SRTT_US),
                delivered: slots.load(at + slot::DELIVERED),
                fallbacks: slots.load_u32(at + slot::FALLBACKS),
                mss: slots.load_u32(at + slot::MSS),
            })
        };
        ControlStatus {
            connections: (0..SLOTS).filter_map(one).collect(),
            seen: common.load(control::CONNECTIONS),
            without_slot: common.load(control::WITHOUT_SLOT),
            lost_records: common.load(control::LOST_RECORDS),
            fallbacks: common.load(control::FALLBACKS),
            statistics: Statistics::load(common),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut s = Statistics::default();
        assert_eq!(s.delay_s(0.5), 0.0);
        let times: Vec<u64> = (0..1000).map(|i| 1_000_000_000 - 1000 * i).collect();
        s.batch(&times, 1_000_000_000, 0);
        for part in [0.1, 0.5, 0.99] {
            let right = part * 1e-3;
            assert!((s.delay_s(part) / right - 1.0).abs() < 0.1, "{part}: {}", s.delay_s(part));
        }
        assert_eq!(s.max_s(), 999e-6);
    }
}
