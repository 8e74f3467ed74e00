//! Single packets of a run, for those who look at it while it goes on.

use narrows_base::{Duration, Packet, Time};

/// What happened to a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PacketEventKind {
    /// It was sent, for the first time if not `again`.
    Sent {
        /// Whether these data had been sent before.
        again: bool,
    },
    /// An acknowledgement arrived: up to this number for TCP, of this number for datagrams.
    Acknowledged,
    /// The queue of a metered link dropped it.
    Dropped,
    /// It was lost on a metered link, after its transmission.
    Lost,
}

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PacketEvent {
    /// When; a loss may be known before it happens.
    pub at: Time,
    /// The flow's number.
    pub flow: u32,
    /// Sequence number of the segment; for datagrams the packet number.
    pub number: u64,
    /// What.
    pub kind: PacketEventKind,
}

/// What is kept between two calls of [`Simulation::packets`](crate::Simulation::packets).
#[derive(Debug, Default)]
pub(crate) struct PacketLog {
    /// Flows whose sent and acknowledged packets are kept.
    flows: u32,
    pub events: Vec<PacketEvent>,
    /// Of each flow the RTT that the last acknowledgement showed.
    pub rtts: Vec<Duration>,
    /// Bits of each flow that arrived.
    pub received_bits: Vec<f64>,
}

impl PacketLog {
    pub fn new(logged: usize, flows: usize) -> PacketLog {
        PacketLog {
            flows: u32::try_from(logged).unwrap_or(u32::MAX),
            events: Vec::new(),
            rtts: vec![Duration::ZERO; flows],
            received_bits: vec![0.0; flows],
        }
    }
    fn push(&mut self, at: Time, flow: u32, number: u64, kind: PacketEventKind) {
        if flow < self.flows {
            self.events.push(PacketEvent { at, flow, number, kind });
        }
    }
    #[cold]
    pub fn sent(&mut self, now: Time, packet: &Packet) {
        let again = packet.has(Packet::RETRANSMISSION);
        self.push(now, packet.flow, packet.seq, PacketEventKind::Sent { again });
    }
    #[cold]
    pub fn acknowledged(&mut self, now: Time, packet: &Packet) {
        if let Some(rtt) = self.rtts.get_mut(packet.flow as usize) {
            *rtt = now.since(packet.stamp);
        }
        // A datagram's acknowledgement has no cumulative number.
        let number = if packet.seq > 0 { packet.seq } else { u64::from(packet.number) };
        self.push(now, packet.flow, number, PacketEventKind::Acknowledged);
    }
    #[cold]
    pub fn arrived(&mut self, packet: &Packet) {
        if let Some(bits) = self.received_bits.get_mut(packet.flow as usize) {
            *bits += f64::from(packet.size) * 8.0;
        }
    }
}
