//! The sending side: an interface over the packet sender where the payload is a stream, and over `media_mode` where
//! it is media.

mod media_mode;

use super::config::DatagramConfig;
use super::handshake::Handshake;
use super::header::{self, Data};
use super::stream::{Outgoing, SentRange};
use crate::packet_sender::{AckReport, PacketSender, PacketSenderConfig, Permission};
use crate::simulated::{Counters, Input, Output};
use media_mode::Media;
use narrows_base::{Duration, Machine, Packet, Time, random};
use narrows_congestion::{Controller, Feedback, HintSource};

/// What is carried, and how.
#[allow(clippy::large_enum_variant)] // A sender is boxed.
enum Mode {
    Media(Media),
    Stream(PacketSender<Outgoing>),
}

/// A datagram sender.
pub struct Sender {
    mode: Mode,
    flow: u32,
    payload: u32,
    header: u32,
    ect: u8,
    random_key: u64,
    open: bool,
    /// Until the peer has the keys.
    handshake: Option<Handshake>,
    /// Packets that the handshake sent: data draw their losses after them.
    before: u64,
}

macro_rules! both {
    ($sender:expr, $x:ident => $call:expr) => {
        match &$sender.mode {
            Mode::Media($x) => $call,
            Mode::Stream($x) => $call,
        }
    };
}

impl Sender {
    /// A sender for flow number `flow`; `random_key` is the flow's key for losses.
    pub fn new(
        config: &DatagramConfig,
        controller: Box<dyn Controller>,
        flow: u32,
        random_key: u64,
    ) -> Sender {
        let mode = match &config.stream {
            None => Mode::Media(Media::new(config, controller)),
            Some(stream) => {
                let sender = PacketSenderConfig {
                    credit: config.credit,
                    max_ack_delay: stream.max_ack_delay,
                    rto: config.rto,
                    packet: config.packet_bytes,
                    told: (config.hints, HintSource::User),
                };
                Mode::Stream(PacketSender::new(&sender, controller, Outgoing::default()))
            }
        };
        Sender {
            mode,
            flow,
            payload: config.payload(),
            header: config.header_bytes,
            ect: if config.ecn { Packet::ECT } else { 0 },
            random_key,
            open: false,
            handshake: config.handshake.then(|| Handshake::new(&config.hints)),
            before: 0,
        }
    }

    /// The controller, to be watched.
    pub fn controller(&self) -> &dyn Controller {
        both!(self, m => m.controller())
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        both!(self, m => m.counters())
    }
    /// Packets sent above the highest number that a report named; with a stream, packets sent
    /// that neither arrived nor count as lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn flight(&self) -> u64 {
        both!(self, m => m.flight())
    }
    /// Packets known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        both!(self, m => m.acknowledged())
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.payload, self.payload + self.header)
    }
    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        both!(self, m => m.rtt().srtt())
    }

    /// Packet `seq`, while the outcome of everything below `least_unacked` is known.
    fn packet(
        &self,
        now: Time,
        seq: u64,
        range: SentRange,
        least_unacked: u64,
        feedback: Feedback,
    ) -> Packet {
        let bytes = (range.length + self.header).min(65_535) as u16;
        let mut packet = Packet {
            seq,
            stamp: now,
            number: 0,
            random_key: random::mix(self.random_key.wrapping_add(self.before + seq)) as u32,
            sack: [(0, 0); 3],
            flow: self.flow,
            size: bytes,
            hop: 0,
            flags: self.ect | if range.again { Packet::RETRANSMISSION } else { 0 },
        };
        let data = Data {
            payload: range.length as u16,
            // No more than `MAX_SENT_PACKETS` are unresolved.
            least_unacked: (seq - least_unacked) as u16,
            offset: range.offset,
            feedback,
        };
        header::write_data(&mut packet, &data);
        packet
    }
}

