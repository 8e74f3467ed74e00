//! The receiving side of datagrams: maps the fields of simulated packets to the packet receiver
//! (`packet_receiver`), and reassembles the data.

use super::assembly::Assembly;
use super::handshake;
use super::header::{self, AckVector};
use super::nack::Nacks;
use crate::protocol::{DatagramConfig, OpeningExchange, StreamRecovery};
use narrows_base::{Duration, Packet, ReplayWindow, Time, random};
use narrows_congestion::ReceiverSide;
use narrows_recovery::loss_classifier::LossTracker;
use narrows_recovery::packet_receiver::{PacketReceiver, ReceivedPacket, ReceiverConfig};
use narrows_recovery::ranges::Ranges;

/// A datagram receiver. As in a connection, the ACK policy and the controller's receiver side decide when reports are
/// sent.
pub struct DatagramReceiver {
    receiver: PacketReceiver<Ranges>,
    /// Drops duplicates, as the decryption of real packets does.
    replay: ReplayWindow,
    flow: u32,
    report_bytes: u16,
    /// Whether the client's handshake is complete, or not needed.
    open: bool,
    /// Reassembly, for a stream.
    assembly: Option<Box<Assembly>>,
    /// Its NACKs, with `recovery=nack`.
    nacks: Option<Box<Nacks>>,
    /// The shortest one-way time of a packet; zero before the first.
    one_way: Duration,
    delivered: u64,
    packets: u64,
    reports: u32,
    random_key: u64,
}

impl DatagramReceiver {
    /// For one flow; `random_key` is the flow's key for losses on the return path.
    pub fn new(
        config: &DatagramConfig,
        side: Option<Box<dyn ReceiverSide>>,
        flow: u32,
        random_key: u64,
    ) -> DatagramReceiver {
        let feedback = &config.feedback;
        let reports =
            ReceiverConfig { ack_every: feedback.ack_every, max_ack_delay: feedback.max_ack_delay };
        DatagramReceiver {
            receiver: PacketReceiver::new(&reports, side, feedback.classifier.tracker()),
            replay: ReplayWindow::default(),
            flow,
            report_bytes: config.report_bytes.min(65_535) as u16,
            open: config.handshake == OpeningExchange::None,
            assembly: config.reliable.then(Box::default),
            nacks: (config.recovery == StreamRecovery::Nack).then(Box::default),
            one_way: Duration::ZERO,
            delivered: 0,
            packets: 0,
            reports: 0,
            random_key: random_key ^ 0xAC0_AC0,
        }
    }

