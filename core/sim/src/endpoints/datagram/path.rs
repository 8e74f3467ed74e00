//! One path of a sender: the [packet sender](narrows_recovery::packet_sender), the handshake before it, and the fields of
//! its simulated packets. A sender with one path has one of them, a `multipath` sender has several.

use super::handshake::{Handshake, HandshakeRtt};
use super::header::{self, DataHeader};
use super::stream::SentRange;
use crate::protocol::DatagramConfig;
use narrows_base::{Packet, Time, random, run};
use narrows_congestion::{Controller, HintSource, RateSample};
use narrows_recovery::packet_sender::{AckReport, PacketSender, PacketSenderConfig, PayloadSource};

/// A path of a sender.
pub(in crate::endpoints) struct DatagramPath {
    pub sender: PacketSender<SentRange>,
    /// Flow number of its packets.
    pub flow: u32,
    pub payload: u32,
    pub header: u32,
    /// Bytes on the wire of a packet without data.
    pub empty: u32,
    ect: u8,
    random_key: u64,
    /// Present until the peer has the keys.
    handshake: Option<Handshake>,
    /// Packets of the handshake, which precede the data in the numbering for random losses.
    before: u64,
}

impl DatagramPath {
    /// A path whose packets have flow number `flow`; `random_key` is the key for losses.
    pub fn new(
        config: &DatagramConfig,
        controller: Box<dyn Controller>,
        flow: u32,
        random_key: u64,
    ) -> DatagramPath {
        let carrying = PacketSenderConfig {
            credit: config.credit,
            max_ack_delay: config.feedback.max_ack_delay,
            rto: config.rto,
            packet: config.packet_bytes,
            paces_windows: config.window_pacing,
            hints: (config.hints, HintSource::User),
        };
        // An L4S controller needs marks, so its packets are ECN-capable even if the scenario does not enable ECN.
        let ect = match (controller.requirements().l4s, config.ecn) {
            (true, _) => Packet::ECT | Packet::ECT1,
            (false, true) => Packet::ECT,
            (false, false) => 0,
        };
        DatagramPath {
            sender: PacketSender::new(&carrying, controller),
            flow,
            payload: config.payload(),
            header: config.header_bytes,
            empty: config.report_bytes,
            ect,
            random_key,
            handshake: Handshake::new(config.handshake, &config.hints),
            before: 0,
        }
    }

    /// Starts the handshake.
    pub fn open(&mut self, now: Time) {
        if let Some(handshake) = &mut self.handshake {
            handshake.open(now);
        }
    }
    /// Whether the handshake is in progress, or its end not confirmed.
    #[inline]
    pub fn has_handshake(&self) -> bool {
        self.handshake.is_some()
    }
    /// Whether data may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.handshake.as_ref().is_none_or(Handshake::is_open)
    }
    /// When the next packet of the handshake is due.
    pub fn handshake_due(&self) -> Time {
        self.handshake.as_ref().map_or(Time::NEVER, Handshake::due)
    }

    /// Sends a packet with this range and this size on the wire.
    pub fn send(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = SentRange>,
        range: SentRange,
        bytes: u32,
    ) -> Packet {
        let seq = self.sender.next_number();
        self.sender.sent(now, source, bytes, range, range.again);
        self.handshake.iter_mut().for_each(Handshake::on_data);
        self.packet(now, seq, range, bytes)
    }

    /// Builds packet `seq`, which the packet sender has just sent.
    fn packet(&self, now: Time, seq: u64, range: SentRange, bytes: u32) -> Packet {
        let mut packet = Packet {
            seq,
            stamp: now,
            random_key: random::mix(self.random_key.wrapping_add(self.before + seq)) as u32,
            flow: self.flow,
            size: bytes.min(65_535) as u16,
            flags: self.ect | if range.again { Packet::RETRANSMISSION } else { 0 },
            ..Packet::default()
        };
        let data = DataHeader {
            payload: range.length as u16,
            // At most `MAX_SENT_PACKETS` have an unknown outcome.
            least_unacked: (seq - self.sender.least_unacked().min(seq)) as u16,
            offset: range.offset,
            feedback: self.sender.controller().feedback_to_receiver(),
            spacing: self.sender.report_spacing().0,
        };
        header::write_data(&mut packet, &data);
        packet
    }

    #[cold]
    pub fn next_handshake_packet(&mut self, now: Time) -> Option<Packet> {
        let handshake = self.handshake.as_mut()?;
        let before = handshake.sent() + self.sender.next_number();
        let random_key = self.random_key.wrapping_add(before);
        let (seq, size) = handshake.next_packet(now)?;
        self.before = handshake.sent();
        Some(Packet {
            seq,
            stamp: now,
            random_key: random::mix(random_key) as u32,
            flow: self.flow,
            size,
            flags: Packet::SYN,
            ..Packet::default()
        })
    }

    /// A packet of the server during the handshake; true if it is no report.
    #[cold]
    pub fn on_answer(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(handshake) = &mut self.handshake else { return packet.has(Packet::SYN) };
        if !packet.has(Packet::SYN) {
            handshake.on_report();
            self.handshake = None;
            return false;
        }
        if !packet.has(Packet::CORRUPT) {
            let (rtt, dispersion) = handshake.on_answer(now, packet);
            match rtt {
                Some(HandshakeRtt::Is(rtt)) => self.sender.seed_rtt(now, rtt),
                Some(HandshakeRtt::AtMost(rtt)) => self.sender.limit_rtt(rtt),
                None => {}
            }
            if let Some(dispersion) = dispersion {
                self.sender.on_dispersion(now, &dispersion);
            }
        }
        true
    }

    /// A report arrived. Returns its delivery rate sample, if there is one.
    pub fn on_report(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = SentRange>,
        p: &Packet,
    ) -> Option<RateSample> {
        let highest = header::report_end(p).checked_sub(1)?;
        if p.has(Packet::CORRUPT) || !self.sender.is_relevant(highest) {
            return None;
        }
        let (vector, feedback, marks) = header::read_report(p);
        let rtt = now.since(p.stamp);
        let forward = header::forward_time(p);
        let ack_report = AckReport { largest_acked: highest, rtt, forward, marks, feedback };
        let arrived = run::arrived(highest, vector.runs());
        let missing = run::missing(highest, vector.runs());
        let radio = missing.filter(|m| m.2).map(|(from, to, _)| (from, to));
        self.sender.on_report(now, source, &ack_report, arrived, radio)
    }
}
