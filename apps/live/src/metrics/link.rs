//! Metrics of relays and emulated links.

use super::{MetricKind, MetricSource, Text};
use narrows_net::relay::{DirectionStats, RelayObserver, RelayStats, RelayTap};
use narrows_net::relay::{MissedDatagram, RelayedDatagram};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A link whose counters can be read without a change of its state.
pub trait LinkCounters: Send + Sync + fmt::Debug {
    /// Counters, and the packets that wait in the queues: forward, reverse.
    fn counters(&self) -> (RelayStats, [usize; 2]);
}

impl LinkCounters for RelayObserver {
    fn counters(&self) -> (RelayStats, [usize; 2]) {
        RelayObserver::counters(self)
    }
}

/// The links of a command by their names, which the user gave.
#[derive(Debug, Default)]
pub struct LinkMetrics(Mutex<Vec<(String, Arc<dyn LinkCounters>)>>);

impl LinkMetrics {
    /// Adds a link.
    pub fn add(&self, name: &str, link: Arc<dyn LinkCounters>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name.into(), link));
    }
}

/// A relay's link.
impl RelayTap for LinkMetrics {
    fn bound(&self, observer: RelayObserver) {
        self.add("relay", Arc::new(observer));
    }
    fn passed(&self, _: &RelayedDatagram<'_>) {}
    fn missed(&self, _: &MissedDatagram) {}
}

type Read = fn(&DirectionStats) -> f64;

/// Name, help and value of each counter.
const COUNTERS: [(&str, &str, Read); 9] = [
    ("link_offered_packets", "Packets that arrived at the link.", |d| d.offered_packets as f64),
    ("link_offered_bytes", "Their bytes, with headers.", |d| d.offered_bytes as f64),
    ("link_delivered_packets", "Packets that left the link.", |d| d.delivered_packets as f64),
    ("link_delivered_bytes", "Their bytes, with headers.", |d| d.delivered_bytes as f64),
    ("link_dropped_packets", "Packets that the queue dropped.", |d| d.dropped as f64),
    ("link_lost_packets", "Packets lost after their transmission.", |d| d.lost as f64),
    ("link_marked_packets", "Packets that the queue marked (ECN).", |d| d.marked as f64),
    ("link_served_packets", "Packets transmitted.", |d| d.served_packets as f64),
    ("link_queue_seconds", "Sum of their times in the queue.", |d| d.waited_s),
];

impl MetricSource for LinkMetrics {
    fn write(&self, text: &mut Text) {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = links.iter().map(|(name, link)| (name, link.counters())).collect();
        for (name, help, read) in COUNTERS {
            let mut samples = text.family(name, MetricKind::Counter, help);
            for (link, (stats, _)) in &all {
                for (direction, stats) in [("forward", &stats.forward), ("reverse", &stats.reverse)]
                {
                    samples.sample(&[("link", link), ("direction", direction)], read(stats));
                }
            }
        }
        let help = "Clients of a relay that gave way to new ones.";
        let mut replaced = text.family("link_replaced_clients", MetricKind::Counter, help);
        for (link, (stats, _)) in &all {
            replaced.sample(&[("link", link)], stats.clients_replaced as f64);
        }
        let mut waiting =
            text.family("link_queue_packets", MetricKind::Gauge, "Packets in the queue.");
        for (link, (_, [forward, reverse])) in &all {
            for (direction, packets) in [("forward", forward), ("reverse", reverse)] {
                waiting.sample(&[("link", link), ("direction", direction)], *packets as f64);
            }
        }
        let help = "Mean lateness of the emulation itself.";
        let mut late = text.family("link_lateness_seconds", MetricKind::Gauge, help);
        for (link, (stats, _)) in &all {
            late.sample(&[("link", link)], stats.lateness.mean_s);
        }
    }
}
