//! Samples flows and links over time.

use crate::endpoints::SimulatedReceiver;
use crate::flow::Flow;
use crate::meter::LinkMeter;
use crate::result::SeriesTable;
use crate::source::StartedSource;
use narrows_base::{Duration, Packet, Time};
use narrows_link::Link;

/// A flow that is sampled.
#[derive(Debug)]
pub(crate) struct FlowSeries {
    pub flow: u32,
    name: String,
    group: String,
    /// Bits that the receiver got since the last sample.
    pub bits: f64,
    /// RTT of the last ACK.
    pub rtt: Duration,
    last_retransmissions: u64,
    columns: Vec<(&'static str, Vec<f64>)>,
}

const FLOW_COLUMNS: [&str; 8] = [
    "cwnd",
    "ssthresh",
    "in_flight",
    "rtt_s",
    "throughput_bps",
    "acked",
    "retransmissions",
    "limited_by",
];

impl FlowSeries {
    pub fn new(flow: u32, name: String, group: String) -> FlowSeries {
        let columns = FLOW_COLUMNS.iter().map(|n| (*n, Vec::new())).collect();
        FlowSeries {
            flow,
            name,
            group,
            bits: 0.0,
            rtt: Duration::ZERO,
            last_retransmissions: 0,
            columns,
        }
    }

    pub fn sample(&mut self, now: Time, flow: &Flow, source: &StartedSource, interval_s: f64) {
        let n = self.columns[0].1.len();
        let sender = &flow.sender;
        let window = sender.controller().send_limits().cwnd;
        let finite = |x: f64| if x.is_finite() && x < 1e14 { x } else { f64::NAN };
        let retransmissions = sender.counters().retransmissions;
        let rtt = if self.rtt == Duration::ZERO { f64::NAN } else { self.rtt.as_secs_f64() };
        let values = [
            finite(window),
            sender.controller().send_limits().ssthresh.map_or(f64::NAN, finite),
            sender.flight() as f64,
            rtt,
            self.bits / interval_s,
            sender.acknowledged() as f64,
            (retransmissions - self.last_retransmissions) as f64,
            f64::from(sender.limit() as u8),
        ];
        self.bits = 0.0;
        self.last_retransmissions = retransmissions;
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.1.push(value);
        }
        let columns = &mut self.columns;
        let mut put = |name, value| {
            let at = match columns.iter().position(|c| c.0 == name) {
                Some(at) => at,
                None => {
                    columns.push((name, vec![f64::NAN; n]));
                    columns.len() - 1
                }
            };
            // A name reported twice in one sample keeps its first value.
            if columns[at].1.len() == n {
                columns[at].1.push(value);
            }
        };
        sender.controller().watch(&mut put);
        if let Some(side) = flow.receiver.receiver_side() {
            side.watch(&mut put);
        }
        if let SimulatedReceiver::Multicast(receiver) = &flow.receiver {
            put("layers", receiver.level() as f64);
            put("rate_bps", receiver.rate());
        }
        if let StartedSource::Frames(frames) = source {
            frames.watch(now, &mut put);
        }
        for column in columns {
            column.1.resize(n + 1, f64::NAN);
        }
    }

    pub fn table(self, time_s: &[f64]) -> SeriesTable {
        SeriesTable {
            kind: "flow",
            name: self.name,
            group: self.group,
            time_s: time_s.to_vec(),
            columns: self.columns,
        }
    }
}

/// A link that is sampled: its queue, and the average that the queue itself keeps, if any.
#[derive(Debug)]
pub(crate) struct QueueSeries {
    pub link: usize,
    waiting: Vec<f64>,
    average: Vec<f64>,
}

impl QueueSeries {
    pub fn new(link: usize) -> QueueSeries {
        QueueSeries { link, waiting: Vec::new(), average: Vec::new() }
    }

    pub fn sample(&mut self, now: Time, link: &Link<Packet>) {
        self.waiting.push(link.waiting(now) as f64);
        self.average.extend(link.average());
    }

    /// The link's table, from its meter's bins and the samples.
    pub fn table(
        self,
        name: &str,
        meter: &LinkMeter,
        time_s: &[f64],
        interval_s: f64,
    ) -> SeriesTable {
        let n = time_s.len();
        let bins = meter.bins.as_ref().map_or(&[][..], |b| &b.counts);
        let column = |f: fn(&crate::meter::Bin, f64) -> f64| -> Vec<f64> {
            (0..n).map(|i| bins.get(i).map_or(0.0, |b| f(b, interval_s))).collect()
        };
        let mut columns = vec![
            ("queue", self.waiting),
            ("queue_max", column(|b, _| f64::from(b.queue_max))),
            ("throughput_bps", column(|b, s| b.bits / s)),
            ("drops", column(|b, _| f64::from(b.drops))),
            ("losses", column(|b, _| f64::from(b.losses))),
        ];
        if !self.average.is_empty() {
            columns.push(("queue_average", self.average));
        }
        let name = name.to_string();
        let group = String::new();
        let time_s = time_s.to_vec();
        SeriesTable { kind: "link", name, group, time_s, columns }
    }
}

/// Sample times from `from` to `end`.
pub(crate) fn sample_times(from: Time, interval: Duration, end: Time) -> usize {
    let n = end.since(from).as_nanos() / interval.as_nanos().max(1);
    usize::try_from(n).unwrap_or(usize::MAX).saturating_add(1)
}