    /// Sets the flow number of its reports.
    pub(in crate::endpoints) fn set_flow(&mut self, flow: u32) {
        self.flow = flow;
    }
    /// A data packet arrived. Returns the report to send now, if any.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        if p.has(Packet::CORRUPT) {
            return None;
        }
        if p.has(Packet::SYN) {
            return self.on_handshake(p);
        }
        if !self.open {
            return None;
        }
        let data = header::read_data(p);
        let has_room = self.assembly.as_ref().is_none_or(|a| a.has_room(data.offset, p.payload()));
        if !has_room || !self.replay.mark(p.seq) {
            return None;
        }
        match &mut self.assembly {
            Some(a) => self.packets += u64::from(a.take(data.offset, p.payload()) > 0),
            None => {
                self.delivered += u64::from(p.payload());
                self.packets += u64::from(p.payload() > 0);
            }
        }
        // A connection gets the RTT from its handshake. Here the clocks agree, so twice the shortest one-way time is
        // used.
        let one_way = now.since(p.stamp);
        self.one_way =
            if self.one_way == Duration::ZERO { one_way } else { self.one_way.min(one_way) };
        let rtt = self.one_way.saturating_mul(2);
        if let Some(nacks) = &mut self.nacks {
            let bytes = (data.offset, data.offset + u64::from(p.payload()));
            nacks.on_packet(now, p.stamp, bytes, one_way + self.one_way);
        }
        self.receiver.on_feedback(data.feedback);
        self.receiver.on_spacing(data.spacing, rtt);
        let packet = ReceivedPacket {
            number: p.seq,
            nonce: (),
            sent: p.stamp,
            least_unacked: p.seq.saturating_sub(u64::from(data.least_unacked)),
            bytes: u32::from(p.size),
            marked: p.has(Packet::CE),
            ack_eliciting: true,
            uncounted: 0,
        };
        self.receiver.on_packet(now, &packet, rtt);
        self.answer(now)
    }

    /// The packet that is due now, if any; the timer fires at once if another is due.
    #[inline]
    fn answer(&mut self, now: Time) -> Option<Packet> {
        self.report(now).or_else(|| self.nack(now))
    }

    /// The NACK that is due now, if any.
    #[inline]
    fn nack(&mut self, now: Time) -> Option<Packet> {
        let request = self.nacks.as_mut()?.take(now)?;
        self.reports = self.reports.wrapping_add(1);
        let mut packet = Packet {
            stamp: request.stamp,
            random_key: random::mix(self.random_key.wrapping_add(u64::from(self.reports))) as u32,
            flow: self.flow,
            size: self.report_bytes,
            flags: Packet::ACK | header::NACK,
            ..Packet::default()
        };
        header::write_nack(&mut packet, &request.ranges);
        Some(packet)
    }

    /// Returns the answer to a handshake packet.
    #[cold]
    fn on_handshake(&mut self, p: &Packet) -> Option<Packet> {
        self.open |= handshake::is_finish(p);
        let size = handshake::answer(p)?;
        self.reports = self.reports.wrapping_add(1);
        Some(Packet {
            stamp: p.stamp,
            random_key: random::mix(self.random_key.wrapping_add(u64::from(self.reports))) as u32,
            size,
            hop: 0,
            flags: Packet::ACK | Packet::SYN,
            ..*p
        })
    }

    /// Frame and layer that a media packet carries; `None` for a stream's packet.
    pub fn frame_of(&self, p: &Packet) -> Option<(u64, u8)> {
        let tag = self.assembly.is_none().then(|| header::read_data(p).offset)?;
        Some((tag >> 8, tag as u8))
    }
    /// Whether it has a loss classifier.
    pub fn classifies(&self) -> bool {
        self.receiver.classifies()
    }
    /// The newest classification of missing packets, returned once, for comparison with the true
    /// cause: packets `[from, to)`, and whether they are attributed to the radio link.
    #[inline]
    pub fn classified(&mut self) -> Option<(u64, u64, bool)> {
        self.receiver.tracker().and_then(LossTracker::classified)
    }

    /// The report that is due now, if any.
    #[inline]
    fn report(&mut self, now: Time) -> Option<Packet> {
        if !self.receiver.must_report(now) {
            return None;
        }
        let fields = self.receiver.report(now, header::room)?;
        let vector =
            AckVector::of(self.receiver.runs(fields.highest), header::room(&fields.feedback));
        self.receiver.on_report_sent(now);
        self.reports = self.reports.wrapping_add(1);
        let mut packet = Packet {
            // The receiver's delay is subtracted here.
            stamp: fields.echo.sent + now.since(fields.echo.came),
            random_key: random::mix(self.random_key.wrapping_add(u64::from(self.reports))) as u32,
            flow: self.flow,
            size: self.report_bytes,
            flags: Packet::ACK,
            ..Packet::default()
        };
        let one_way = fields.echo.came.since(fields.echo.sent);
        header::write_end(&mut packet, fields.highest + 1, one_way);
        header::write_report(&mut packet, &vector, &fields.feedback, fields.marks as u32);
        Some(packet)
    }

    /// When to call [`on_timeout`](DatagramReceiver::on_timeout).
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let nack = self.nacks.as_ref().map_or(Time::NEVER, |n| n.due());
        self.receiver.next_timeout().min(nack)
    }

    /// A timer fired: of the receiver side, a delayed report or a NACK. Returns the packet to send now, if any.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        self.receiver.on_timeout(now);
        self.answer(now)
    }

    /// Application bytes received: in order for a stream, otherwise without duplicates.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.assembly.as_ref().map_or(self.delivered, |a| a.in_order())
    }
    /// Distinct application bytes received, in order or not.
    pub fn received(&self) -> u64 {
        self.assembly.as_ref().map_or(self.delivered, |a| a.received())
    }
    /// Packets received, without duplicates.
    pub fn delivered_packets(&self) -> u64 {
        self.packets
    }
    /// The controller's receiver side, for time series.
    pub fn receiver_side(&self) -> Option<&dyn ReceiverSide> {
        self.receiver.receiver_side()
    }
}

impl std::fmt::Debug for DatagramReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let next = self.receiver.next_number();
        write!(f, "Receiver(flow {}, next {next}, {} came)", self.flow, self.packets)
    }
}
