//! The handshake of a simulated connection: START, START-ECHO, FINISH, with the order, the repetitions and the sizes of
//! real ones (`narrows_recovery::handshake`). So a simulated transfer takes one round trip before its first byte. The handshake is
//! also the first RTT sample, and without an address token its probes measure the rate.
//!
//! This server accepts no data before FINISH. A real one keeps a few packets that overtake it.

use crate::protocol::OpeningExchange;
use narrows_base::{Duration, Packet, Time};
use narrows_congestion::{Dispersion, PathHints};
use narrows_recovery::handshake::{
    CLIENT_BYTES, ClientExchange, FinishRepeat, HandshakePacket, PROBE_BYTES, PacketPair,
    SERVER_BYTES,
};

/// IP and UDP headers.
const HEADERS: u16 = 28;

/// The packet that is sent until it is answered.
#[derive(Debug)]
enum HandshakeStage {
    Exchange(ClientExchange),
    Finish(FinishRepeat, PacketPair),
    /// The server has the keys.
    Done,
}

/// What a handshake shows of the RTT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HandshakeRtt {
    Is(Duration),
    /// A packet was repeated, so the reply is ambiguous.
    AtMost(Duration),
}

/// State of the client's handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    hints: PathHints,
    opening: OpeningExchange,
    stage: HandshakeStage,
    /// Packets sent so far; they and the data after them are numbered together for random losses.
    sent: u64,
}

fn exchange(now: Time, opening: OpeningExchange, hints: &PathHints) -> HandshakeStage {
    let probes = opening != OpeningExchange::Token && hints.rate.is_none();
    HandshakeStage::Exchange(ClientExchange::new(now, hints.rtt, probes))
}

impl Handshake {
    /// `None` for [`OpeningExchange::None`].
    pub fn new(opening: OpeningExchange, hints: &PathHints) -> Option<Handshake> {
        let stage = exchange(Time::ZERO, opening, hints);
        let handshake = Handshake { hints: *hints, opening, stage, sent: 0 };
        (opening != OpeningExchange::None).then_some(handshake)
    }
    /// Starts the handshake.
    pub fn open(&mut self, now: Time) {
        self.stage = exchange(now, self.opening, &self.hints);
    }
    /// Whether data may be sent, that is, after FINISH.
    pub fn is_open(&self) -> bool {
        match &self.stage {
            HandshakeStage::Exchange(_) => false,
            HandshakeStage::Finish(repeat, _) => repeat.is_sent(),
            HandshakeStage::Done => true,
        }
    }
    /// Number of packets sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }
    /// When the next packet or repetition is due.
    pub fn due(&self) -> Time {
        match &self.stage {
            HandshakeStage::Exchange(exchange) if exchange.has_probe() => Time::ZERO,
            HandshakeStage::Exchange(exchange) => exchange.due(),
            HandshakeStage::Finish(repeat, _) => repeat.due(),
            HandshakeStage::Done => Time::NEVER,
        }
    }
    /// The packet that is due: its stage and its size.
    pub fn next_packet(&mut self, now: Time) -> Option<(u64, u16)> {
        let (place, bytes) = match &mut self.stage {
            HandshakeStage::Exchange(exchange) => {
                if exchange.is_stale(now) {
                    exchange.restart(now);
                }
                match exchange.next_packet(now)? {
                    HandshakePacket::Syn => (0, CLIENT_BYTES[0]),
                    HandshakePacket::Probe => (0, PROBE_BYTES),
                    HandshakePacket::Start => (1, CLIENT_BYTES[1]),
                }
            }
            HandshakeStage::Finish(repeat, _) if repeat.due() <= now => {
                repeat.on_sent(now);
                (2, CLIENT_BYTES[2])
            }
            HandshakeStage::Finish(..) | HandshakeStage::Done => return None,
        };
        self.sent += 1;
        Some((place, bytes + HEADERS))
    }
    /// An answer of the server arrived. Returns the path's RTT once the keys are established, and the dispersion of the
    /// probes once all of them are answered.
    pub fn on_answer(
        &mut self,
        now: Time,
        packet: &Packet,
    ) -> (Option<HandshakeRtt>, Option<Dispersion>) {
        let exchange = match &mut self.stage {
            HandshakeStage::Exchange(exchange) => exchange,
            HandshakeStage::Finish(_, packet_pair) if packet.seq == 0 => {
                packet_pair.on_answer(now);
                return (None, packet_pair.take());
            }
            HandshakeStage::Finish(..) | HandshakeStage::Done => return (None, None),
        };
        if packet.seq == 0 {
            if exchange.awaits_syn_echo() {
                exchange.begin_start(now);
            } else {
                exchange.on_probe_echo(now);
            }
            return (None, None);
        }
        if exchange.awaits_syn_echo() {
            // The reply to a START before the restart.
            exchange.resume_earlier();
        }
        let mut sample = exchange.finish(now);
        let dispersion = sample.packet_pair.take();
        self.stage = HandshakeStage::Finish(sample.finish, sample.packet_pair);
        let rtt = sample.rtt.map_or(HandshakeRtt::AtMost(sample.max_rtt), HandshakeRtt::Is);
        (Some(rtt), dispersion)
    }
    /// A data packet was sent.
    pub fn on_data(&mut self) {
        if let HandshakeStage::Finish(repeat, _) = &mut self.stage {
            repeat.on_data(1);
        }
    }
    /// A report arrived, so the server has the keys.
    pub fn on_report(&mut self) {
        if matches!(self.stage, HandshakeStage::Finish(..)) {
            self.stage = HandshakeStage::Done;
        }
    }
}

/// The server's answer to a handshake packet, as stage and size; `None` for FINISH.
pub(super) fn answer(packet: &Packet) -> Option<u16> {
    SERVER_BYTES.get(usize::try_from(packet.seq).ok()?).map(|bytes| bytes + HEADERS)
}

/// Whether `packet` is FINISH.
pub(super) fn is_finish(packet: &Packet) -> bool {
    packet.seq == 2
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
