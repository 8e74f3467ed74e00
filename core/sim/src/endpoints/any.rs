//! The simulator's interface to endpoints: one type of sender and one of receiver for all protocols.

use super::multipath::PathParts;
use super::{datagram, foreign, multicast, multipath, tcp};
use crate::endpoints::interface::{SenderInput, SenderOutput, SendingLimit};
use crate::protocol::{DatagramConfig, FlowProtocol};
use narrows_base::{Duration, Machine, Packet, RandomKey, Rate, Time};
use narrows_congestion::{Controller, PathHints, ReceiverSide};
use narrows_multipath::{COUPLINGS, SCHEDULERS};
use narrows_recovery::packet_sender::Counters;

/// A sender of any kind. TCP's is stored inline, because it is the most common kind.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum SimulatedSender {
    /// A TCP sender.
    Tcp(tcp::TcpSender),
    /// A datagram sender.
    Datagram(Box<datagram::DatagramSender>),
    /// A sender of a stream over several paths.
    Multipath(Box<multipath::MultipathSender>),
    /// A sender of multicast layers, without feedback.
    Multicast(Box<multicast::MulticastSender>),
    /// A sender of another project's stack.
    Foreign(Box<foreign::ForeignSender>),
}

/// A receiver of any kind.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum SimulatedReceiver {
    /// A TCP receiver.
    Tcp(tcp::TcpReceiver),
    /// A datagram receiver.
    Datagram(Box<datagram::DatagramReceiver>),
    /// A receiver of a stream over several paths.
    Multipath(Box<multipath::MultipathReceiver>),
    /// A receiver of multicast layers, which sends no reports.
    Multicast(Box<multicast::MulticastReceiver>),
    /// A receiver of another project's stack.
    Foreign(Box<foreign::ForeignReceiver>),
}

macro_rules! both {
    ($end:expr, $x:ident => $call:expr) => {
        match $end {
            Self::Tcp($x) => $call,
            Self::Datagram($x) => $call,
            Self::Multipath($x) => $call,
            Self::Multicast($x) => $call,
            Self::Foreign($x) => $call,
        }
    };
}

impl SimulatedSender {
    /// An acknowledgement or report arrived: the same as [`SenderInput::Packet`], without a copy of it.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: &Packet) {
        match self {
            SimulatedSender::Tcp(sender) => sender.on_ack(now, packet),
            SimulatedSender::Datagram(sender) => sender.handle(now, SenderInput::Packet(*packet)),
            SimulatedSender::Multipath(sender) => sender.handle(now, SenderInput::Packet(*packet)),
            SimulatedSender::Foreign(sender) => sender.handle(now, SenderInput::Packet(*packet)),
            SimulatedSender::Multicast(_) => {}
        }
    }
    /// New path hints from the application, as by `reconfigure` over sockets. TCP ignores them.
    pub fn reconfigure(&mut self, now: Time, hints: &PathHints) {
        match self {
            SimulatedSender::Datagram(sender) => sender.reconfigure(now, hints),
            SimulatedSender::Multipath(sender) => sender.reconfigure(now, hints),
            SimulatedSender::Tcp(_)
            | SimulatedSender::Multicast(_)
            | SimulatedSender::Foreign(_) => {}
        }
    }
    /// The controller, read-only.
    #[inline]
    pub fn controller(&self) -> &dyn Controller {
        both!(self, s => s.controller())
    }
    /// Mutable access to the controller. [`poll`](Machine::poll) then applies its limits.
    #[inline]
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        both!(self, s => s.controller_mut())
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        both!(self, s => s.counters())
    }
    /// The limit that applied at the last [`SenderOutput::Wait`].
    #[inline]
    pub fn limit(&self) -> SendingLimit {
        match self {
            SimulatedSender::Tcp(sender) => sender.limit(),
            SimulatedSender::Datagram(sender) => sender.limit(),
            SimulatedSender::Multipath(sender) => sender.limit(),
            SimulatedSender::Multicast(_) | SimulatedSender::Foreign(_) => {
                SendingLimit::Application
            }
        }
    }
    /// Sent packets of unknown outcome; for TCP, FlightSize.
    pub fn flight(&self) -> u64 {
        both!(self, s => s.flight())
    }
    /// Packets known to have arrived; for TCP, the cumulative acknowledgement including the SYN.
    pub fn acknowledged(&self) -> u64 {
        both!(self, s => s.acknowledged())
    }
    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        both!(self, s => s.srtt())
    }
    /// Application bytes that wait to be sent for the first time; `u64::MAX` if the data have no end.
    pub fn unsent(&self) -> u64 {
        both!(self, s => s.unsent())
    }
    /// Application bytes of a full packet.
    pub fn payload_bytes(&self) -> u32 {
        both!(self, s => s.sizes()).0
    }
    /// Reads TCP's outstanding segments and returns a value that depends on all of them, so that the processor fetches
    /// them at once.
    pub fn fetch(&self) -> u64 {
        match self {
            SimulatedSender::Tcp(sender) => sender.fetch(),
            SimulatedSender::Datagram(_)
            | SimulatedSender::Multipath(_)
            | SimulatedSender::Multicast(_)
            | SimulatedSender::Foreign(_) => 0,
        }
    }
    /// The application rate that may be sent at present: the smaller of the pacing rate and a window per RTT. Before
    /// the first sample an RTT of one second is assumed.
    pub fn allowed(&self) -> Rate {
        let (payload, packet) = both!(self, s => s.sizes());
        let send_limits = self.controller().send_limits();
        let srtt = self.srtt();
        let srtt = if srtt == Duration::ZERO { 1.0 } else { srtt.as_secs_f64() };
        let packets = send_limits
            .pacing_rate
            .map_or(f64::INFINITY, |r| r.as_bps() as f64 / (f64::from(packet.max(1)) * 8.0));
        let packets = packets.min(send_limits.cwnd / srtt);
        Rate::from_bps_f64((packets * f64::from(payload) * 8.0).min(1e15))
    }
}

