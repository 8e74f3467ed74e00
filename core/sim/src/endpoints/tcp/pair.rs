//! A sender and a receiver for timed scenarios in tests.

use crate::endpoints::interface::{SenderInput, SenderOutput};
use crate::endpoints::tcp::{TcpReceiver, TcpSender};
use crate::endpoints::{SimulatedReceiver, SimulatedSender};
use crate::protocol::{FlowProtocol, Preset};
use narrows_base::{Duration, Machine, Packet, RandomKey, Spec, Time};

/// The two endpoints of a protocol over TCP.
pub(crate) fn tcp_ends(
    protocol: &FlowProtocol,
    flow: u32,
    random_key: RandomKey,
) -> (TcpSender, TcpReceiver) {
    match crate::endpoints::build(protocol, flow, random_key, 1) {
        (SimulatedSender::Tcp(sender), SimulatedReceiver::Tcp(receiver)) => (sender, receiver),
        _ => panic!("{} speaks TCP", protocol.label()),
    }
}

/// A sender and a receiver without a link: the test decides when packets arrive.
pub(crate) struct Pair {
    pub sender: TcpSender,
    pub receiver: TcpReceiver,
    pub now: Time,
    /// Packets that left the sender and were not delivered yet.
    pub wire: Vec<Packet>,
}

impl Pair {
    pub fn new(spec: &str) -> Pair {
        let spec = Spec::parse(spec).unwrap();
        Pair::of(&FlowProtocol::read(&spec, Preset::Rfc, 1000).unwrap())
    }
    /// After the handshake, with data without end, and the first window on the wire at 50 ms.
    pub fn of(protocol: &FlowProtocol) -> Pair {
        let (sender, receiver) = tcp_ends(protocol, 0, RandomKey::from_seed(1));
        let mut pair = Pair { sender, receiver, now: Time::ZERO, wire: Vec::new() };
        pair.tell(SenderInput::Open);
        pair.tell(SenderInput::Data(u64::MAX));
        pair.after_ms(50);
        pair.deliver(|_| true);
        pair
    }
    pub fn after_ms(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
    pub fn tell(&mut self, input: SenderInput) {
        self.sender.handle(self.now, input);
        while let SenderOutput::Send(p) = self.sender.poll(self.now) {
            self.wire.push(p);
        }
    }
    /// Delivers the packets on the wire for which `passes` is true; acknowledgements arrive at once.
    pub fn deliver(&mut self, mut passes: impl FnMut(&Packet) -> bool) {
        self.deliver_changed(|p| passes(p));
    }
    /// As [`deliver`](Pair::deliver), but `passes` may change packets.
    pub fn deliver_changed(&mut self, mut passes: impl FnMut(&mut Packet) -> bool) {
        for mut p in std::mem::take(&mut self.wire) {
            if !passes(&mut p) {
                continue;
            }
            if let Some(ack) = self.receiver.on_packet(self.now, &p) {
                self.tell(SenderInput::Packet(ack));
            }
        }
        // Acknowledgements that are held back for at most a millisecond.
        if self.receiver.next_timeout() <= self.now + Duration::from_millis(1) {
            self.now = self.receiver.next_timeout();
            if let Some(ack) = self.receiver.on_timeout(self.now) {
                self.tell(SenderInput::Packet(ack));
            }
        }
    }
    /// A round trip of 50 ms.
    pub fn round(&mut self, passes: impl FnMut(&Packet) -> bool) {
        self.after_ms(50);
        self.deliver(passes);
    }
    pub fn seqs(&self) -> Vec<u64> {
        self.wire.iter().map(|p| p.seq).collect()
    }
    pub fn timeout(&mut self) {
        self.now = self.sender.rto_due();
        self.tell(SenderInput::Timeout);
    }
}
