//! The sending side of datagrams: maps the fields of simulated packets to the [packet sender](narrows_recovery::packet_sender).

use super::handshake::{Handshake, HandshakeRtt};
use super::header::{self, DataHeader};
use super::payload::SimulatedSource;
use super::stream::SentRange;
use crate::endpoints::interface::{SenderInput, SenderOutput, SendingLimit};
use crate::protocol::DatagramConfig;
use narrows_base::{Duration, Machine, Packet, Time, random, run};
use narrows_congestion::{Controller, HintSource, PathHints};
use narrows_recovery::packet_sender::{
    AckReport, Counters, PacketSender, PacketSenderConfig, Permission,
};

/// Sends data or media in numbered packets, with a connection's packet sender.
pub struct DatagramSender {
    sender: PacketSender<SentRange>,
    source: SimulatedSource,
    flow: u32,
    payload: u32,
    header: u32,
    /// Bytes on the wire of a packet without data.
    empty: u32,
    ect: u8,
    random_key: u64,
    open: bool,
    /// Present until the peer has the keys.
    handshake: Option<Handshake>,
    /// Packets of the handshake, which precede the data in the numbering for random losses.
    before: u64,
    limit: SendingLimit,
}

impl DatagramSender {
    /// A sender for flow number `flow`; `random_key` is the flow's key for losses.
    pub fn new(
        config: &DatagramConfig,
        controller: Box<dyn Controller>,
        flow: u32,
        random_key: u64,
    ) -> DatagramSender {
        let carrying = PacketSenderConfig {
            credit: config.credit,
            max_ack_delay: config.feedback.max_ack_delay,
            rto: config.rto,
            packet: config.packet_bytes,
            paces_windows: config.window_pacing,
            hints: (config.hints, HintSource::User),
        };
        let source = SimulatedSource::new(config);
        // An L4S controller needs marks, so its packets are ECN-capable even if the scenario does not enable ECN.
        let ect = match (controller.requirements().l4s, config.ecn) {
            (true, _) => Packet::ECT | Packet::ECT1,
            (false, true) => Packet::ECT,
            (false, false) => 0,
        };
        DatagramSender {
            sender: PacketSender::new(&carrying, controller),
            source,
            flow,
            payload: config.payload(),
            header: config.header_bytes,
            empty: config.report_bytes,
            ect,
            random_key,
            open: false,
            handshake: Handshake::new(config.handshake, &config.hints),
            before: 0,
            limit: SendingLimit::Application,
        }
    }

