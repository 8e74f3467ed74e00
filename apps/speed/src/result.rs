//! The result of a measurement, added up over its connections.

use super::measurement::{Amount, Speed, SpeedDirection};
use super::server::SpeedServer;
use super::worker::WorkerCounts;
use narrows_transport::connection::{PathStats, Stats};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Result of a measurement.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SpeedResult {
    /// Application bytes that arrived; of a stream, in order.
    pub bytes: u64,
    /// From the beginning to connect to the end, s.
    pub seconds: f64,
    /// From the moment when a connection begins to open to its keys, s; mean over connections.
    pub handshake_s: f64,
    /// Bytes of each connection.
    pub per_connection: Vec<u64>,
    /// The client's statistics: sums where a sum is meaningful, else those of the first connection.
    pub stats: Stats,
    /// The paths of the first connection.
    pub paths: Vec<PathStats>,
    /// Mean round-trip time over the samples of all senders at this end, s; 0 without any.
    pub mean_rtt_s: f64,
    /// Processor time of this process over the measurement, s.
    pub cpu_seconds: f64,
    /// Messages given to the connection.
    pub messages: u64,
}

impl SpeedResult {
    /// Application bits per second.
    pub fn goodput_bps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

impl Speed {
    /// Combines the workers' counts into the result.
    pub(super) fn sum(
        &self,
        shared: &[Arc<WorkerCounts>],
        counts: Option<&SpeedServer>,
        result: &mut SpeedResult,
    ) {
        let mut rtt = (0.0, 0u64);
        for count in shared {
            result.handshake_s += count.handshake_ns.load(Ordering::Relaxed) as f64 * 1e-9;
            result.messages += count.messages.load(Ordering::Relaxed);
            let stats = count.stats.lock().map_or_else(|e| *e.into_inner(), |s| *s);
            rtt = (rtt.0 + stats.rtt_sum.as_secs_f64(), rtt.1 + stats.rtt_samples);
            add(&mut result.stats, &stats);
        }
        if let Some(Ok(paths)) = shared.first().map(|count| count.paths.lock()) {
            result.paths.clone_from(&paths);
        }
        result.handshake_s /= shared.len() as f64;
        result.mean_rtt_s = if rtt.1 > 0 { rtt.0 / rtt.1 as f64 } else { 0.0 };
        result.per_connection = match counts {
            Some(server) if self.direction == SpeedDirection::Up => server.received_each(),
            _ => shared.iter().map(|c| c.bytes.load(Ordering::Relaxed)).collect(),
        };
        // A server in this process has counted all bytes before the last worker ends.
        if matches!(self.amount, Amount::Bytes(_)) {
            result.bytes = result.per_connection.iter().sum();
        }
    }
}

fn add(sum: &mut Stats, s: &Stats) {
    if sum.bytes_sent == 0 {
        *sum = *s;
        return;
    }
    let a = &mut sum.counters;
    let b = &s.counters;
    a.sent += b.sent;
    a.lost += b.lost;
    a.retransmissions += b.retransmissions;
    a.timeouts += b.timeouts;
    a.episodes += b.episodes;
    a.marks += b.marks;
    a.expired += b.expired;
    sum.bytes_sent += s.bytes_sent;
    sum.bytes_received += s.bytes_received;
    sum.refused += s.refused;
    sum.radio_losses += s.radio_losses;
}
