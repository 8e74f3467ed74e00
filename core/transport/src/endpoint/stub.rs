//! For tests: a minimal connection, repeatable randomness, and a path between ports that loses,
//! duplicates and reorders packets.

use super::managed::ManagedConnection;
use super::{
    Clients, ConnectRequest, Connections, EndpointConfig, EndpointLimits, Entropy, Handle, Permit,
    ServerKey,
};
use crate::Protocol;
use crate::connection::NewConnection;
use crate::connection::{Closed, ConnectionConfig, ConnectionEvent, Transmit};
use crate::streams::FlowControlLimits;
use narrows_base::{Duration, RandomKey, Spec, Time};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::{Established, Frame, FrameWriter, Frames, Prelude, Sealer, StaticKey, Suite};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Sends PING until a packet arrives, replies to PING with PADDING, sends and receives messages.
pub(super) struct StubConnection {
    keys: Established,
    pub(super) remote: SocketAddr,
    pub(super) rtt: Option<Duration>,
    pub(super) dispersion: Option<narrows_congestion::Dispersion>,
    number: u64,
    asks_at: Time,
    has_heard: bool,
    owes: bool,
    closing: Option<u64>,
    is_drained: bool,
    pub(super) to_say: VecDeque<Vec<u8>>,
    pub(super) heard: Vec<Vec<u8>>,
    pub(super) moved: u64,
    pub(super) in_flight: u64,
    events: VecDeque<ConnectionEvent>,
    /// How often the endpoint called `transmit` or `on_timeout`.
    pub(super) looks: u64,
    pub(super) idle_until: Time,
}

impl StubConnection {
    fn write(&mut self, now: Time, frame: &Frame<'_>, buffer: &mut [u8]) -> usize {
        let head = Sealer::header_len(self.number, None);
        let most = buffer.len().min(1200) - TAG_BYTES;
        let prelude = Prelude::new(now, self.number, self.number);
        let mut writer = FrameWriter::new(&mut buffer[head..most], prelude).unwrap();
        writer.frame(frame).unwrap();
        let size = head + writer.len() + TAG_BYTES;
        self.keys.sealer.seal(self.number, None, &mut buffer[..size]).unwrap();
        self.number += 1;
        size
    }
}

impl ManagedConnection for StubConnection {
    fn begin(now: Time, b: NewConnection<'_>) -> StubConnection {
        StubConnection {
            keys: b.established,
            remote: b.remote,
            rtt: b.rtt,
            dispersion: None,
            number: 0,
            asks_at: now,
            has_heard: false,
            owes: false,
            closing: None,
            is_drained: false,
            to_say: VecDeque::new(),
            heard: Vec::new(),
            moved: 0,
            in_flight: 0,
            events: VecDeque::new(),
            looks: 0,
            idle_until: now + b.config.idle_timeout,
        }
    }
    fn receive_on(
        &mut self,
        now: Time,
        _path: u8,
        from: SocketAddr,
        _ecn: u8,
        datagram: &mut [u8],
    ) -> bool {
        let Ok(opened) = self.keys.opener.open(datagram) else { return false };
        self.remote = from;
        self.has_heard = true;
        self.idle_until = now + Duration::from_secs(30);
        for frame in Frames::read(opened.payload).unwrap().1 {
            match frame.unwrap() {
                Frame::Ping => self.owes = true,
                Frame::Datagram(message) => {
                    self.moved += message.len() as u64;
                    self.heard.push(message.to_vec());
                    self.events.push_back(ConnectionEvent::Message);
                }
                Frame::Close { code, reason } => {
                    let reason = String::from_utf8_lossy(reason).into_owned();
                    self.events.push_back(ConnectionEvent::Closed(Closed::ByPeer { code, reason }));
                    self.is_drained = true;
                }
                _ => {}
            }
        }
        true
    }
    fn on_dispersion(&mut self, _now: Time, dispersion: &narrows_congestion::Dispersion) {
        self.dispersion = Some(*dispersion);
    }
    fn transmit(&mut self, now: Time, buffer: &mut [u8], _: usize) -> Option<Transmit> {
        self.looks += 1;
        let size = if self.is_drained {
            return None;
        } else if let Some(code) = self.closing {
            self.is_drained = true;
            self.write(now, &Frame::Close { code, reason: b"bye" }, buffer)
        } else if !self.has_heard && now >= self.asks_at {
            self.asks_at = now + Duration::from_millis(200);
            self.write(now, &Frame::Ping, buffer)
        } else if let Some(message) = self.to_say.pop_front() {
            self.write(now, &Frame::Datagram(&message), buffer)
        } else if std::mem::take(&mut self.owes) {
            self.write(now, &Frame::Padding(1), buffer)
        } else {
            return None;
        };
        Some(Transmit { to: self.remote, size, segment: size, ecn: 2, socket: 0 })
    }
    fn next_timeout(&self) -> Time {
        if self.is_drained {
            return Time::NEVER;
        }
        let asks = if self.has_heard { Time::NEVER } else { self.asks_at };
        asks.min(self.idle_until)
    }
    fn on_timeout(&mut self, now: Time) {
        self.looks += 1;
        if now >= self.idle_until && !self.is_drained {
            self.events.push_back(ConnectionEvent::Closed(Closed::TimedOut));
            self.is_drained = true;
        }
    }
    fn event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }
    fn close(&mut self, _: Time, code: u64, _: &str) {
        self.closing = Some(code);
        self.events.push_back(ConnectionEvent::Closed(Closed::Locally));
    }
    fn on_reset(&mut self, _: &[u8; 16]) {
        self.events.push_back(ConnectionEvent::Closed(Closed::Reset));
        self.is_drained = true;
    }
    fn remote(&self) -> SocketAddr {
        self.remote
    }
    fn is_drained(&self) -> bool {
        self.is_drained
    }
    fn in_flight(&self) -> u64 {
        self.in_flight
    }
    fn memory(&self) -> usize {
        size_of::<StubConnection>()
    }
    fn moved(&self) -> u64 {
        self.moved
    }
    fn protocol(&self) -> &str {
        "stand-in"
    }
}

