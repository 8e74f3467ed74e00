//! Flows whose two ends are a stack of another project: the simulator carries their datagrams beside its own packets.
//!
//! A simulated packet has no contents, so the contents of a datagram stay in a `Channel` until its packet arrives.

use super::interface::{SenderInput, SenderOutput};
use narrows_base::list::{List, Listed};
use narrows_base::{Duration, Packet, RandomKey, Time, random};
use narrows_congestion::{Ack, Controller, SendLimits};
use narrows_recovery::packet_sender::Counters;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A datagram that arrives behind so many later ones of its flow counts as lost.
const MAX_REORDERING: u64 = 1 << 16;
/// The ECN bits of an IP header.
const ECT1: u8 = 1;
const ECT0: u8 = 2;
const CE: u8 = 3;

/// A datagram of a foreign stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignDatagram {
    /// Contents.
    pub payload: Vec<u8>,
    /// Bytes on a link in addition to the contents.
    pub header_bytes: u32,
    /// Application bytes among the contents, about: goodput is measured over these.
    pub application_bytes: u32,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
}

/// One end of a connection of a foreign stack: the first end sends the application's bytes to the second.
pub trait ForeignEnd: Send {
    /// The application writes so many more bytes; [`u64::MAX`] is data without end. The first call opens the connection.
    fn write(&mut self, now: Time, bytes: u64);
    /// The application has stopped: unsent data are dropped.
    fn stop(&mut self, now: Time);
    /// A datagram has arrived.
    fn handle(&mut self, now: Time, datagram: ForeignDatagram);
    /// Handles due timers, and returns the next datagram to send.
    fn poll(&mut self, now: Time) -> Option<ForeignDatagram>;
    /// When to call [`poll`](ForeignEnd::poll) without an arrival; [`Time::NEVER`] for never.
    fn next_timeout(&mut self) -> Time;
    /// Application bytes that have arrived in order.
    fn delivered(&self) -> u64;
    /// `cwnd` in bytes, `rtt` (smoothed) in seconds, `lost` packets. `None` for an unknown value.
    fn variable(&self, name: &str) -> Option<f64>;
}

/// A foreign stack with one of its controllers, as a protocol of simulations.
#[derive(Clone, Copy, Debug)]
pub struct ForeignEntry {
    /// The name in specifications.
    pub name: &'static str,
    /// Builds the two ends of a connection of the protocol of this name; the number is drawn from the flow's seed.
    pub build: fn(&str, u64) -> [Box<dyn ForeignEnd>; 2],
}

impl Listed for ForeignEntry {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// The foreign stacks that a program has added: see [`Registry::foreign`](crate::Registry::foreign).
pub static FOREIGN: List<ForeignEntry> = List::new("protocol", &[]);

/// A foreign stack's protocol in a specification.
#[derive(Clone, Copy, Debug)]
pub struct ForeignProtocol {
    pub(crate) entry: &'static ForeignEntry,
    /// Bytes of a packet in which windows are counted.
    pub(crate) packet_bytes: u32,
}

/// Contents of the datagrams of one direction, by packet number.
#[derive(Default)]
struct Channel {
    /// Number of the first stored datagram.
    first: u64,
    datagrams: VecDeque<Option<ForeignDatagram>>,
}

impl Channel {
    /// Stores a datagram; returns its number.
    fn put(&mut self, datagram: ForeignDatagram) -> u64 {
        self.datagrams.push_back(Some(datagram));
        self.first + self.datagrams.len() as u64 - 1
    }

    /// The contents of an arrived packet; `None` for a duplicate.
    fn take(&mut self, number: u64) -> Option<ForeignDatagram> {
        let index = number.checked_sub(self.first)? as usize;
        let taken = self.datagrams.get_mut(index)?.take();
        while self.datagrams.front().is_some_and(Option::is_none)
            || self.first + MAX_REORDERING < number
        {
            self.datagrams.pop_front();
            self.first += 1;
        }
        taken
    }
}

/// The visible part of a foreign sender's controller: its window, which events do not change.
#[derive(Clone)]
pub(crate) struct VisibleWindow(f64);

impl Default for VisibleWindow {
    fn default() -> VisibleWindow {
        VisibleWindow(f64::INFINITY)
    }
}

impl Controller for VisibleWindow {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.0)
    }
}

/// An end with its place in the simulation.
struct End {
    stack: Box<dyn ForeignEnd>,
    outgoing: Arc<Mutex<Channel>>,
    incoming: Arc<Mutex<Channel>>,
    flow: u32,
    random_key: u64,
    flags: u8,
    /// When the last packet that arrived was sent.
    echo: Time,
    sent: u64,
}

