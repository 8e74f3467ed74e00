//! What a run measured. Counts are over the measured span, `measure_from` to `end`, unless said.

use crate::histogram::Histogram;
use narrows_base::Time;

/// What a run measured.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunResult {
    /// A number over all packet arrivals at endpoints and all drops, in order.
    pub digest: u64,
    /// Events handled, from the start.
    pub events: u64,
    /// Data packets that came to receivers (for TCP in order, the SYNs included), from the start.
    pub delivered_packets: u64,
    /// Length of the measured span in seconds.
    pub span_s: f64,
    /// Groups in the order of the specification.
    pub groups: Vec<GroupResult>,
    /// Metered links in the order of the specification.
    pub links: Vec<LinkResult>,
    /// Time series, one table per sampled flow and link.
    pub series: Vec<Table>,
}

/// What a group of flows did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// Its flows (for `web`, its transfers).
    pub flows: Vec<FlowResult>,
    /// Round-trip times over acknowledgements of data, in nanoseconds.
    pub rtt: Histogram,
}

/// Time scales of [`Roughness`] in milliseconds: each is a whole number of the first.
pub const SCALES_MS: [u64; 7] = [100, 200, 500, 1000, 2000, 5000, 10_000];

/// Most bins of a second (flows times seconds), and of a link's ticks (groups times ticks), that
/// a run keeps; a run with more keeps none.
pub const MAX_BINS: u64 = 4_000_000;

/// How a flow's goodput varies on one time scale, over whole bins of the measured span; NaN with
/// fewer than two bins, or nothing in them.
#[derive(Clone, Copy, Debug)]
pub struct Roughness {
    /// Coefficient of variation: standard deviation (of the population) over mean.
    pub cov: f64,
    /// Rate of change: mean absolute difference between neighbouring bins over their mean.
    pub change: f64,
}

impl Roughness {
    /// Of nothing.
    pub const NONE: Roughness = Roughness { cov: f64::NAN, change: f64::NAN };
}

/// What a flow did over time.
#[derive(Clone, Debug)]
pub struct FlowDetail {
    /// Per scale of [`SCALES_MS`].
    pub roughness: [Roughness; SCALES_MS.len()],
    /// The second of the measured span at which [`seconds`](FlowDetail::seconds) begins.
    pub first: usize,
    /// In-order bytes per second, to the last second in which anything came; empty if there are
    /// more than [`MAX_BINS`].
    pub seconds: Vec<u64>,
}

/// What a flow did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FlowResult {
    /// When it started.
    pub start: Time,
    /// When its transfer was complete, from the receiver's last byte; `None` if it was not.
    pub done: Option<Time>,
    /// Bytes of its transfer; 0 where the source has no end, or has not begun.
    pub wanted_bytes: u64,
    /// Application bytes delivered: in order for TCP, without duplicates for datagrams. Bytes that
    /// came before the measured span and were put in order in it do not count.
    pub goodput_bytes: u64,
    /// Application bytes sent, copies included.
    pub sent_bytes: u64,
    /// Data packets sent, copies included.
    pub sent_packets: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Loss episodes found without a timeout.
    pub episodes: u64,
    /// Reactions to routers' marks (ECN), at most one per window; TCP only.
    pub marks: u64,
    /// Packets that the sender counts as lost, those not counted that came late after all; for TCP, its
    /// retransmissions.
    pub lost_packets: u64,
    /// Packets that counted as lost until they came; of streams over our endpoint only.
    pub spurious_losses: u64,
    /// Writes of the application that waited too long to be sent (datagrams only).
    pub expired: u64,
    /// Mean and standard deviation (of the population) of in-order bytes per 1 s bin over whole
    /// bins of the measured span; `None` with fewer than two.
    pub bins_1s: Option<(f64, f64)>,
    /// How smooth it was on other scales; `None` if nothing came.
    pub detail: Option<Box<FlowDetail>>,
    /// Segments cumulatively acknowledged since the start, the SYN included.
    pub acknowledged: u64,
    /// How its receiver judged its losses; `None` if it judged none.
    pub classifier_counts: Option<ClassifierCounts>,
}

/// Missing packets by what became of them, in truth and by the receiver's loss classifier (`transport::loss_classifier`). What
/// a metered link's queue dropped is congestion; everything else that was missing when a later packet
/// came was the radio's, late packets and drops on unmetered links included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassifierCounts {
    /// Dropped by a queue.
    pub congestion: u64,
    /// Of these, judged to be the radio's.
    pub congestion_judged_radio: u64,
    /// Lost otherwise.
    pub radio: u64,
    /// Of these, judged to be congestion.
    pub radio_judged_congestion: u64,
}

/// What happened on a metered link.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LinkResult {
    /// Its name.
    pub name: String,
    /// Bits that it could have served.
    pub capacity_bits: f64,
    /// Bits that it served, of all groups, acknowledgements included.
    pub served_bits: f64,
    /// Mean number of waiting packets over time, the one in transmission not counted.
    pub queue_mean: f64,
    /// Largest number of waiting packets.
    pub queue_max: u64,
    /// Whether the queue is managed, that is, anything but drop-tail.
    pub managed: bool,
    /// The average that the queue itself keeps (`red`, `cw`); `None` for others, and without arrivals.
    pub average: Option<QueueAverage>,
    /// Per group, in the order of the specification.
    pub groups: Vec<LinkGroup>,
    /// Data bits per tick of [`LINK_TICK_S`], per group: offered to the queue, and served. Empty if
    /// there are more than [`MAX_BINS`].
    pub ticks: Vec<LinkTicks>,
}

/// Seconds in a tick of [`LinkTicks`].
pub const LINK_TICK_S: f64 = 0.1;

/// A group's data bits on a link over time, in whole ticks from the beginning of the measured span.
#[derive(Clone, Debug, Default)]
pub struct LinkTicks {
    /// Bits that arrived at the queue.
    pub offered: Vec<f64>,
    /// Bits served.
    pub served: Vec<f64>,
}

/// A queue's own average in packets, over the arrivals of the measured span: each arrival, of any
/// flow and kind, counts once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueAverage {
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
}

/// What a group's packets of one kind met on a link. Only data count; acknowledgements are in
/// [`LinkResult::served_bits`] and the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkGroup {
    /// Packets that arrived at the queue.
    pub offered: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that the queue marked (ECN CE) instead; they go on.
    pub marked: u64,
    /// Packets lost after transmission.
    pub lost: u64,
    /// Packets served.
    pub served: u64,
    /// Bits served.
    pub served_bits: f64,
    /// Bytes that arrived at the queue.
    pub offered_bytes: u64,
    /// Bits that the link could have served of what reached the group's receivers in the measured span:
    /// its capacity from as much before the span to as much before its end as a packet's propagation
    /// takes from here to the receiver; mean over the flows that pass.
    pub arriving_capacity_bits: f64,
}

/// A time series: named columns of equal length.
#[derive(Clone, Debug)]
pub struct Table {
    /// `flow` or `link`; the laboratory adds `group`.
    pub kind: &'static str,
    /// The flow's, link's or group's name.
    pub name: String,
    /// The group's name; empty for links.
    pub group: String,
    /// Sample times in seconds.
    pub time_s: Vec<f64>,
    /// Columns by their names: what [`COLUMNS`](crate::COLUMNS) and the entry of a flow's controller
    /// explain. What does not exist is NaN.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

impl Table {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|c| c.0 == name).map(|c| c.1.as_slice())
    }
}