pub(super) struct SeededEntropy(pub(super) narrows_base::RandomStream);

impl Entropy for SeededEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let bits = self.0.bits().to_be_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
    }
}

pub(super) fn random(seed: u64) -> Box<dyn Entropy> {
    Box::new(SeededEntropy(RandomKey::from_seed(seed).stream()))
}

pub(super) fn key(n: u8) -> StaticKey {
    StaticKey::new([n; 32]).unwrap()
}

pub(super) fn connection() -> ConnectionConfig {
    ConnectionConfig {
        idle_timeout: Duration::from_secs(30),
        keep_alive: Duration::ZERO,
        limits: FlowControlLimits { data: 1 << 20, stream: 1 << 18, both: 4, one_way: 4 },
        send_buffer: 1 << 18,
        max_buffered: 0,
        max_message: 1000,
        messages_held: 16,
        probes_rate: false,
        ..ConnectionConfig::new(Protocol::read(&Spec::named("tfrc"), 1500).unwrap())
    }
}

pub(super) fn config(n: u8, clients: Clients) -> EndpointConfig {
    EndpointConfig {
        key: key(n),
        clients,
        connection: connection(),
        permit: Permit::Own,
        filter: Default::default(),
        limits: EndpointLimits {
            connections_of_source: 64,
            handshakes: 16,
            handshake_rate: 100,
            handshake_rate_of_source: 100,
            ..EndpointLimits::new(64)
        },
        early_data: false,
        local_port: 443,
    }
}

pub(super) fn wish(to: &str, server_key: ServerKey) -> ConnectRequest {
    ConnectRequest {
        remote: to.parse().unwrap(),
        server_key,
        suite: Suite::Aes256Gcm,
        connection: connection(),
        patience: Duration::from_secs(15),
        early_data: None,
    }
}

pub(super) type Test = Connections<StubConnection>;

pub(super) const SERVER: &str = "192.0.2.1:443";
pub(super) const CLIENT: &str = "198.51.100.7:5000";

/// The arrival times of a datagram's copies.
type Arrivals<'a> = dyn FnMut(Time, &[u8]) -> Vec<Time> + 'a;

