//! The measures: one list drives JSON, CSV, the table, the report and the documentation.

use crate::stats;
use narrows_sim::{FlowResult, LinkGroup, LinkResult, RunResult};

/// What a measure is computed from.
pub struct View<'a> {
    /// The run.
    pub run: &'a RunResult,
    /// The group in question.
    pub group: usize,
    /// Its bottleneck.
    pub link: &'a LinkResult,
    /// Groups whose data pass the same bottleneck.
    pub others: &'a [usize],
}

/// Which direction is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// More.
    More,
    /// Less.
    Less,
    /// Neither, or it depends.
    Neither,
}

/// A measure of a group of flows in one run.
pub struct Measure {
    /// As in JSON and CSV.
    pub name: &'static str,
    /// Short title for charts.
    pub title: &'static str,
    /// Unit of the number.
    pub unit: &'static str,
    /// One line.
    pub doc: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Whether it exists only beside others (`--against`).
    pub competition: bool,
    /// Computes it; NaN if the run has none.
    pub of: fn(&View<'_>) -> f64,
    /// The same for a single flow over a span in seconds, where it makes sense.
    pub per_flow: Option<fn(&FlowResult, f64) -> f64>,
}

/// All measures.
pub const MEASURES: &[Measure] = &[
    Measure {
        name: "goodput_bps",
        title: "Goodput",
        unit: "bit/s",
        doc: "application bytes delivered in order, summed over the flows",
        better: Better::More,
        competition: false,
        of: |v| v.flows().map(|f| f.goodput_bytes as f64).sum::<f64>() * 8.0 / v.run.span_s,
        per_flow: Some(|f, span| f.goodput_bytes as f64 * 8.0 / span),
    },
    Measure {
        name: "throughput_bps",
        title: "Throughput",
        unit: "bit/s",
        doc: "all its data bits served by the bottleneck, headers and copies included",
        better: Better::Neither,
        competition: false,
        of: |v| v.here().served_bits / v.run.span_s,
        per_flow: None,
    },
    Measure {
        name: "utilisation",
        title: "Utilisation",
        unit: "fraction",
        doc: "all bits that the bottleneck served over its capacity",
        better: Better::More,
        competition: false,
        of: |v| ratio(v.link.served_bits, v.link.capacity_bits),
        per_flow: None,
    },
    Measure {
        name: "loss_rate",
        title: "Loss rate",
        unit: "fraction",
        doc: "its queue drops and random losses over the packets that it offered to the bottleneck",
        better: Better::Less,
        competition: false,
        of: |v| ratio((v.here().dropped + v.here().lost) as f64, v.here().offered as f64),
        per_flow: None,
    },
    Measure {
        name: "queue_loss_rate",
        title: "Queue drops",
        unit: "fraction",
        doc: "the part of the loss rate that the queue dropped",
        better: Better::Less,
        competition: false,
        of: |v| ratio(v.here().dropped as f64, v.here().offered as f64),
        per_flow: None,
    },
    Measure {
        name: "random_loss_rate",
        title: "Random losses",
        unit: "fraction",
        doc: "the part of the loss rate that was lost after transmission",
        better: Better::Neither,
        competition: false,
        of: |v| ratio(v.here().lost as f64, v.here().offered as f64),
        per_flow: None,
    },
    Measure {
        name: "offered_over_delivered",
        title: "Offered over delivered",
        unit: "ratio",
        doc: "application bytes sent, copies included, over those delivered in order",
        better: Better::Less,
        competition: false,
        of: |v| {
            let sent: f64 = v.flows().map(|f| f.sent_bytes as f64).sum();
            ratio(sent, v.flows().map(|f| f.goodput_bytes as f64).sum())
        },
        per_flow: Some(|f, _| ratio(f.sent_bytes as f64, f.goodput_bytes as f64)),
    },
    Measure {
        name: "queue_packets_mean",
        title: "Mean queue",
        unit: "packets",
        doc: "packets waiting at the bottleneck, mean over time, the one in service not counted",
        better: Better::Less,
        competition: false,
        of: |v| v.link.queue_mean,
        per_flow: None,
    },
    Measure {
        name: "queue_packets_max",
        title: "Longest queue",
        unit: "packets",
        doc: "most packets waiting at the bottleneck",
        better: Better::Less,
        competition: false,
        of: |v| v.link.queue_max as f64,
        per_flow: None,
    },
    Measure {
        name: "mark_rate",
        title: "Marks",
        unit: "fraction",
        doc: "its packets that a managed queue marked (ECN) over those that it offered",
        better: Better::Neither,
        competition: false,
        of: |v| match v.link.managed {
            true => ratio(v.here().marked as f64, v.here().offered as f64),
            false => f64::NAN,
        },
        per_flow: None,
    },
    Measure {
        name: "red_average_min",
        title: "Smallest average queue",
        unit: "packets",
        doc: "smallest average kept by the queue itself (red, cw) at the bottleneck",
        better: Better::Neither,
        competition: false,
        of: |v| v.link.average.map_or(f64::NAN, |a| a.min),
        per_flow: None,
    },
    Measure {
        name: "red_average_mean",
        title: "Mean average queue",
        unit: "packets",
        doc: "mean over all arrivals of the average kept by the queue itself (red, cw)",
        better: Better::Less,
        competition: false,
        of: |v| v.link.average.map_or(f64::NAN, |a| a.mean),
        per_flow: None,
    },
    Measure {
        name: "red_average_max",
        title: "Largest average queue",
        unit: "packets",
        doc: "largest average kept by the queue itself (red, cw)",
        better: Better::Less,
        competition: false,
        of: |v| v.link.average.map_or(f64::NAN, |a| a.max),
        per_flow: None,
    },
    Measure {
        name: "rtt_s_min",
        title: "Smallest RTT",
        unit: "s",
        doc: "smallest round-trip time over acknowledged packets",
        better: Better::Neither,
        competition: false,
        of: |v| v.rtt().min().map_or(f64::NAN, |ns| ns as f64 * 1e-9),
        per_flow: None,
    },
    Measure {
        name: "rtt_s_mean",
        title: "Mean RTT",
        unit: "s",
        doc: "mean round-trip time over acknowledged packets",
        better: Better::Less,
        competition: false,
        of: |v| v.rtt().mean().map_or(f64::NAN, |ns| ns * 1e-9),
        per_flow: None,
    },
    Measure {
        name: "rtt_s_p95",
        title: "RTT, 95th percentile",
        unit: "s",
        doc: "round-trip time that 95% of the acknowledged packets stay below",
        better: Better::Less,
        competition: false,
        of: |v| v.rtt().quantile(0.95).map_or(f64::NAN, |ns| ns as f64 * 1e-9),
        per_flow: None,
    },
    Measure {
        name: "retransmissions",
        title: "Retransmissions",
        unit: "packets",
        doc: "data packets sent again",
        better: Better::Less,
        competition: false,
        of: |v| v.flows().map(|f| f.retransmissions as f64).sum(),
        per_flow: Some(|f, _| f.retransmissions as f64),
    },
    Measure {
        name: "timeouts",
        title: "Timeouts",
        unit: "",
        doc: "retransmission timeouts",
        better: Better::Less,
        competition: false,
        of: |v| v.flows().map(|f| f.timeouts as f64).sum(),
        per_flow: Some(|f, _| f.timeouts as f64),
    },
    Measure {
        name: "cov_1s",
        title: "Roughness over 1 s",
        unit: "ratio",
        doc: "coefficient of variation of goodput over 1 s bins, mean over the flows; 0 is smooth",
        better: Better::Less,
        competition: false,
        of: |v| mean(v.flows().map(cov).filter(|c| c.is_finite())),
        per_flow: Some(|f, _| cov(f)),
    },
    Measure {
        name: "jain",
        title: "Jain's fairness",
        unit: "",
        doc: "Jain's index of the flows' goodputs: 1 is equal, 1/n is all for one",
        better: Better::More,
        competition: false,
        of: |v| stats::jain(&v.flows().map(|f| f.goodput_bytes as f64).collect::<Vec<_>>()),
        per_flow: None,
    },
    Measure {
        name: "share",
        title: "Share",
        unit: "fraction",
        doc: "its goodput over its own and the others' goodput",
        better: Better::Neither,
        competition: true,
        of: |v| {
            let own = v.goodput(v.group);
            ratio(own, own + v.others.iter().map(|g| v.goodput(*g)).sum::<f64>())
        },
        per_flow: None,
    },
    Measure {
        name: "theta",
        title: "Theta",
        unit: "fraction",
        doc: "the others' departures from the bottleneck over all departures (S1 eq. 6.1): 0.5 is \
              equal, 0 is that the others starve",
        better: Better::Neither,
        competition: true,
        of: |v| {
            let served = |g: usize| v.link.groups.get(g).map_or(0.0, |x| x.served_bits);
            let others: f64 = v.others.iter().map(|g| served(*g)).sum();
            ratio(others, others + served(v.group))
        },
        per_flow: None,
    },
    Measure {
        name: "completion_s",
        title: "Completion time",
        unit: "s",
        doc: "from a transfer's start to its last byte, mean over those that finished",
        better: Better::Less,
        competition: false,
        of: |v| mean(v.flows().map(completion).filter(|c| c.is_finite())),
        per_flow: Some(|f, _| completion(f)),
    },
];

impl View<'_> {
    fn flows(&self) -> impl Iterator<Item = &FlowResult> {
        self.run.groups[self.group].flows.iter()
    }
    fn rtt(&self) -> &narrows_sim::Histogram {
        &self.run.groups[self.group].rtt
    }
    fn here(&self) -> LinkGroup {
        self.link.groups.get(self.group).copied().unwrap_or_default()
    }
    fn goodput(&self, group: usize) -> f64 {
        self.run.groups[group].flows.iter().map(|f| f.goodput_bytes as f64).sum()
    }
}

/// NaN where there is nothing to divide by: shown as null, never as an infinity.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { f64::NAN }
}

fn mean(x: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for x in x {
        (sum, n) = (sum + x, n + 1.0);
    }
    ratio(sum, n)
}

fn cov(f: &FlowResult) -> f64 {
    f.bins_1s.map_or(f64::NAN, |(mean, deviation)| ratio(deviation, mean))
}

fn completion(f: &FlowResult) -> f64 {
    f.done.map_or(f64::NAN, |done| done.since(f.start).as_secs_f64())
}

/// The measure of that name.
pub fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|m| m.name == name)
}
