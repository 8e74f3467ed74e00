//! The sending side of datagrams: one path, and the application's data.

use super::header;
use super::path::DatagramPath;
use super::payload::SimulatedSource;
use super::stream::SentRange;
use crate::endpoints::interface::{SenderInput, SenderOutput, SendingLimit};
use crate::protocol::DatagramConfig;
use narrows_base::{Duration, Machine, Packet, Time};
use narrows_congestion::{Controller, HintSource, PathHints};
use narrows_recovery::packet_sender::{Counters, Permission};

/// Sends data or media in numbered packets, with a connection's packet sender.
pub struct DatagramSender {
    path: DatagramPath,
    source: SimulatedSource,
    open: bool,
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
        DatagramSender {
            path: DatagramPath::new(config, controller, flow, random_key),
            source: SimulatedSource::new(config),
            open: false,
            limit: SendingLimit::Application,
        }
    }

    /// New path hints from the application.
    pub fn reconfigure(&mut self, now: Time, hints: &PathHints) {
        self.path.sender.on_path_hints(now, hints, HintSource::User);
    }
    /// The controller, read-only.
    pub fn controller(&self) -> &dyn Controller {
        self.path.sender.controller()
    }
    /// Mutable access to the controller.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        self.path.sender.controller_mut()
    }
    /// The limit that it waits for.
    #[inline]
    pub fn limit(&self) -> SendingLimit {
        self.limit
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        Counters { expired: self.source.expired(), ..self.path.sender.counters() }
    }
    /// Packets sent that neither arrived nor were declared lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.path.sender.packets_in_flight()
    }
    /// Packets known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.path.sender.acknowledged()
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.path.payload, self.path.payload + self.path.header)
    }
    /// Application bytes that wait to be sent for the first time; `u64::MAX` if the data have no end.
    pub fn unsent(&self) -> u64 {
        self.source.unsent()
    }
    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.path.sender.rtt().srtt()
    }
}

impl DatagramSender {
    /// The next packet's bytes, or the time until which the sender waits.
    #[inline]
    fn next_range(&mut self, now: Time) -> Result<SentRange, Time> {
        match self.path.sender.permission(now) {
            Permission::Paced(due) => {
                self.limit = match self.path.sender.spreads_window() {
                    true => SendingLimit::Window,
                    false => SendingLimit::Pacing,
                };
                Err(due)
            }
            Permission::WindowFull => {
                self.limit = SendingLimit::Window;
                Err(Time::NEVER)
            }
            Permission::Now if self.path.sender.is_short_probe() => Ok(SentRange::default()),
            Permission::Now => self.source.take(now, self.path.payload).ok_or_else(|| {
                self.path.sender.nothing_to_send();
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
}

impl Machine for DatagramSender {
    type Input = SenderInput;
    type Output = SenderOutput;

    fn handle(&mut self, now: Time, input: SenderInput) {
        if let SenderInput::Packet(p) = &input
            && (self.path.has_handshake() || p.has(Packet::SYN))
            && self.path.on_answer(now, p)
        {
            return;
        }
        match input {
            SenderInput::Open => {
                self.open = true;
                self.path.open(now);
            }
            SenderInput::Packet(p) if p.has(header::NACK) => self.on_nack(&p),
            SenderInput::Packet(p) => {
                self.path.on_report(now, &mut self.source, &p);
            }
            SenderInput::Data(bytes) => self.source.push(now, bytes),
            SenderInput::Frame(part) => self.source.push_frame(now, part),
            SenderInput::Stop => self.source.stop(),
            SenderInput::Timeout if !self.open => {}
            SenderInput::Timeout => {
                if self.path.sender.on_timeout(now, &mut self.source) {
                    self.source.probe();
                }
            }
        }
    }

    fn poll(&mut self, now: Time) -> SenderOutput {
        if !self.open {
            return SenderOutput::Wait(Time::NEVER);
        }
        if self.path.has_handshake() {
            if let Some(packet) = self.path.next_handshake_packet(now) {
                return SenderOutput::Send(packet);
            }
            if !self.path.is_open() {
                self.limit = SendingLimit::Opening;
                return SenderOutput::Wait(self.path.handshake_due());
            }
        }
        // A due tick is passed on at the next input, but not again at the same moment.
        let later = now + Duration::from_nanos(1);
        let again = self.path.handshake_due();
        let range = match self.next_range(now) {
            Ok(range) => range,
            Err(pace) => {
                return SenderOutput::Wait(
                    self.path.sender.next_timeout(later).min(pace).min(again),
                );
            }
        };
        let bytes =
            if range.length > 0 { range.length + self.path.header } else { self.path.empty };
        SenderOutput::Send(self.path.send(now, &mut self.source, range, bytes))
    }
}

impl std::fmt::Debug for DatagramSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender(flow {}, {} in flight)", self.path.flow, self.flight())
    }
}