impl End {
    fn receive(&mut self, now: Time, packet: &Packet) {
        if packet.has(Packet::CORRUPT) {
            return;
        }
        self.echo = packet.stamp;
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut datagram) = incoming.take(packet.seq) else { return };
        datagram.ecn |= if packet.has(Packet::CE) { CE } else { 0 };
        drop(incoming);
        self.stack.handle(now, datagram);
    }

    fn send(&mut self, now: Time) -> Option<Packet> {
        let datagram = self.stack.poll(now)?;
        let ecn = match datagram.ecn {
            ECT0 => Packet::ECT,
            ECT1 => Packet::ECT | Packet::ECT1,
            CE => Packet::ECT | Packet::CE,
            _ => 0,
        };
        let size = datagram.payload.len() as u64 + u64::from(datagram.header_bytes);
        let application_bytes = datagram.application_bytes;
        let mut outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        let number = outgoing.put(datagram);
        self.sent = number + 1;
        Some(Packet {
            seq: number,
            stamp: if self.flags == Packet::ACK { self.echo } else { now },
            number: number as u32,
            random_key: random::mix(self.random_key.wrapping_add(number)) as u32,
            sack: [(application_bytes.min(0xFFFF), 0), (0, 0), (0, 0)],
            flow: self.flow,
            size: size.min(0xFFFF) as u16,
            hop: 0,
            flags: self.flags | ecn,
        })
    }

    /// A timer that stays due must not stop time.
    fn due(&mut self, now: Time) -> Time {
        let due = self.stack.next_timeout();
        if due.is_never() { due } else { due.max(now + Duration::from_nanos(1)) }
    }
}

/// A foreign stack's sender.
pub struct ForeignSender {
    end: End,
    packet_bytes: u32,
    window: VisibleWindow,
}

/// A foreign stack's receiver.
pub struct ForeignReceiver {
    end: End,
    next: Time,
}

/// Builds both ends.
pub(crate) fn build(
    protocol: &ForeignProtocol,
    flow: u32,
    random_key: RandomKey,
) -> (ForeignSender, ForeignReceiver) {
    let ForeignProtocol { entry, packet_bytes } = *protocol;
    let [sender, receiver] = (entry.build)(entry.name, random_key.named("foreign").bits());
    let data = Arc::new(Mutex::new(Channel::default()));
    let back = Arc::new(Mutex::new(Channel::default()));
    let end = End {
        stack: sender,
        outgoing: data.clone(),
        incoming: back.clone(),
        flow,
        random_key: random_key.named("data").bits(),
        flags: 0,
        echo: Time::ZERO,
        sent: 0,
    };
    let sender = ForeignSender { end, packet_bytes, window: VisibleWindow::default() };
    let end = End {
        stack: receiver,
        outgoing: back,
        incoming: data,
        flow,
        // As the simulator's own receivers, so that losses are the same.
        random_key: random_key.named("acks").bits() ^ 0xAC0_AC0,
        flags: Packet::ACK,
        echo: Time::ZERO,
        sent: 0,
    };
    (sender, ForeignReceiver { end, next: Time::NEVER })
}

impl ForeignSender {
    pub(crate) fn handle(&mut self, now: Time, input: SenderInput) {
        match input {
            SenderInput::Data(bytes) => self.end.stack.write(now, bytes),
            SenderInput::Packet(packet) => self.end.receive(now, &packet),
            SenderInput::Stop => self.end.stack.stop(now),
            // A foreign stack writes no frames, and due timers are handled when it is polled.
            SenderInput::Open | SenderInput::Frame(_) | SenderInput::Timeout => {}
        }
    }
    pub(crate) fn poll(&mut self, now: Time) -> SenderOutput {
        if let Some(packet) = self.end.send(now) {
            return SenderOutput::Send(packet);
        }
        let window =
            self.end.stack.variable("cwnd").map(|bytes| bytes / f64::from(self.packet_bytes));
        self.window = VisibleWindow(window.unwrap_or(f64::INFINITY));
        SenderOutput::Wait(self.end.due(now))
    }
    pub(crate) fn controller(&self) -> &dyn Controller {
        &self.window
    }
    pub(crate) fn controller_mut(&mut self) -> &mut dyn Controller {
        &mut self.window
    }
    pub(crate) fn counters(&self) -> Counters {
        let lost = self.end.stack.variable("lost").unwrap_or_default() as u64;
        Counters { sent: self.end.sent, lost, ..Counters::default() }
    }
    pub(crate) fn srtt(&self) -> Duration {
        Duration::from_secs_f64(self.end.stack.variable("rtt").unwrap_or_default())
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.packet_bytes, self.packet_bytes)
    }
    /// Unknown: a sender's acknowledged packets.
    pub(crate) fn acknowledged(&self) -> u64 {
        0
    }
    /// Unknown: packets in flight.
    pub(crate) fn flight(&self) -> u64 {
        0
    }
    /// Unknown: bytes that wait.
    pub(crate) fn unsent(&self) -> u64 {
        0
    }
}

impl ForeignReceiver {
    pub(crate) fn on_packet(&mut self, now: Time, packet: &Packet) -> Option<Packet> {
        self.end.receive(now, packet);
        self.on_timeout(now)
    }
    pub(crate) fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        let packet = self.end.send(now);
        // The stack may have more to send: it is polled again at the same time.
        self.next = if packet.is_some() { now } else { self.end.due(now) };
        packet
    }
    pub(crate) fn next_timeout(&self) -> Time {
        self.next
    }
    pub(crate) fn delivered(&self) -> u64 {
        self.end.stack.delivered()
    }
    pub(crate) fn received(&self) -> u64 {
        self.end.stack.delivered()
    }
    /// Packets that arrived, those without application bytes included.
    pub(crate) fn delivered_packets(&self) -> u64 {
        self.end.incoming.lock().unwrap_or_else(PoisonError::into_inner).first
    }
}

impl fmt::Debug for ForeignSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignSender({} sent)", self.end.sent)
    }
}

impl fmt::Debug for ForeignReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignReceiver({} bytes)", self.delivered())
    }
}
