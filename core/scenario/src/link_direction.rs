//! One direction of a link as users describe it: rate, delay, queue, losses.
//!
//! Shared by the one-line link specification and by scenario files, so that a key means the same
//! in both.

use narrows_base::{Duration, RandomKey, Rate, Spec, SpecError};
use narrows_link::{Impairments, LinkConfig, LossSpec, QueueConfig, QueueLimit, Trace};
use std::path::PathBuf;
use std::sync::Arc;

/// Smallest default queue in packets.
pub const MIN_QUEUE_PACKETS: u64 = 10;

/// Size of a queue, before a BDP is converted to packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueSize {
    /// A fixed limit.
    Fixed(QueueLimit),
    /// In multiples of rate × base RTT: in bytes, and in full packets rounded up.
    Bdp(f64),
    /// The same, but at least this number of packets: `max(1bdp,5p)`.
    AtLeast(f64, u64),
    /// In multiples of rate × base RTT, in packets of any size, rounded up, and at least this number:
    /// `packets(1bdp,5p)`. ns-2 has such queues.
    InPackets(f64, u64),
    /// The default: one BDP, at least [`MIN_QUEUE_PACKETS`] packets.
    Usual,
}

/// The point in a repeating trace at which a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceStart {
    /// This far from its beginning.
    At(Duration),
    /// At a random point, drawn per seed.
    Random,
}

impl TraceStart {
    /// Shifts the trace of the link of this name, if it has one, so that a run with this seed begins there.
    pub fn enter(self, config: &mut LinkConfig, name: &str, seed: u64) {
        let Some(trace) = &config.trace else { return };
        let offset = match self {
            TraceStart::At(offset) => offset,
            TraceStart::Random => {
                let key = RandomKey::from_seed(seed).named("trace-start").named(name);
                trace.period().mul_f64(key.draw(0))
            }
        };
        config.trace = Some(Arc::new(trace.entered_at(offset)));
    }
}

/// One direction of a link as specified.
#[derive(Clone, Debug)]
pub struct LinkDirection {
    /// Serialisation rate.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Limit on waiting packets or bytes.
    pub queue_size: QueueSize,
    /// Queue management; `None` is drop-tail.
    pub aqm: Option<Spec>,
    /// Loss processes; all apply to each packet.
    pub loss: Vec<LossSpec>,
    /// Delivery opportunities that replace the rate, and the file that they came from.
    pub trace: Option<(PathBuf, Arc<Trace>)>,
    /// Where runs begin in the trace; `None` is its beginning, unless a comparison draws it.
    pub trace_start: Option<TraceStart>,
    /// Jitter, reordering, duplication, corruption.
    pub impairments: Impairments,
}

impl LinkDirection {
    /// A direction without losses and impairments.
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

    /// The default for the other direction: same rate, delay, queue and MTU, no loss.
    pub fn mirrored(&self) -> LinkDirection {
        LinkDirection {
            aqm: self.aqm.clone(),
            impairments: Impairments { mtu: self.impairments.mtu, ..Impairments::default() },
            ..LinkDirection::new(self.rate, self.delay, self.queue_size)
        }
    }

    /// Rate in bit/s; with a trace, its mean.
    pub fn mean_bps(&self) -> f64 {
        self.trace.as_ref().map_or(self.rate.as_bps() as f64, |t| t.1.mean_bps())
    }

    /// The queue's limit for this base RTT and packet size. A BDP is a number of packets of any size, or as many more
    /// as fit into its bytes: full packets are counted, and a burst of small ones fits.
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

    /// Checks that a simulated packet of this many bytes passes.
    ///
    /// # Errors
    /// It exceeds the MTU.
    pub fn carries(&self, packet_bytes: u32) -> Result<(), SpecError> {
        let Some(mtu) = self.impairments.mtu.filter(|mtu| packet_bytes > *mtu) else {
            return Ok(());
        };
        Err(SpecError::new(format!(
            "mtu={mtu}B: no packet of {packet_bytes} bytes passes, and simulated senders do not search for a smaller \
             size; make packets smaller, or emulate the link (narrows link, narrows relay)"
        )))
    }

    /// The same with its queue as a number of packets or bytes, never in BDPs.
    #[must_use]
    pub fn resolved(self, base_rtt: Duration, packet_bytes: u32) -> LinkDirection {
        LinkDirection { queue_size: QueueSize::Fixed(self.limit(base_rtt, packet_bytes)), ..self }
    }

    /// The simulator's configuration; `changes`: whether scheduled changes apply to it.
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
    // 1.5 Mbit/s × 0.16 s is 30 packets: a float's rounding error must not make it 31.
    (packets - packets * 1e-12).ceil() as u64
}
