//! The configuration of a link. A link has one direction; a duplex path has two links.

use crate::jitter::JitterForm;
use crate::loss::LossSpec;
use crate::policer::PolicerConfig;
use crate::trace::Trace;
use narrows_base::{Duration, Rate, Spec};
use std::sync::Arc;

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Serialisation rate.
    pub rate: Rate,
    /// Delivery opportunities; if present, they replace the rate.
    pub trace: Option<Arc<Trace>>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// The queue before the transmitter.
    pub queue: QueueConfig,
    /// Loss processes, applied after transmission; a packet survives if it survives all of them.
    pub loss: Vec<LossSpec>,
    /// Jitter, reordering, duplication, corruption, policing.
    pub impairments: Impairments,
    /// Whether rate, delay or loss change during the run.
    pub changes: bool,
}

impl LinkConfig {
    /// A link without losses and with an unlimited queue.
    pub fn plain(rate: Rate, delay: Duration) -> LinkConfig {
        LinkConfig {
            rate,
            trace: None,
            delay,
            queue: QueueConfig::default(),
            loss: Vec::new(),
            impairments: Impairments::default(),
            changes: false,
        }
    }

    /// Whether this equals [`plain`](LinkConfig::plain) of this rate and delay.
    pub fn is_plain(&self, rate: Rate, delay: Duration) -> bool {
        self.rate == rate
            && self.delay == delay
            && self.trace.is_none()
            && self.queue == QueueConfig::default()
            && self.loss.is_empty()
            && self.impairments == Impairments::default()
            && !self.changes
    }
}

/// How many packets may wait; the one in transmission is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// Packets are never dropped for lack of space.
    #[default]
    Unlimited,
    /// At most this many packets wait.
    Packets(u64),
    /// At most this many bytes wait.
    Bytes(u64),
    /// A packet may wait if at least one of the two limits admits it.
    Either {
        /// At most this many packets wait.
        packets: u64,
        /// At most this many bytes wait.
        bytes: u64,
    },
}

impl QueueLimit {
    /// Whether a queue of this many packets and bytes is within the limit.
    #[inline]
    pub const fn admits(self, packets: u64, bytes: u64) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(max) => packets <= max,
            QueueLimit::Bytes(max) => bytes <= max,
            QueueLimit::Either { packets: max, bytes: most_bytes } => {
                packets <= max || bytes <= most_bytes
            }
        }
    }
}

/// A queue: its limit and its discipline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueConfig {
    /// Limit on the waiting packets.
    pub limit: QueueLimit,
    /// Name and parameters of a discipline in [`crate::queue::QUEUES`]; `None` is drop-tail.
    pub aqm: Option<Spec>,
}

/// Effects on packets other than queueing, delay and loss.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairments {
    /// Size of the jitter: by default extra delay, uniform in [0, jitter), and packets keep their order.
    pub jitter: Duration,
    /// The jitter's distribution. The size is its half width or standard deviation.
    pub jitter_form: JitterForm,
    /// Probability that a packet is held back so that later ones overtake it.
    pub reorder: f64,
    /// The extra delay of a packet that is held back.
    pub reorder_by: Duration,
    /// Sends some packets without delay, so that they overtake earlier ones: netem's reordering.
    pub early: Option<EarlyConfig>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives damaged.
    pub corrupt: f64,
    /// Drops packets that exceed a rate.
    pub policer: Option<PolicerConfig>,
    /// Drops packets of more bytes, headers included, before the queue.
    pub mtu: Option<u32>,
}

impl Impairments {
    /// Whether the order and number of packets stay unchanged: no reordering, no duplication.
    pub fn orderly(&self) -> bool {
        self.reorder == 0.0
            && self.duplicate == 0.0
            && self.early.is_none()
            && !self.jitter_form.overtakes
    }
}

/// Linux netem's `reorder SHARE CORRELATION gap GAP`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarlyConfig {
    /// Share of the packets that may go early and do.
    pub share: f64,
    /// How much of each random number is the one before: 0 to 1.
    pub correlation: f64,
    /// At least `gap` - 1 packets that are delayed lie between two early ones; at least 1.
    pub gap: u64,
}

/// A change of a link during a run.
#[derive(Clone, Debug)]
pub enum LinkChange {
    /// A new rate; the packet in transmission finishes at the old rate.
    Rate(Rate),
    /// A new propagation delay; packets never overtake those already on the way.
    Delay(Duration),
    /// New loss processes, which replace the old ones.
    Loss(Vec<LossSpec>),
    /// A new MTU in bytes; packets that wait already still leave.
    Mtu(u32),
}
