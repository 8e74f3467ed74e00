//! The results of a run. Counts cover the measured span, `measure_from` to `end`, unless stated
//! otherwise.

use crate::histogram::Histogram;
use narrows_base::Time;

/// Results of all groups, links and time series.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunResult {
    /// A hash over all packet arrivals at endpoints and all drops, in order.
    pub digest: u64,
    /// Events handled since the start.
    pub events: u64,
    /// Data packets that arrived at receivers (for TCP in order, including SYNs) since the start.
    pub delivered_packets: u64,
    /// Length of the measured span in seconds.
    pub span_s: f64,
    /// Groups in the order of the specification.
    pub groups: Vec<GroupResult>,
    /// Metered links in the order of the specification.
    pub links: Vec<LinkResult>,
    /// Time series, one table per sampled flow and link.
    pub series: Vec<SeriesTable>,
}

/// The results of a group of flows.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupResult {
    /// As in the specification.
    pub name: String,
    /// Its flows (for `web`, its transfers).
    pub flows: Vec<FlowResult>,
    /// RTTs in nanoseconds, one per ACK of data.
    pub rtt: Histogram,
    /// Frame delays of all its flows in nanoseconds: see [`FrameResult::delay`].
    pub frame_delay: Histogram,
}

/// Time scales of [`Roughness`] in milliseconds; each is a multiple of the first.
pub const SCALES_MS: [u64; 7] = [100, 200, 500, 1000, 2000, 5000, 10_000];

/// Limit on the one-second bins of all flows, and on the link ticks of all groups; a run that would need more does not
/// keep them.
pub const MAX_BINS: u64 = 4_000_000;

/// How a flow's goodput varies on one time scale, over whole bins of the measured span; NaN if
/// there are fewer than two bins or all are empty.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Roughness {
    /// Coefficient of variation: population standard deviation over mean.
    pub cov: f64,
    /// Rate of change: mean absolute difference of neighbouring bins over their mean.
    pub change: f64,
}

impl Roughness {
    /// The roughness of an empty series.
    pub const NONE: Roughness = Roughness { cov: f64::NAN, change: f64::NAN };
}

/// A flow's goodput over time.
#[derive(Clone, Debug)]
pub struct FlowDetail {
    /// One per scale of [`SCALES_MS`].
    pub roughness: [Roughness; SCALES_MS.len()],
    /// The second of the measured span at which [`seconds`](FlowDetail::seconds) begins.
    pub first: usize,
    /// In-order bytes per second, up to the last second in which any arrived; empty beyond
    /// [`MAX_BINS`].
    pub seconds: Vec<u64>,
}

/// The times for which each limit kept a flow's sender from sending more, in seconds of the measured span while the
/// flow lasted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct LimitedTimes {
    /// The handshake.
    pub opening_s: f64,
    /// The controller's window.
    pub cwnd_s: f64,
    /// The controller's rate.
    pub pacing_s: f64,
    /// The send buffer: `sndbuf_limited` of Linux's `tcp_info`.
    pub sndbuf_s: f64,
    /// The receive window: `rwnd_limited`.
    pub rwnd_s: f64,
    /// The application, which had not written more data.
    pub app_s: f64,
}

impl LimitedTimes {
    /// The sum, which is the flow's time in the measured span.
    pub fn total_s(&self) -> f64 {
        self.opening_s + self.cwnd_s + self.pacing_s + self.sndbuf_s + self.rwnd_s + self.app_s
    }
}

/// Counts of one flow, and of one transfer for `web`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FlowResult {
    /// When its application started.
    pub start: Time,
    /// When the receiver had its whole transfer; `None` if it was not completed.
    pub done: Option<Time>,
    /// Size of its transfer in bytes; 0 if the source is endless or has not begun.
    pub wanted_bytes: u64,
    /// Application bytes delivered: in order for TCP, without duplicates for datagrams. Bytes that
    /// arrived before the measured span and became in-order within it do not count.
    pub goodput_bytes: u64,
    /// Application bytes sent, including retransmissions.
    pub sent_bytes: u64,
    /// Data packets sent, including retransmissions.
    pub sent_packets: u64,
    /// Data packets sent again, of `sent_packets`.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Loss episodes detected without a timeout.
    pub episodes: u64,
    /// Reactions to ECN marks, at most one per window; TCP only.
    pub marks: u64,
    /// Packets declared lost, without those that arrived late; for TCP, its retransmissions.
    pub lost_packets: u64,
    /// Packets declared lost that arrived late; only for streams over rrtp's endpoint.
    pub spurious_losses: u64,
    /// Messages that expired before they could be sent (datagrams only).
    pub expired: u64,
    /// Mean and population standard deviation of in-order bytes per bin of 1 s, over whole bins of
    /// the measured span; `None` if there are fewer than two.
    pub bins_1s: Option<(f64, f64)>,
    /// Variation on other time scales; `None` if no data arrived.
    pub detail: Option<Box<FlowDetail>>,
    /// Segments cumulatively acknowledged since the start, including the SYN.
    pub acknowledged: u64,
    /// The limits that held its sender back.
    pub limited: LimitedTimes,
    /// Its frames; `None` if its source writes no frames.
    pub frames: Option<Box<FrameResult>>,
    /// The receiver's classification of losses; `None` without a classifier.
    pub classifier_counts: Option<ClassifierCounts>,
    /// Its paths; `None` if there is one.
    pub multipath: Option<Box<MultipathResult>>,
}