impl Sender {
    /// The handshake's next packet, if one is due.
    #[cold]
    fn open_further(&mut self, now: Time) -> Option<Packet> {
        let handshake = self.handshake.as_mut()?;
        if now < handshake.due() {
            return None;
        }
        let random_key = self.random_key.wrapping_add(handshake.sent());
        let (seq, size) = handshake.packet(now);
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

    /// A packet of the server while the handshake lasts; true if it is no report.
    #[cold]
    fn on_answer(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(handshake) = &mut self.handshake else { return packet.has(Packet::SYN) };
        if !packet.has(Packet::SYN) {
            handshake.on_report();
            self.handshake = None;
            return false;
        }
        if !packet.has(Packet::CORRUPT)
            && let Some(rtt) = handshake.on_answer(now, packet)
            && let Mode::Stream(sender) = &mut self.mode
        {
            sender.seed_rtt(now, rtt);
            if let Some(spacing) = handshake.spacing() {
                sender.on_dispersion(&spacing);
            }
        }
        true
    }

    fn opening_due(&self) -> Time {
        self.handshake.as_ref().map_or(Time::NEVER, Handshake::due)
    }
}

/// The next packet's load, if one may leave and there is one; else how long the pacer waits.
#[inline]
fn next_range(
    sender: &mut PacketSender<Outgoing>,
    now: Time,
    most: u32,
) -> Result<SentRange, Time> {
    match sender.permission(now) {
        Permission::Paced(due) => Err(due),
        Permission::WindowFull => Err(Time::NEVER),
        Permission::Now => sender.payload_source_mut().take(most).ok_or_else(|| {
            sender.nothing_to_send();
            Time::NEVER
        }),
    }
}

fn on_stream_report(sender: &mut PacketSender<Outgoing>, now: Time, p: &Packet) {
    let Some(highest) = p.seq.checked_sub(1) else { return };
    if p.has(Packet::CORRUPT) || !sender.concerns(highest) {
        return;
    }
    let (runs, feedback, marks) = header::read_report(p);
    let heard = AckReport { highest, rtt: now.since(p.stamp), marks, feedback };
    sender.on_report(now, &heard, runs.arrived(highest), runs.radio(highest));
}

impl Machine for Sender {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Packet(p) = &input
            && (self.handshake.is_some() || p.has(Packet::SYN))
            && self.on_answer(now, p)
        {
            return;
        }
        match (input, &mut self.mode) {
            (Input::Open, _) => {
                self.open = true;
                if let Some(handshake) = &mut self.handshake {
                    handshake.open(now);
                }
            }
            (Input::Packet(p), Mode::Stream(s)) => on_stream_report(s, now, &p),
            (Input::Packet(p), Mode::Media(m)) => m.on_report(now, &p),
            (Input::Data(bytes), Mode::Stream(s)) => s.payload_source_mut().push(bytes),
            (Input::Data(bytes), Mode::Media(m)) => m.push(now, bytes),
            (Input::Stop, Mode::Stream(s)) => s.payload_source_mut().stop(),
            (Input::Stop, Mode::Media(m)) => m.stop(),
            (Input::Timeout, _) if !self.open => {}
            (Input::Timeout, Mode::Stream(s)) => {
                s.on_timeout(now);
            }
            (Input::Timeout, Mode::Media(m)) => m.on_timeout(now),
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if !self.open {
            return Output::Wait(Time::NEVER);
        }
        if self.handshake.is_some() {
            if let Some(packet) = self.open_further(now) {
                return Output::Send(packet);
            }
            if self.handshake.as_ref().is_some_and(|o| !o.is_open()) {
                return Output::Wait(self.opening_due());
            }
        }
        // A tick that has come is handed over at the next input; never at this very moment again.
        let later = now + Duration::from_nanos(1);
        let again = self.opening_due();
        let (seq, range, least_unacked, feedback) = match &mut self.mode {
            Mode::Stream(s) => {
                let range = match next_range(s, now, self.payload) {
                    Ok(range) => range,
                    Err(pace) => return Output::Wait(s.next_timeout(later).min(pace).min(again)),
                };
                let seq = s.next_number();
                s.sent(now, range.length + self.header, range, range.again);
                (seq, range, s.least_unacked(), s.controller().feedback_to_receiver())
            }
            Mode::Media(m) => match m.next_range(now, self.payload, self.header) {
                Ok((seq, range)) => {
                    (seq, range, m.least_unacked(), m.controller().feedback_to_receiver())
                }
                Err(pace) => return Output::Wait(m.next_timeout(later).min(pace).min(again)),
            },
        };
        Output::Send(self.packet(now, seq, range, least_unacked, feedback))
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender(flow {}, {} in flight)", self.flow, self.flight())
    }
}
