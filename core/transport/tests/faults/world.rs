//! A server's endpoint, clients' endpoints and hostile clients, and the network between them, in virtual time. Each end
//! has its own clock, each client its own link.

use super::hostile::Hostile;
use narrows_base::{Duration, RandomKey, Rate, Time, random::RandomStream};
use narrows_transport::connection::ConnectionEvent;
use narrows_transport::endpoint::{
    Clients, Endpoint, EndpointConfig, EndpointLimits, Entropy, Handle, Permit,
};
use narrows_wire::StaticKey;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Impairments of the network, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// One-way delay.
    pub delay: Duration,
    pub rate: Rate,
    /// Bytes of the queue.
    pub queue: u64,
    pub loss: f64,
    pub twice: f64,
    /// Share of packets delayed by up to two more `delay`.
    pub late: f64,
    /// Share of packets with one bit changed.
    pub changed: f64,
    /// Share of packets that are truncated.
    pub cut: f64,
    /// Share of ECN-capable packets that are marked CE.
    pub marked: f64,
    /// Largest UDP payload in bytes that passes.
    pub mtu: usize,
}

/// Repeatable random bytes.
struct SeededEntropy(RandomStream);

impl Entropy for SeededEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let bits = self.0.bits().to_be_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
    }
}

/// A datagram in transit: from, to, ECN field, bytes.
type Flying = (SocketAddr, SocketAddr, u8, Vec<u8>);

/// An endpoint with its clock. The endpoint is absent if its process has ended.
pub struct End {
    pub port: Option<Endpoint>,
    pub at: SocketAddr,
    /// Its clock's time when the world's is zero.
    ahead: Duration,
    /// Time that its clock did not count.
    missed: Duration,
    /// Its process is stopped until this time.
    pub asleep: Time,
    /// Datagrams that wait in its socket while it is stopped.
    socket: Vec<(SocketAddr, u8, Vec<u8>)>,
}

impl End {
    fn new(port: Endpoint, at: SocketAddr, clock: u64) -> End {
        End {
            port: Some(port),
            at,
            // Large enough that uncounted time never leads below zero.
            ahead: Duration::from_secs(100_000 + clock % 100_000),
            missed: Duration::ZERO,
            asleep: Time::ZERO,
            socket: Vec::new(),
        }
    }
    /// Its clock's time.
    pub fn clock(&self, now: Time) -> Time {
        Time::from_nanos((now + self.ahead).as_nanos() - self.missed.as_nanos())
    }
    /// The world's time when its clock shows `local`.
    fn world(&self, local: Time) -> Time {
        if local.is_never() {
            return local;
        }
        let shown = local.as_nanos().saturating_add(self.missed.as_nanos());
        Time::from_nanos(shown.saturating_sub(self.ahead.as_nanos()))
    }
    /// Makes the clock jump.
    pub fn leap(&mut self, by: Duration) {
        self.ahead += by;
    }
    /// Stops the process, and its clock too unless `counted`.
    pub fn sleep(&mut self, now: Time, so_long: Duration, counted: bool) {
        let from = self.asleep.max(now);
        self.asleep = from + so_long;
        if !counted {
            self.missed += so_long;
        }
    }
    fn is_awake(&self, now: Time) -> bool {
        self.port.is_some() && now >= self.asleep
    }
    fn due(&self, now: Time) -> Time {
        match &self.port {
            Some(_) if now < self.asleep => self.asleep,
            Some(port) => self.world(port.next_timeout()),
            None => Time::NEVER,
        }
    }
}

/// An end: its index in [`World::ends`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EndIndex(pub usize);

impl EndIndex {
    /// The first client, in many schedules the only one.
    pub const CLIENT: EndIndex = EndIndex(0);
    pub const SERVER: EndIndex = EndIndex(1);
}

/// A further path of the first client: the address of its socket, its link, and its outages.
#[derive(Clone, Copy, Debug)]
pub struct FurtherPath {
    pub at: SocketAddr,
    pub link: Link,
    /// As [`World::outage`].
    pub outage: [Time; 2],
}

pub struct World {
    pub now: Time,
    /// The first client, the server, further clients.
    pub ends: Vec<End>,
    /// Hostile clients.
    pub hostile: Vec<Hostile>,
    pub link: Link,
    /// Paths from 1 on of the first client.
    pub further: Vec<FurtherPath>,
    /// No packet passes before these times: towards the server, and from it.
    pub outage: [Time; 2],
    /// Datagrams per call.
    pub segments: usize,
    pub events: Vec<(EndIndex, Handle, ConnectionEvent)>,
    /// Highest memory of an endpoint so far, in bytes.
    pub held: usize,
    pub sent: u64,
    /// Those of further paths.
    pub sent_further: u64,
    flying: BTreeMap<(Time, u64), Flying>,
    /// When each client's link is free: towards the server, and from it.
    free: BTreeMap<usize, [Time; 2]>,
    order: u64,
    random: RandomStream,
}