/// Endpoints by their addresses, and the packets in transit.
pub(super) struct StubNetwork<C> {
    pub(super) now: Time,
    pub(super) ports: BTreeMap<SocketAddr, Connections<C>>,
    /// By arrival time and serial number: from, to, bytes.
    pub(super) flying: BTreeMap<(Time, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    pub(super) events: Vec<(SocketAddr, Handle, ConnectionEvent)>,
    /// All packets sent so far.
    pub(super) seen: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Packets that one call may write, as for a socket with segmentation offload.
    pub(super) segments: usize,
    count: u64,
}

impl StubNetwork<StubConnection> {
    /// A server with key 2 that accepts all clients, and a client with key 1.
    pub(super) fn pair(seed: u64) -> StubNetwork<StubConnection> {
        StubNetwork::new(seed)
    }
    /// Such a pair whose server requires a cookie.
    pub(super) fn pair_with_cookies(seed: u64) -> StubNetwork<StubConnection> {
        let mut net = StubNetwork::pair(seed);
        let config = config(2, Clients::Any);
        let limits = EndpointLimits { handshakes: 3, ..config.limits };
        *net.at(SERVER) = Connections::new(EndpointConfig { limits, ..config }, random(2 * seed));
        net
    }
}

impl<C: ManagedConnection> StubNetwork<C> {
    /// A server with key 2 that accepts all clients, and a client with key 1.
    pub(super) fn new(seed: u64) -> StubNetwork<C> {
        let ports = [
            (SERVER, Connections::new(config(2, Clients::Any), random(2 * seed))),
            (CLIENT, Connections::new(config(1, Clients::None), random(2 * seed + 1))),
        ];
        StubNetwork {
            now: Time::from_secs_f64(100.0),
            ports: ports
                .into_iter()
                .map(|(at, endpoint)| (at.parse().unwrap(), endpoint))
                .collect(),
            flying: BTreeMap::new(),
            events: Vec::new(),
            seen: Vec::new(),
            segments: 1,
            count: 0,
        }
    }
    pub(super) fn at(&mut self, address: &str) -> &mut Connections<C> {
        self.ports.get_mut(&address.parse().unwrap()).unwrap()
    }
    pub(super) fn connect(&mut self, server_key: ServerKey) -> Handle {
        let now = self.now;
        self.at(CLIENT).connect(now, wish(SERVER, server_key)).unwrap()
    }
    pub(super) fn fly(&mut self, at: Time, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.count += 1;
        self.flying.insert((at, self.count), (from, to, bytes.to_vec()));
    }

    /// Runs until all remaining events are after `until`.
    pub(super) fn run(&mut self, until: Time, arrivals: &mut Arrivals<'_>) {
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 1_000_000, "the ports never rest");
            let mut sent = Vec::new();
            for (at, endpoint) in &mut self.ports {
                endpoint.on_timeout(self.now);
                let mut buffer = vec![0; 2000 * self.segments];
                while let Some(t) = endpoint.transmit(self.now, &mut buffer, self.segments) {
                    for packet in buffer[..t.size].chunks(t.segment.max(1)) {
                        sent.push((*at, t.to, packet.to_vec()));
                    }
                }
                while let Some((handle, event)) = endpoint.event() {
                    self.events.push((*at, handle, event));
                }
                while endpoint.transmit(self.now, &mut buffer, self.segments).is_some() {}
            }
            for (from, to, bytes) in sent {
                for at in arrivals(self.now, &bytes) {
                    self.fly(at, from, to, &bytes);
                }
                self.seen.push((from, to, bytes));
            }
            let due = self.ports.values().map(|p| p.next_timeout()).min().unwrap();
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(k, _)| k.0);
            let next = due.min(arrival);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (from, to, mut bytes) = entry.remove();
                if let Some(endpoint) = self.ports.get_mut(&to) {
                    endpoint.receive(self.now, from, 2, &mut bytes);
                }
            }
        }
    }
    /// Runs for `seconds` over a path of 20 ms without losses.
    pub(super) fn run_for(&mut self, seconds: f64) {
        let until = self.now + Duration::from_secs_f64(seconds);
        self.run(until, &mut |now, _| vec![now + Duration::from_millis(20)]);
    }
    /// Events at an address, in order.
    pub(super) fn at_of(&self, address: &str) -> Vec<ConnectionEvent> {
        let address: SocketAddr = address.parse().unwrap();
        self.events.iter().filter(|e| e.0 == address).map(|e| e.2.clone()).collect()
    }
    pub(super) fn closed(&self, address: &str) -> Option<Closed> {
        self.at_of(address).into_iter().find_map(|e| match e {
            ConnectionEvent::Closed(why) => Some(why),
            _ => None,
        })
    }
    pub(super) fn is_connected(&self, address: &str) -> bool {
        self.at_of(address).iter().any(|e| matches!(e, ConnectionEvent::Connected(_)))
    }
}