/// The paths of a flow with several, since the start.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct MultipathResult {
    /// One per path, in the order of the specification.
    pub paths: Vec<PathResult>,
    /// Most bytes that waited at the receiver for earlier ones.
    pub max_reorder_bytes: u64,
    /// Application bytes that arrived more than once.
    pub duplicate_bytes: u64,
}

/// A path of a flow with several, since the start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct PathResult {
    /// Application bytes sent, with those sent again.
    pub sent_bytes: u64,
    /// Of these, bytes of which another copy was in flight on another path.
    pub copied_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Smoothed RTT at the end, in seconds.
    pub srtt_s: f64,
}

/// The frames of one flow with a play-out time within the measured span. A frame is shown if its base layer is complete
/// by its time; dependencies between frames are not modelled.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FrameResult {
    /// Frames with a play-out time in the measured span.
    pub due: u64,
    /// Of these, frames with a complete base layer that was too late.
    pub late: u64,
    /// Of these, frames that were not shown: late or never complete.
    pub frozen: u64,
    /// Freezes as the W3C's webrtc-stats defines `freezeCount`: the time from one shown frame to the next was longer
    /// than three frame intervals and than one interval and 150 ms.
    pub stalls: u64,
    /// Changes of the number of layers that frames were sent with, from each frame to the next.
    pub switches: u64,
    /// Consecutive layers shown from the base upwards, summed over the due frames; 0 for a frozen frame.
    pub layers: u64,
    /// Most layers of the source.
    pub most_layers: usize,
    /// Seconds in which they were due.
    pub span_s: f64,
    /// Nanoseconds from a frame's base layer being written until all of it had arrived; without frames that did not
    /// arrive within a minute of their time.
    pub delay: Histogram,
}

/// Missing packets by their true cause and by the receiver's loss classifier (`transport::loss_classifier`). A drop by
/// a metered link's queue is congestion; every other packet that was missing when a later one arrived counts as radio
/// loss, including late packets and drops on unmetered links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClassifierCounts {
    /// Dropped by a queue.
    pub congestion: u64,
    /// Of these, classified as radio losses.
    pub congestion_judged_radio: u64,
    /// Lost in another way.
    pub radio: u64,
    /// Of these, classified as congestion.
    pub radio_judged_congestion: u64,
}

/// The results of a metered link.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LinkResult {
    /// As in the specification.
    pub name: String,
    /// Bits that it could have served.
    pub capacity_bits: f64,
    /// Bits that it served, for all groups, including ACKs.
    pub served_bits: f64,
    /// Time average of the number of waiting packets, without the one in transmission.
    pub queue_mean: f64,
    /// Largest number of waiting packets.
    pub queue_max: u64,
    /// Whether the queue discipline is not drop-tail.
    pub managed: bool,
    /// The average that the queue itself keeps (`red`, `cw`); `None` for other disciplines, or
    /// without arrivals.
    pub average: Option<QueueAverage>,
    /// One per group, in the order of the specification.
    pub groups: Vec<LinkGroup>,
    /// Data bits per tick of [`LINK_TICK_S`], per group. Empty beyond [`MAX_BINS`].
    pub ticks: Vec<LinkTicks>,
}

/// Length of a tick of [`LinkTicks`] in seconds.
pub const LINK_TICK_S: f64 = 0.1;

/// A group's data bits on a link over time, in whole ticks from the start of the measured span.
#[derive(Clone, Debug, Default)]
pub struct LinkTicks {
    /// Bits that arrived at the queue.
    pub offered: Vec<f64>,
    /// Bits served.
    pub served: Vec<f64>,
}

/// The average queue in packets that the discipline itself keeps, sampled at each arrival of the
/// measured span.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct QueueAverage {
    /// Smallest, in packets.
    pub min: f64,
    /// Mean over arrivals, in packets.
    pub mean: f64,
    /// Largest, in packets.
    pub max: f64,
}

/// Counters of a group's data packets on a link. ACKs count only in [`LinkResult::served_bits`] and in the queue.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LinkGroup {
    /// Packets that arrived at the queue.
    pub offered: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that the queue marked (CE); they stayed in the queue.
    pub marked: u64,
    /// Packets lost after transmission.
    pub lost: u64,
    /// Packets served.
    pub served: u64,
    /// Bits of the packets served.
    pub served_bits: f64,
    /// Bytes that arrived at the queue.
    pub offered_bytes: u64,
    /// The link's capacity for data that reached the group's receivers within the measured span: both ends of the span
    /// are shifted back by the propagation delay from this link to the receiver. Mean over the flows.
    pub arriving_capacity_bits: f64,
}

/// A time series: named columns of equal length.
#[derive(Clone, Debug)]
pub struct SeriesTable {
    /// `flow` or `link`; the lab crate adds `group`.
    pub kind: &'static str,
    /// The flow's, link's or group's name.
    pub name: String,
    /// The group's name; empty for links.
    pub group: String,
    /// Sample times in seconds.
    pub time_s: Vec<f64>,
    /// Columns by name, as explained in [`COLUMNS`](crate::COLUMNS) and in the entry of the flow's controller. Missing
    /// values are NaN.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

impl SeriesTable {
    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|c| c.0 == name).map(|c| c.1.as_slice())
    }
}
