//! Log of single packets, which can be read during a run.

use narrows_base::{Duration, Packet, Time};

/// Kinds of events of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PacketEventKind {
    /// It was sent.
    Sent {
        /// Whether its data had been sent before.
        again: bool,
    },
    /// An acknowledgement arrived: up to this number for TCP, of this number for datagrams.
    Acknowledged,
    /// The queue of a metered link dropped it.
    Dropped,
    /// It was lost on a metered link, after its transmission.
    Lost,
}

/// An event of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PacketEvent {
    /// Time of the event; a loss may be logged before its time.
    pub at: Time,
    /// The flow's number.
    pub flow: u32,
    /// Sequence number of the segment; for datagrams the packet number.
    pub number: u64,
    /// The kind of event.
    pub kind: PacketEventKind,
}

/// Events since the last call of [`Simulation::packets`](crate::Simulation::packets).
#[derive(Debug, Default)]
pub(crate) struct PacketLog {
    /// Sent and acknowledged packets are logged for flows below this number.
    flows: u32,
    pub events: Vec<PacketEvent>,
    /// RTT of each flow's last acknowledgement.
    pub rtts: Vec<Duration>,
    /// Bits of each flow that arrived at the receiver.
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