    /// New path hints from the application.
    pub fn reconfigure(&mut self, now: Time, hints: &PathHints) {
        self.sender.on_path_hints(now, hints, HintSource::User);
    }
    /// The controller, read-only.
    pub fn controller(&self) -> &dyn Controller {
        self.sender.controller()
    }
    /// Mutable access to the controller.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        self.sender.controller_mut()
    }
    /// The limit that it waits for.
    #[inline]
    pub fn limit(&self) -> SendingLimit {
        self.limit
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        Counters { expired: self.source.expired(), ..self.sender.counters() }
    }
    /// Packets sent that neither arrived nor were declared lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.sender.packets_in_flight()
    }
    /// Packets known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.payload, self.payload + self.header)
    }
    /// Application bytes that wait to be sent for the first time; `u64::MAX` if the data have no end.
    pub fn unsent(&self) -> u64 {
        self.source.unsent()
    }
    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.sender.rtt().srtt()
    }

    /// Builds packet `seq`, which the packet sender has just sent.
    fn packet(&self, now: Time, seq: u64, range: SentRange, bytes: u32) -> Packet {
        let mut packet = Packet {
            seq,
            stamp: now,
            number: 0,
            random_key: random::mix(self.random_key.wrapping_add(self.before + seq)) as u32,
            sack: [(0, 0); 3],
            flow: self.flow,
            size: bytes.min(65_535) as u16,
            hop: 0,
            flags: self.ect | if range.again { Packet::RETRANSMISSION } else { 0 },
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
}

impl DatagramSender {
    #[cold]
    fn next_handshake_packet(&mut self, now: Time) -> Option<Packet> {
        let handshake = self.handshake.as_mut()?;
        let before = handshake.sent() + self.sender.next_number();
        let random_key = self.random_key.wrapping_add(before);
        let (seq, size) = handshake.next_packet(now)?;
        self.before = handshake.sent();
        Some(Packet {
            seq,
            stamp: now,
            number: 0,
            random_key: random::mix(random_key) as u32,
            sack: [(0, 0); 3],
            flow: self.flow,
            size,
            hop: 0,
            flags: Packet::SYN,
        })
    }

    /// A packet of the server during the handshake; true if it is no report.
    #[cold]
    fn on_answer(&mut self, now: Time, packet: &Packet) -> bool {
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

    fn handshake_due(&self) -> Time {
        self.handshake.as_ref().map_or(Time::NEVER, Handshake::due)
    }
}

impl DatagramSender {
    /// The next packet's bytes, or the time until which the sender waits.
    #[inline]
    fn next_range(&mut self, now: Time) -> Result<SentRange, Time> {
        match self.sender.permission(now) {
            Permission::Paced(due) => {
                self.limit = SendingLimit::Pacing;
                Err(due)
            }
            Permission::WindowFull => {
                self.limit = SendingLimit::Window;
                Err(Time::NEVER)
            }
            Permission::Now if self.sender.is_short_probe() => Ok(SentRange::default()),
            Permission::Now => self.source.take(now, self.payload).ok_or_else(|| {
                self.sender.nothing_to_send();
                self.limit = SendingLimit::Application;
                Time::NEVER
            }),
        }
    }

    /// A NACK: its ranges are retransmitted.
    #[cold]
    fn on_nack(&mut self, p: &Packet) {
        if !p.has(Packet::CORRUPT) {
            header::read_nack(p).for_each(|(from, to)| self.source.requested(from, to));
        }
    }

    fn on_report(&mut self, now: Time, p: &Packet) {
        let Some(highest) = header::report_end(p).checked_sub(1) else { return };
        if p.has(Packet::CORRUPT) || !self.sender.is_relevant(highest) {
            return;
        }
        let (vector, feedback, marks) = header::read_report(p);
        let (rtt, forward) = (now.since(p.stamp), header::forward_time(p));
        let ack_report = AckReport { largest_acked: highest, rtt, forward, marks, feedback };
        let arrived = run::arrived(highest, vector.runs());
        let missing = run::missing(highest, vector.runs());
        let radio = missing.filter(|m| m.2).map(|(from, to, _)| (from, to));
        self.sender.on_report(now, &mut self.source, &ack_report, arrived, radio);
    }
}

impl Machine for DatagramSender {
    type Input = SenderInput;
    type Output = SenderOutput;

    fn handle(&mut self, now: Time, input: SenderInput) {
        if let SenderInput::Packet(p) = &input
            && (self.handshake.is_some() || p.has(Packet::SYN))
            && self.on_answer(now, p)
        {
            return;
        }
        match input {
            SenderInput::Open => {
                self.open = true;
                if let Some(handshake) = &mut self.handshake {
                    handshake.open(now);
                }
            }
            SenderInput::Packet(p) if p.has(header::NACK) => self.on_nack(&p),
            SenderInput::Packet(p) => self.on_report(now, &p),
            SenderInput::Data(bytes) => self.source.push(now, bytes),
            SenderInput::Frame(part) => self.source.push_frame(now, part),
            SenderInput::Stop => self.source.stop(),
            SenderInput::Timeout if !self.open => {}
            SenderInput::Timeout => {
                if self.sender.on_timeout(now, &mut self.source) {
                    self.source.probe();
                }
            }
        }
    }

    fn poll(&mut self, now: Time) -> SenderOutput {
        if !self.open {
            return SenderOutput::Wait(Time::NEVER);
        }
        if self.handshake.is_some() {
            if let Some(packet) = self.next_handshake_packet(now) {
                return SenderOutput::Send(packet);
            }
            if self.handshake.as_ref().is_some_and(|o| !o.is_open()) {
                self.limit = SendingLimit::Opening;
                return SenderOutput::Wait(self.handshake_due());
            }
        }
        // A due tick is passed on at the next input, but not again at the same moment.
        let later = now + Duration::from_nanos(1);
        let again = self.handshake_due();
        let range = match self.next_range(now) {
            Ok(range) => range,
            Err(pace) => {
                return SenderOutput::Wait(self.sender.next_timeout(later).min(pace).min(again));
            }
        };
        let seq = self.sender.next_number();
        let bytes = if range.length > 0 { range.length + self.header } else { self.empty };
        self.sender.sent(now, &mut self.source, bytes, range, range.again);
        self.handshake.iter_mut().for_each(Handshake::on_data);
        SenderOutput::Send(self.packet(now, seq, range, bytes))
    }
}

impl std::fmt::Debug for DatagramSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender(flow {}, {} in flight)", self.flow, self.flight())
    }
}