/// Number of the first further path's link.
const FURTHER: usize = 1 << 20;
/// Limit on the datagrams in a socket.
const SOCKET: usize = 64;
/// Limit on the events at one time, to detect an endless loop.
const RESTLESS: u32 = 20_000;

impl World {
    pub fn new(seed: u64, link: Link, client: EndpointConfig, server: EndpointConfig) -> World {
        let random_key = RandomKey::from_seed(seed).named("world");
        let mut random = random_key.stream();
        let mut end = |config, at: &str, name| {
            End::new(Endpoint::new(config, entropy(seed, name)), at.parse().unwrap(), random.bits())
        };
        let ends = vec![
            end(client, "192.0.2.1:5000", "client"),
            end(server, "198.51.100.2:443", "server"),
        ];
        World {
            now: Time::ZERO,
            ends,
            hostile: Vec::new(),
            link,
            further: Vec::new(),
            outage: [Time::ZERO; 2],
            segments: 1,
            events: Vec::new(),
            held: 0,
            sent: 0,
            sent_further: 0,
            flying: BTreeMap::new(),
            free: BTreeMap::new(),
            order: 0,
            random,
        }
    }
    /// Adds a client.
    pub fn add_client(&mut self, port: Endpoint, at: SocketAddr) -> EndIndex {
        let clock = self.random.bits();
        self.ends.push(End::new(port, at, clock));
        EndIndex(self.ends.len() - 1)
    }
    pub fn end(&mut self, end: EndIndex) -> &mut End {
        &mut self.ends[end.0]
    }
    /// The endpoint of a running end, and its clock's time.
    pub fn port(&mut self, end: EndIndex) -> Option<(Time, &mut Endpoint)> {
        let now = self.now;
        let end = self.end(end);
        if !end.is_awake(now) {
            return None;
        }
        let local = end.clock(now);
        Some((local, end.port.as_mut()?))
    }

    /// Takes all packets that an end sends now.
    fn flush(&mut self, end: EndIndex) {
        let mut buffer = vec![0; 64 * 1024];
        let segments = self.segments;
        for _ in 0..RESTLESS {
            let Some((local, port)) = self.port(end) else { return };
            let Some(t) = port.transmit(local, &mut buffer, segments) else {
                let held = port.memory();
                self.held = self.held.max(held);
                return;
            };
            assert!(t.size > 0 && t.segment > 0 && t.segment <= t.size);
            for datagram in buffer[..t.size].chunks(t.segment) {
                let further = usize::from(t.socket).checked_sub(1);
                let from = match further.filter(|_| end == EndIndex::CLIENT) {
                    Some(place) => self.further[place].at,
                    None => self.ends[end.0].at,
                };
                self.launch(from, t.to, t.ecn, datagram.to_vec());
            }
        }
        panic!("{end:?} sends without end");
    }

    /// The client's link. Packets to an unused address use the first client's.
    fn lane(&self, client: SocketAddr) -> usize {
        if let Some(place) = self.further(client) {
            return FURTHER + place;
        }
        let hostile = self.hostile.iter().position(|h| h.at == client);
        let end = self.ends.iter().position(|e| e.at == client);
        hostile.map(|n| n + self.ends.len()).or(end).unwrap_or(0)
    }

    /// The further path with this address.
    fn further(&self, at: SocketAddr) -> Option<usize> {
        self.further.iter().position(|path| path.at == at)
    }

