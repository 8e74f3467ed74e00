//! Metrics of an endpoint's connections, in total. Open connections are read when the metrics are; ended ones are added
//! to the counters.

use super::{MetricKind, MetricSource, Text};
use narrows_base::Time;
use narrows_net::endpoint::Observer;
use narrows_net::socket::ReceivedDatagram;
use narrows_net::tap::{ConnectionOpened, Tap};
use narrows_transport::connection::{Closed, Stats, Transmit};
use narrows_transport::endpoint::Handle;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Modes of rrtp's own controller, by their numbers in series.
const MODES: [&str; 3] = ["startup", "alone", "competitive"];

/// The connections of one endpoint, or of several in sequence.
#[derive(Debug, Default)]
pub struct EndpointMetrics {
    observers: Mutex<Vec<Observer>>,
    ended: Mutex<EndedTotals>,
    /// The counters as they were read last: a connection that ends during a reading may be missing in it.
    read: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct EndedTotals {
    opened: u64,
    totals: Totals,
    reasons: BTreeMap<&'static str, u64>,
}

/// Counters in the order of `TOTALS`.
type Totals = [u64; TOTALS.len()];

/// Name, value of the label `direction` if there is one, and help.
const TOTALS: [(&str, &str, &str); 10] = [
    ("packets_sent", "", "Packets sent with data, including those sent again."),
    ("packets_lost", "", "Packets sent and found lost."),
    ("packets_marked", "", "Packets sent and marked by a queue (ECN)."),
    ("packets_refused", "", "Packets received that were duplicates or not authentic."),
    ("timeouts", "", "Probe timeouts."),
    ("repair_packets_sent", "", "Repair packets sent."),
    ("udp_bytes", "sent", "Bytes of UDP payload."),
    ("udp_bytes", "received", "Bytes of UDP payload."),
    ("goodput_bytes", "sent", "Stream bytes that arrived at the peer, and bytes taken from it."),
    (
        "goodput_bytes",
        "received",
        "Stream bytes that arrived at the peer, and bytes taken from it.",
    ),
];

fn totals(s: &Stats) -> Totals {
    let c = &s.counters;
    [
        c.sent,
        c.lost,
        c.marks,
        s.refused,
        c.timeouts,
        s.repairs_sent,
        s.bytes_sent,
        s.bytes_received,
        s.bytes_arrived,
        s.bytes_taken,
    ]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Smallest, mean and largest value.
struct Spread {
    min: f64,
    max: f64,
    sum: f64,
    count: u64,
}

impl Spread {
    fn new() -> Spread {
        Spread { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, count: 0 }
    }
    fn add(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += value;
        self.count += 1;
    }
    fn write(&self, text: &mut Text, name: &str, help: &str) {
        let mut samples = text.family(name, MetricKind::Gauge, help);
        // Without connections these are not finite, and left out.
        let mean = self.sum / self.count as f64;
        for (word, value) in [("min", self.min), ("mean", mean), ("max", self.max)] {
            samples.sample(&[("statistic", word)], value);
        }
    }
}

impl MetricSource for EndpointMetrics {
    fn write(&self, text: &mut Text) {
        let observers = lock(&self.observers).clone();
        let (opened, mut sum, reasons) = {
            let ended = lock(&self.ended);
            (ended.opened, ended.totals, ended.reasons.clone())
        };
        let mut open = 0_u64;
        let mut modes = [0_u64; MODES.len()];
        let [mut rtt, mut queue, mut pacing, mut flight] = std::array::from_fn(|_| Spread::new());
        for observer in &observers {
            let is_there = observer.each(|_, connection| {
                let stats = connection.stats();
                open += 1;
                for (sum, own) in sum.iter_mut().zip(totals(&stats)) {
                    *sum = sum.saturating_add(own);
                }
                if stats.rtt_samples > 0 {
                    rtt.add(stats.srtt.as_secs_f64());
                    let above = stats.srtt.as_secs_f64() - stats.min_rtt.as_secs_f64();
                    queue.add(above.max(0.0));
                }
                if let Some(rate) = stats.rate {
                    pacing.add(rate.as_bps() as f64 / 8.0);
                }
                flight.add(stats.flight as f64);
                connection.watch(&mut |name, value| {
                    if name == "rrtp_mode"
                        && let Some(count) = modes.get_mut(value as usize)
                    {
                        *count += 1;
                    }
                });
            });
            if !is_there {
                lock(&self.observers).retain(|o| o.local() != observer.local());
            }
        }
        let read = {
            let mut read = lock(&self.read);
            for (read, sum) in read.iter_mut().zip(sum) {
                *read = sum.max(*read);
            }
            *read
        };
        text.family("connections", MetricKind::Gauge, "Open connections.").sample(&[], open as f64);
        text.family("connections_opened", MetricKind::Counter, "Completed handshakes.")
            .sample(&[], opened as f64);
        let help = "Ended connections, and attempts that failed (not_completed).";
        let mut closed = text.family("connections_closed", MetricKind::Counter, help);
        for (reason, count) in reasons {
            closed.sample(&[("reason", reason)], count as f64);
        }
        let mut all = TOTALS.iter().zip(read).peekable();
        while let Some(((name, label, help), value)) = all.next() {
            let mut samples = text.family(name, MetricKind::Counter, help);
            if label.is_empty() {
                samples.sample(&[], value as f64);
                continue;
            }
            samples.sample(&[("direction", label)], value as f64);
            while let Some(((_, label, _), value)) = all.next_if(|((next, ..), _)| next == name) {
                samples.sample(&[("direction", label)], value as f64);
            }
        }
        rtt.write(text, "rtt_seconds", "Smoothed round-trip time of open connections.");
        let help = "Smoothed round-trip time above the smallest one, of open connections.";
        queue.write(text, "queue_delay_seconds", help);
        let help = "Pacing rate of open connections, with IP and UDP headers.";
        pacing.write(text, "pacing_bytes_per_second", help);
        flight.write(text, "packets_in_flight", "Packets in flight of open connections.");
        let help = "Open connections by the mode of rrtp's controller.";
        let mut by_mode = text.family("controller_mode_connections", MetricKind::Gauge, help);
        for (mode, count) in MODES.iter().zip(modes) {
            by_mode.sample(&[("mode", mode)], count as f64);
        }
    }
}

impl Tap for EndpointMetrics {
    fn bound(&self, observer: Observer) {
        lock(&self.observers).push(observer);
    }
    fn sent(&self, _: Time, _: &Transmit, _: &[u8]) {}
    fn received(&self, _: &ReceivedDatagram<'_>) {}
    fn opened(&self, _: Time, _: &ConnectionOpened) {
        lock(&self.ended).opened += 1;
    }
    fn closed(&self, _: Time, _: Handle, stats: Option<&Stats>, why: &Closed) {
        let mut ended = lock(&self.ended);
        *ended.reasons.entry(reason(stats.is_some(), why)).or_default() += 1;
        if let Some(stats) = stats {
            for (sum, own) in ended.totals.iter_mut().zip(totals(stats)) {
                *sum = sum.saturating_add(own);
            }
        }
    }
}

fn reason(was_open: bool, why: &Closed) -> &'static str {
    match why {
        _ if !was_open => "not_completed",
        Closed::Locally => "local",
        Closed::ByPeer { .. } => "peer",
        Closed::Reset => "reset",
        Closed::TimedOut => "timed_out",
        Closed::Fault { .. } => "fault",
        Closed::GaveWay => "gave_way",
        Closed::SmallPath { .. } => "small_path",
        Closed::Panicked { .. } => "panicked",
        _ => "other",
    }
}
