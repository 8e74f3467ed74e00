//! The counters of a relay.

use narrows_base::{Duration, Time};
use std::fmt;

/// Counters of one direction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct DirectionStats {
    /// Datagrams that arrived at the link.
    pub offered_packets: u64,
    /// Their bytes on the link: payload plus 28 bytes of headers each.
    pub offered_bytes: u64,
    /// Datagrams that left the link at the far end, including duplicates made by the link.
    pub delivered_packets: u64,
    /// Their bytes on the link.
    pub delivered_bytes: u64,
    /// Datagrams dropped by the queue, or because they exceed the link's MTU.
    pub dropped: u64,
    /// Those of the dropped datagrams that exceed the link's MTU.
    pub too_large: u64,
    /// Datagrams lost after their transmission.
    pub lost: u64,
    /// Datagrams that the queue marked (ECN).
    pub marked: u64,
    /// Datagrams for which the relay had no memory; they did not enter the link.
    pub overflowed: u64,
    /// Datagrams transmitted, including those lost afterwards.
    pub served_packets: u64,
    /// Their bytes on the link.
    pub served_bytes: u64,
    /// Sum of the served datagrams' times in the queue, s; transmission is not counted.
    pub waited_s: f64,
    /// Longest time in the queue, s.
    pub longest_wait_s: f64,
    /// When the first transmission began, s of the relay's clock.
    pub first_s: f64,
    /// When the last transmission ended or will end, s of the relay's clock.
    pub last_s: f64,
}

impl DirectionStats {
    /// Mean time of a served datagram in the queue, s; zero without any.
    pub fn mean_wait_s(&self) -> f64 {
        if self.served_packets == 0 { 0.0 } else { self.waited_s / self.served_packets as f64 }
    }

    pub(super) fn served(&mut self, size: u32, arrived: Time, start: Time, end: Time) {
        if self.served_packets == 0 {
            self.first_s = start.as_secs_f64();
        }
        let wait = start.since(arrived).as_secs_f64();
        self.served_packets += 1;
        self.served_bytes += u64::from(size);
        self.waited_s += wait;
        self.longest_wait_s = self.longest_wait_s.max(wait);
        self.last_s = end.as_secs_f64();
    }
}

/// Delay between a datagram's exact departure time and its sending: the relay's own error.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Lateness {
    /// Arithmetic mean, s.
    pub mean_s: f64,
    /// Median, s.
    pub p50_s: f64,
    /// 99th percentile, s.
    pub p99_s: f64,
    /// Largest, s.
    pub max_s: f64,
}

/// All counters of a relay.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct RelayStats {
    /// Direction towards B.
    pub forward: DirectionStats,
    /// Direction from B.
    pub reverse: DirectionStats,
    /// Lateness over both directions.
    pub lateness: Lateness,
    /// Number of clients at present.
    pub clients: usize,
    /// Number of clients so far.
    pub clients_seen: u32,
    /// Clients that gave way to newcomers, since all places were taken.
    pub clients_replaced: u64,
    /// Datagrams of newcomers for which the system had no socket.
    pub refused: u64,
    /// Failed sends and receives, including ICMP errors.
    pub errors: u64,
}

/// Collects lateness, for a [`Lateness`].
pub struct LatenessCounter {
    counts: Option<hdrhistogram::Histogram<u64>>,
    sum: f64,
    max: Duration,
    count: u64,
}

impl LatenessCounter {
    /// Empty.
    #[allow(clippy::new_without_default, reason = "kilobytes are allocated")]
    pub fn new() -> LatenessCounter {
        // Two significant digits up to a minute; later packets count as a minute.
        let counts = hdrhistogram::Histogram::new_with_bounds(1_000, 60_000_000_000, 2).ok();
        LatenessCounter { counts, sum: 0.0, max: Duration::ZERO, count: 0 }
    }

    /// Records one packet's lateness.
    pub fn record(&mut self, late: Duration) {
        if let Some(counts) = &mut self.counts {
            counts.saturating_record(late.as_nanos());
        }
        self.sum += late.as_secs_f64();
        self.max = self.max.max(late);
        self.count += 1;
    }

    /// Number of recorded packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean and percentiles so far.
    pub fn read(&self) -> Lateness {
        let at = |q| self.counts.as_ref().map_or(0, |c| c.value_at_quantile(q)) as f64 * 1e-9;
        Lateness {
            mean_s: if self.count == 0 { 0.0 } else { self.sum / self.count as f64 },
            p50_s: if self.count == 0 { 0.0 } else { at(0.5) },
            p99_s: if self.count == 0 { 0.0 } else { at(0.99) },
            max_s: self.max.as_secs_f64(),
        }
    }
}

impl fmt::Debug for LatenessCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.read(), f)
    }
}