    /// Puts a datagram into the network, unless it is lost. Each client has its own link.
    fn launch(&mut self, from: SocketAddr, to: SocketAddr, mut ecn: u8, mut bytes: Vec<u8>) {
        self.sent += 1;
        let way = usize::from(from == self.ends[EndIndex::SERVER.0].at);
        if let Some(hostile) = self.hostile.iter_mut().find(|h| h.at == to) {
            hostile.traffic.sent_to += bytes.len() as u64;
        }
        let client = if way == 0 { from } else { to };
        let lane = self.lane(client);
        let further = self.further(client).map(|place| self.further[place]);
        self.sent_further += u64::from(further.is_some());
        let link = further.map_or(self.link, |path| path.link);
        let outage = further.map_or(self.outage, |path| path.outage);
        let free = &mut self.free.entry(lane).or_insert([Time::ZERO; 2])[way];
        let waits = free.since(self.now).as_secs_f64() * link.rate.as_bps() as f64 / 8.0;
        let size = bytes.len() as u64 + 28;
        if bytes.len() > link.mtu || waits as u64 + size > link.queue {
            return;
        }
        let takes = Duration::from_secs_f64(size as f64 * 8.0 / link.rate.as_bps() as f64);
        *free = (*free).max(self.now) + takes;
        let mut at = *free + link.delay;
        if self.random.chance(link.loss) || self.now < outage[way] {
            return;
        }
        let place = self.random.bits() as usize % bytes.len();
        if self.random.chance(link.changed) {
            bytes[place] ^= 1 << (self.random.bits() % 8);
        }
        if self.random.chance(link.cut) {
            bytes.truncate(place);
        }
        if ecn == 2 && self.random.chance(link.marked) {
            ecn = 3;
        }
        if self.random.chance(link.late) {
            at += link.delay.mul_f64(2.0 * self.random.unit());
        }
        let copies = if self.random.chance(link.twice) { 2 } else { 1 };
        for _ in 0..copies {
            self.order += 1;
            self.flying.insert((at, self.order), (from, to, ecn, bytes.clone()));
            at += link.delay.mul_f64(0.5 + self.random.unit());
        }
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, ecn: u8, mut bytes: Vec<u8>) {
        let now = self.now;
        if let Some(hostile) = self.hostile.iter_mut().find(|h| h.at == to) {
            return hostile.receive(now, &mut bytes);
        }
        if let Some(hostile) = self.hostile.iter_mut().find(|h| h.at == from) {
            hostile.traffic.came_from += bytes.len() as u64;
        }
        // The client's old address is unused.
        let first = self.ends[EndIndex::CLIENT.0].at;
        let to = if self.further(to).is_some() { first } else { to };
        let Some(end) = self.ends.iter_mut().find(|e| e.at == to) else { return };
        if !end.is_awake(now) {
            if end.port.is_some() && end.socket.len() < SOCKET {
                end.socket.push((from, ecn, bytes));
            }
            return;
        }
        let local = end.clock(now);
        if let Some(port) = &mut end.port {
            port.receive(local, from, ecn, &mut bytes);
        }
    }

    /// Handles all that happens without time passing, then calls `look` for the events.
    fn settle(&mut self, look: &mut dyn FnMut(&mut World)) {
        for hostile in 0..self.hostile.len() {
            let from = self.hostile[hostile].at;
            let server = self.ends[EndIndex::SERVER.0].at;
            for bytes in self.hostile[hostile].act(self.now) {
                self.launch(from, server, 0, bytes);
            }
        }
        for end in (0..self.ends.len()).map(EndIndex) {
            let waiting = match self.port(end) {
                Some(_) => std::mem::take(&mut self.end(end).socket),
                None => continue,
            };
            for (from, ecn, mut bytes) in waiting {
                if let Some((local, port)) = self.port(end) {
                    port.receive(local, from, ecn, &mut bytes);
                }
            }
            if let Some((local, port)) = self.port(end)
                && port.next_timeout() <= local
            {
                port.on_timeout(local);
            }
            self.flush(end);
            let mut events = Vec::new();
            if let Some((_, port)) = self.port(end) {
                while let Some((handle, event)) = port.event() {
                    events.push((end, handle, event));
                }
            }
            self.events.extend(events);
        }
        look(self);
        for end in (0..self.ends.len()).map(EndIndex) {
            self.flush(end);
        }
    }

    /// Runs until a time, or until `look` returns true. Returns whether it did.
    pub fn run(&mut self, until: Time, look: &mut dyn FnMut(&mut World) -> bool) -> bool {
        let mut moment = self.now;
        let mut steps = 0;
        loop {
            let mut enough = false;
            self.settle(&mut |world| enough |= look(world));
            if enough {
                return true;
            }
            let due = self.ends.iter().map(|e| e.due(self.now)).min().unwrap_or(Time::NEVER);
            let due = self.hostile.iter().map(|h| h.due).fold(due, Time::min);
            let arrival = self.flying.keys().next().map_or(Time::NEVER, |k| k.0);
            let next = due.min(arrival);
            if next > until {
                self.now = until;
                return false;
            }
            self.now = self.now.max(next);
            steps = if self.now > moment { 0 } else { steps + 1 };
            moment = self.now;
            assert!(steps < RESTLESS, "an end never rests");
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (from, to, ecn, bytes) = entry.remove();
                self.arrive(from, to, ecn, bytes);
            }
        }
    }
}

/// Random bytes for an endpoint.
pub fn entropy(seed: u64, name: &str) -> Box<dyn Entropy> {
    Box::new(SeededEntropy(RandomKey::from_seed(seed).named(name).stream()))
}

/// An endpoint's configuration.
pub fn config(
    key: u8,
    clients: Clients,
    connection: narrows_transport::connection::ConnectionConfig,
) -> EndpointConfig {
    let mut limits = EndpointLimits::new(16);
    limits.connections_of_source = 16;
    limits.handshakes = 8;
    EndpointConfig {
        key: StaticKey::new([key; 32]).unwrap(),
        clients,
        connection,
        permit: Permit::Listed,
        filter: Default::default(),
        limits,
        early_data: false,
        local_port: 443,
    }
}