impl Machine for SimulatedSender {
    type Input = SenderInput;
    type Output = SenderOutput;

    #[inline]
    fn handle(&mut self, now: Time, input: SenderInput) {
        both!(self, s => s.handle(now, input));
    }
    #[inline]
    fn poll(&mut self, now: Time) -> SenderOutput {
        both!(self, s => s.poll(now))
    }
}

impl SimulatedReceiver {
    /// A data packet arrived. Returns the acknowledgement or report to send now, if any.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: &Packet) -> Option<Packet> {
        both!(self, r => r.on_packet(now, packet))
    }
    /// When to call [`on_timeout`](SimulatedReceiver::on_timeout).
    #[inline]
    pub fn next_timeout(&self) -> Time {
        both!(self, r => r.next_timeout())
    }
    /// A timer fired. Returns the acknowledgement or report to send now, if any.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        both!(self, r => r.on_timeout(now))
    }
    /// Application bytes received: in order for streams, without duplicates for media.
    #[inline]
    pub fn delivered(&self) -> u64 {
        both!(self, r => r.delivered())
    }
    /// Distinct application bytes received; for streams, including those behind a gap.
    pub fn received(&self) -> u64 {
        both!(self, r => r.received())
    }
    /// Packets received, counted as in [`delivered`](SimulatedReceiver::delivered).
    pub fn delivered_packets(&self) -> u64 {
        match self {
            SimulatedReceiver::Tcp(r) => r.next_expected(),
            SimulatedReceiver::Datagram(r) => r.delivered_packets(),
            SimulatedReceiver::Multipath(r) => r.delivered_packets(),
            SimulatedReceiver::Multicast(r) => r.delivered_packets(),
            SimulatedReceiver::Foreign(r) => r.delivered_packets(),
        }
    }
    /// Frame and layer that a media packet carries; `None` for a stream's packet.
    pub fn frame_of(&self, packet: &Packet) -> Option<(u64, u8)> {
        match self {
            SimulatedReceiver::Tcp(_)
            | SimulatedReceiver::Multipath(_)
            | SimulatedReceiver::Foreign(_) => None,
            SimulatedReceiver::Datagram(r) => r.frame_of(packet),
            SimulatedReceiver::Multicast(r) => Some(r.frame_of(packet)),
        }
    }
    /// Whether it has a loss classifier.
    pub fn classifies(&self) -> bool {
        matches!(self, SimulatedReceiver::Datagram(r) if r.classifies())
    }
    /// The newest classification of missing packets, returned once: `[from, to)`, and whether they are attributed to
    /// the radio link. `None` without a classifier.
    #[inline]
    pub fn classified(&mut self) -> Option<(u64, u64, bool)> {
        match self {
            SimulatedReceiver::Tcp(_)
            | SimulatedReceiver::Multipath(_)
            | SimulatedReceiver::Multicast(_)
            | SimulatedReceiver::Foreign(_) => None,
            SimulatedReceiver::Datagram(r) => r.classified(),
        }
    }
    /// The controller's receiver side, if there is one, for time series.
    pub fn receiver_side(&self) -> Option<&dyn ReceiverSide> {
        match self {
            SimulatedReceiver::Tcp(_) | SimulatedReceiver::Foreign(_) => None,
            SimulatedReceiver::Datagram(r) => r.receiver_side(),
            SimulatedReceiver::Multipath(r) => r.receiver_side(),
            SimulatedReceiver::Multicast(r) => Some(r.receiver_side()),
        }
    }
}

