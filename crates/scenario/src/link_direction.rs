//! One direction of a link as users describe it: rate, delay, queue, losses.
//!
//! Shared by the one-line link specification and by scenario files, so that a key means the same
//! in both.

use narrows_base::{Duration, Rate, Spec};
use narrows_link::{Impairments, LinkConfig, LossSpec, QueueConfig, QueueLimit, Trace};
use std::path::PathBuf;
use std::sync::Arc;

/// No router's queue is smaller than this many packets unless somebody says so.
pub const MIN_QUEUE_PACKETS: u64 = 10;

/// Room in a queue, before a bandwidth-delay product has become a number of packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueSize {
    /// A fixed limit.
    Fixed(QueueLimit),
    /// So many times rate × base RTT: in bytes, and in full packets rounded up.
    Bdp(f64),
    /// The same, but at least so many packets: `max(1bdp,5p)`.
    AtLeast(f64, u64),
    /// So many times rate × base RTT in packets of any size, rounded up, and at least so many: `packets(1bdp,5p)`.
    /// Such are the queues of ns-2.
    InPackets(f64, u64),
    /// What a link has when nothing is said: one such product, at least [`MIN_QUEUE_PACKETS`] packets.
    Usual,
}

/// Where a run enters a trace, which repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceStart {
    /// This far into it.
    At(Duration),
    /// Anywhere, drawn per seed.
    Random,
}

/// One direction of a link as specified.
#[derive(Clone, Debug)]
pub struct LinkDirection {
    /// Serialisation rate.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Waiting room.
    pub queue_size: QueueSize,
    /// Queue management; `None` is drop-tail.
    pub aqm: Option<Spec>,
    /// Losses.
    pub loss: Vec<LossSpec>,
    /// Delivery opportunities that replace the rate, and the file that they came from.
    pub trace: Option<(PathBuf, Arc<Trace>)>,
    /// Where runs enter the trace; `None` is its beginning, unless a comparison says otherwise.
    pub trace_start: Option<TraceStart>,
    /// Jitter, reordering, duplication, corruption.
    pub impairments: Impairments,
}

impl LinkDirection {
    /// Without losses.
    pub fn new(rate: Rate, delay: Duration, queue_size: QueueSize) -> LinkDirection {
        LinkDirection {
            rate,
            delay,
            queue_size,
            aqm: None,
            loss: Vec::new(),
            trace: None,
            trace_start: None,
            impairments: Impairments::default(),
        }
    }

    /// What the other direction is when nothing is said: same rate, delay and queue, no loss.
    pub fn mirrored(&self) -> LinkDirection {
        LinkDirection {
            aqm: self.aqm.clone(),
            ..LinkDirection::new(self.rate, self.delay, self.queue_size)
        }
    }

    /// Rate in bit/s, of the trace if there is one.
    pub fn mean_bps(&self) -> f64 {
        self.trace.as_ref().map_or(self.rate.as_bps() as f64, |t| t.1.mean_bps())
    }

    /// The room for this base RTT and these packets. A BDP has room for so many packets of any size, and for as many
    /// more as its bytes hold: full packets are counted, and a burst of small ones fits.
    pub fn limit(&self, base_rtt: Duration, packet_bytes: u32) -> QueueLimit {
        let (factor, fewest) = match self.queue_size {
            QueueSize::Fixed(limit) => return limit,
            QueueSize::Bdp(factor) => (factor, 0),
            QueueSize::AtLeast(factor, fewest) => (factor, fewest),
            QueueSize::InPackets(factor, fewest) => (factor, fewest),
            QueueSize::Usual => (1.0, MIN_QUEUE_PACKETS),
        };
        let packets = bdp_packets(self.mean_bps(), base_rtt, packet_bytes, factor).max(fewest);
        if matches!(self.queue_size, QueueSize::InPackets(..)) {
            return QueueLimit::Packets(packets);
        }
        let bytes = bdp_packets(self.mean_bps(), base_rtt, 1, factor);
        QueueLimit::Either { packets, bytes }
    }

    /// The same with its queue as a number of packets or bytes, never as a BDP.
    #[must_use]
    pub fn resolved(self, base_rtt: Duration, packet_bytes: u32) -> LinkDirection {
        LinkDirection { queue_size: QueueSize::Fixed(self.limit(base_rtt, packet_bytes)), ..self }
    }

    /// For the simulator.
    pub fn config(&self, base_rtt: Duration, packet_bytes: u32, changes: bool) -> LinkConfig {
        LinkConfig {
            rate: self.rate,
            trace: self.trace.as_ref().map(|t| t.1.clone()),
            delay: self.delay,
            queue: QueueConfig { limit: self.limit(base_rtt, packet_bytes), aqm: self.aqm.clone() },
            loss: self.loss.clone(),
            impairments: self.impairments,
            changes,
        }
    }
}

/// `factor` × rate × base RTT in whole packets, rounded up.
pub fn bdp_packets(bps: f64, base_rtt: Duration, packet_bytes: u32, factor: f64) -> u64 {
    let bits = f64::from(packet_bytes.max(1)) * 8.0;
    let packets = bps * (base_rtt.as_nanos() as f64) * factor / 1e9 / bits;
    // 1.5 Mbit/s × 0.16 s is 30 packets, not 31: a float's last digits are not a packet.
    (packets - packets * 1e-12).ceil() as u64
}