/// Builds a sender and a receiver for flow number `flow`, with this number of paths; `random_key` is the flow's key.
pub fn build(
    protocol: &FlowProtocol,
    flow: u32,
    random_key: RandomKey,
    paths: usize,
) -> (SimulatedSender, SimulatedReceiver) {
    let data = random_key.named("data").bits();
    let acks = random_key.named("acks").bits();
    let environment = protocol.environment(protocol.packet_bytes(), random_key, protocol.hints());
    let controller = protocol.controller(&environment);
    match protocol {
        FlowProtocol::Tcp(p) => (
            SimulatedSender::Tcp(tcp::TcpSender::new(p.config(), controller, flow, data)),
            SimulatedReceiver::Tcp(tcp::TcpReceiver::new(p.config(), flow, acks)),
        ),
        FlowProtocol::Datagram(p) if paths > 1 => {
            build_multipath(protocol, p.config(), flow, random_key, paths)
        }
        FlowProtocol::Datagram(p) => {
            let c = p.config();
            let receiver_side = protocol.receiver_side(&environment);
            let sender = datagram::DatagramSender::new(c, controller, flow, data);
            let receiver = datagram::DatagramReceiver::new(c, receiver_side, flow, acks);
            (
                SimulatedSender::Datagram(Box::new(sender)),
                SimulatedReceiver::Datagram(Box::new(receiver)),
            )
        }
        FlowProtocol::Foreign(p) => {
            let (sender, receiver) = foreign::build(p, flow, random_key);
            (
                SimulatedSender::Foreign(Box::new(sender)),
                SimulatedReceiver::Foreign(Box::new(receiver)),
            )
        }
    }
}

/// The same for several paths. Each has a controller and random draws of its own; the first those of a flow with one
/// path.
fn build_multipath(
    protocol: &FlowProtocol,
    config: &DatagramConfig,
    flow: u32,
    random_key: RandomKey,
    paths: usize,
) -> (SimulatedSender, SimulatedReceiver) {
    let mut sending = Vec::with_capacity(paths);
    let mut receiving = Vec::with_capacity(paths);
    for path in 0..paths {
        let key = match path {
            0 => random_key,
            _ => random_key.named("path").numbered(path as u64),
        };
        let environment = protocol.environment(protocol.packet_bytes(), key, protocol.hints());
        sending.push(PathParts {
            controller: protocol.controller(&environment),
            flow,
            random_key: key.named("data").bits(),
        });
        receiving.push(PathParts {
            controller: protocol.receiver_side(&environment),
            flow,
            random_key: key.named("acks").bits(),
        });
    }
    // The names were checked with the protocol's other parameters.
    let entry = SCHEDULERS.find(config.scheduler).unwrap_or(&SCHEDULERS.built_in()[0]);
    let coupling = COUPLINGS.find(config.coupling).unwrap_or(&COUPLINGS.built_in()[0]);
    let scheduler = (entry.build)();
    let sender = multipath::MultipathSender::new(config, sending, scheduler, *coupling);
    let receiver = multipath::MultipathReceiver::new(config, receiving);
    (SimulatedSender::Multipath(Box::new(sender)), SimulatedReceiver::Multipath(Box::new(receiver)))
}
