//! Schedules with several conforming clients at one server, some behind one address, and usually with hostile clients.
//! The conforming clients get identical bytes. The hostile ones get no more than the documented limits.

use super::app::{HEAD, Half, Work};
use super::hostile::{Hostile, Kind};
use super::schedule::{PROTOCOLS, link};
use super::world::{EndIndex, Link, World, config, entropy};
use narrows_base::{Duration, RandomKey, Rate, Spec, Time, random::RandomStream};
use narrows_transport::Protocol;
use narrows_transport::connection::{Closed, Connection, ConnectionConfig, ConnectionEvent};
use narrows_transport::endpoint::{
    Clients, ConnectRequest, Endpoint, EndpointLimits, Handle, Permit, ServerKey,
};
use narrows_transport::streams::{FlowControlLimits, Read, StreamEvent};
use narrows_wire::{StaticKey, Suite};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A conforming client.
#[derive(Debug)]
struct Member {
    at: SocketAddr,
    protocol: &'static str,
    /// Its key, which also determines its bytes.
    key: u8,
    begins: Time,
    wanted: Vec<(u64, u64)>,
    attempts: usize,
    now: Option<(Handle, BTreeMap<u64, Work>)>,
    is_whole: bool,
    refusals: Vec<Closed>,
}

/// All settings that follow from one seed.
#[derive(Debug)]
pub struct Crowd {
    seed: u64,
    link: Link,
    server: &'static str,
    idle: Duration,
    segments: usize,
    members: Vec<Member>,
    hostile: Vec<(SocketAddr, Kind)>,
    /// When the hostile clients stop.
    over: Time,
}

/// Result of a schedule.
#[derive(Debug)]
pub struct CrowdEnding {
    pub kinds: Vec<Kind>,
    pub clients: usize,
    pub attempts: usize,
    pub seconds: f64,
    pub held: usize,
    /// Bytes sent to hostile clients, and received from them.
    pub sent_to: u64,
    pub came_from: u64,
    /// Handshakes of hostile clients.
    pub opened: u64,
}

/// Limit on the attempts of a client that lost its connection or found no place.
const ATTEMPTS: usize = 8;
/// Limit on the bytes of a conforming client's response.
const MAX_ANSWER_BYTES: f64 = 100_000.0;
/// Limit in s on the duration after the last client has begun and the hostile ones have stopped. See the schedules of
/// one client.
const BOUND: f64 = 2400.0;
/// Places of the server, and of one network there.
const PLACES: usize = 24;
/// Limit on the server's memory for one connection, for any peer: windows and send buffers, records of packets and
/// ranges, and the slack of growing by doubling.
const HELD: usize = 4 << 20;
/// Bytes of the response to a hostile client on a stream.
const ANSWER: u64 = 1 << 20;

impl Crowd {
    pub fn new(seed: u64) -> Crowd {
        let mut random = RandomKey::from_seed(seed).named("crowd").stream();
        let link = link(&mut random);
        let protocol = |random: &mut RandomStream| {
            PROTOCOLS[(random.bits() % PROTOCOLS.len() as u64) as usize]
        };
        let server = protocol(&mut random);
        // Half of them are at the attackers' address.
        let shared = |random: &mut RandomStream, n: usize, port: u16| -> SocketAddr {
            let last = if random.chance(0.5) { 1 } else { 10 + n as u8 };
            ([192, 0, 2, last], port + n as u16).into()
        };
        let member = |n: usize, random: &mut RandomStream| {
            let bytes = |random: &mut RandomStream| {
                (random.pareto(0.3, 1.0) - 1.0).min(MAX_ANSWER_BYTES) as u64
            };
            Member {
                at: shared(random, n, 5000),
                protocol: protocol(random),
                key: 10 + n as u8,
                begins: Time::from_secs_f64(3.0 * random.unit()),
                wanted: (0..1 + random.bits() % 3)
                    .map(|_| (bytes(random), bytes(random)))
                    .collect(),
                attempts: 0,
                now: None,
                is_whole: false,
                refusals: Vec::new(),
            }
        };
        let members = (0..2 + random.bits() as usize % 5).map(|n| member(n, &mut random)).collect();
        let hostile = (0..random.bits() as usize % 5)
            .map(|n| {
                let kind = Kind::ALL[random.bits() as usize % Kind::ALL.len()];
                (shared(&mut random, n, 7000), kind)
            })
            .collect();
        Crowd {
            seed,
            link,
            server,
            idle: Duration::from_secs(8 + random.bits() % 30),
            segments: 1 + (random.bits() % 40) as usize,
            members,
            hostile,
            over: Time::from_secs_f64(2.0 + 8.0 * random.unit()),
        }
    }

    fn connection(&self, protocol: &str) -> ConnectionConfig {
        ConnectionConfig {
            protocol: Protocol::read(&Spec::named(protocol), 1500).unwrap(),
            hints: Default::default(),
            hint_source: Default::default(),
            rate_limit: None,
            max_datagram: 1472,
            first_datagram: 1200,
            idle_timeout: self.idle,
            keep_alive: Duration::ZERO,
            limits: FlowControlLimits { data: 1 << 18, stream: 1 << 16, both: 8, one_way: 8 },
            // The send buffer is not to limit the rate.
            send_buffer: 1 << 20,
            max_buffered: 0,
            growth: Default::default(),
            turn_bytes: 0,
            max_message: 1000,
            messages_held: 16,
            probes_rate: true,
            custom: Default::default(),
            paths: 1,
            applications: Default::default(),
        }
    }

    /// Runs the schedule.
    pub fn run(mut self) -> CrowdEnding {
        let mut servers = config(2, Clients::Any, self.connection(self.server));
        // Also protocols that send at a rate given by the peer.
        servers.permit = Permit::Any(Rate::from_bps(50_000_000));
        servers.limits = EndpointLimits::new(PLACES);
        servers.limits.connections_of_source = PLACES;
        servers.limits.handshakes = 16;
        let mut members = std::mem::take(&mut self.members);
        let clients = |m: &Member| config(m.key, Clients::None, self.connection(m.protocol));
        let mut world = World::new(self.seed, self.link, clients(&members[0]), servers);
        world.end(EndIndex::CLIENT).at = members[0].at;
        world.segments = self.segments;
        let mut ends = vec![EndIndex::CLIENT];
        for m in &members[1..] {
            let port = Endpoint::new(clients(m), entropy(self.seed, &format!("client {}", m.key)));
            ends.push(world.add_client(port, m.at));
        }
        for (n, (at, kind)) in self.hostile.iter().enumerate() {
            let seed = self.seed.wrapping_mul(31).wrapping_add(n as u64);
            world.hostile.push(Hostile::new(seed, *at, *kind, &self.link, self.over));
        }
        let mut server = Server { keys: keys(&members), served: BTreeMap::new() };
        let mut looked = 0;
        let last = self.over.max(Time::from_secs_f64(3.0));
        let mut beginnings: Vec<Time> = members.iter().map(|m| m.begins).collect();
        beginnings.push(last);
        beginnings.sort_unstable();
        let mut beginnings = beginnings.into_iter();
        let end = last + Duration::from_secs_f64(BOUND);
        loop {
            let until = beginnings.next().unwrap_or(end);
            let is_done = world.run(until, &mut |world| {
                for (at, handle, event) in world.events.split_off(looked) {
                    match ends.iter().position(|w| *w == at) {
                        Some(n) => members[n].on_event(world, at, handle, event),
                        None => server.on_event(world, handle, event),
                    }
                }
                looked = world.events.len();
                for (n, m) in members.iter_mut().enumerate() {
                    if !m.is_whole && m.now.is_none() && world.now >= m.begins {
                        m.connect(world, ends[n], self.connection(m.protocol));
                    }
                }
                let held = world.port(EndIndex::SERVER).map_or(0, |(_, port)| port.memory());
                assert!(held <= PLACES * HELD, "{held} bytes held by the server");
                world.now >= last
                    && members.iter().all(|m| m.is_whole)
                    && world.ends.iter().all(|e| e.port.as_ref().is_none_or(Endpoint::is_empty))
            });
            if is_done {
                break;
            }
            let waiting: Vec<&Member> = members.iter().filter(|m| !m.is_whole).collect();
            assert!(
                world.now < end,
                "no end: {waiting:?} {:?}",
                world.port(EndIndex::SERVER).map(|p| p.1.len())
            );
        }
        world.hostile.iter().for_each(Hostile::check);
        let held = world.end(EndIndex::SERVER).port.as_ref().map_or(0, Endpoint::memory);
        assert!(held < 8192, "{held} bytes held after the end");
        let traffic = world.hostile.iter().map(|h| h.traffic);
        CrowdEnding {
            kinds: world.hostile.iter().map(|h| h.kind).collect(),
            clients: members.len(),
            attempts: members.iter().map(|m| m.attempts).sum(),
            seconds: world.now.as_secs_f64(),
            held: world.held,
            sent_to: traffic.clone().map(|t| t.sent_to).sum(),
            came_from: traffic.clone().map(|t| t.came_from).sum(),
            opened: traffic.map(|t| t.opened).sum(),
        }
    }
}

/// The clients' keys with the seeds of their bytes.
fn keys(members: &[Member]) -> BTreeMap<[u8; 32], u64> {
    let key = |m: &Member| *StaticKey::new([m.key; 32]).unwrap().public();
    members.iter().map(|m| (key(m), u64::from(m.key))).collect()
}

impl Member {
    fn connect(&mut self, world: &mut World, end: EndIndex, connection: ConnectionConfig) {
        let refusals = &self.refusals;
        let at = world.now;
        assert!(self.attempts < ATTEMPTS, "{at:?}: not served: {refusals:?}");
        let remote = world.end(EndIndex::SERVER).at;
        let Some((now, port)) = world.port(end) else { return };
        let wish = ConnectRequest {
            remote,
            server_key: ServerKey::Is(*StaticKey::new([2; 32]).unwrap().public()),
            suite: Suite::Aes256Gcm,
            connection,
            patience: Duration::from_secs(20),
            early_data: None,
        };
        let handle = port.connect(now, wish).expect("one connection at a time");
        self.attempts += 1;
        self.now = Some((handle, BTreeMap::new()));
    }

    fn on_event(
        &mut self,
        world: &mut World,
        end: EndIndex,
        handle: Handle,
        event: ConnectionEvent,
    ) {
        let Some((now, port)) = world.port(end) else { return };
        let Some((_, work)) = self.now.as_mut().filter(|n| n.0 == handle) else { return };
        let seed = u64::from(self.key);
        match event {
            ConnectionEvent::Closed(why) => {
                if !self.is_whole {
                    self.refusals.push(why);
                }
                self.now = None;
                return;
            }
            ConnectionEvent::Connected(_) => {
                let Some(c) = port.connection(handle) else { return };
                for (up, down) in &self.wanted {
                    let id = c.open(false).expect("as many as are permitted");
                    let send = Half { wanted: HEAD + up, ..Half::default() };
                    let one = work.entry(id).or_insert(Work { send, ..Work::default() });
                    one.write(seed, false, id, *down, c);
                }
            }
            ConnectionEvent::Stream(StreamEvent::Readable(id) | StreamEvent::Writable(id)) => {
                let Some(c) = port.connection(handle) else { return };
                let down = work.keys().position(|k| *k == id).map_or(0, |n| self.wanted[n].1);
                if let Some(one) = work.get_mut(&id) {
                    one.write(seed, false, id, down, c);
                    one.read(seed, true, id, c);
                }
            }
            _ => {}
        }
        if !self.is_whole && !work.is_empty() && work.values().all(|w| w.receive.ended) {
            let got: Vec<u64> = work.values().map(|w| w.receive.done).collect();
            let wanted: Vec<u64> = self.wanted.iter().map(|w| w.1).collect();
            assert_eq!(got, wanted, "all ended, not all whole");
            self.is_whole = true;
            port.close(now, handle, 256, "done");
        }
    }
}

/// The server's application.
struct Server {
    keys: BTreeMap<[u8; 32], u64>,
    /// The client's seed (`None` for hostile ones), and its streams.
    served: BTreeMap<Handle, (Option<u64>, BTreeMap<u64, Work>)>,
}

impl Server {
    fn on_event(&mut self, world: &mut World, handle: Handle, event: ConnectionEvent) {
        if let ConnectionEvent::Connected(key) = event {
            self.served.insert(handle, (self.keys.get(&key).copied(), BTreeMap::new()));
            return;
        }
        if let ConnectionEvent::Closed(_) = event {
            self.served.remove(&handle);
            return;
        }
        let Some((_, port)) = world.port(EndIndex::SERVER) else { return };
        let Some((seed, work)) = self.served.get_mut(&handle) else { return };
        let Some(c) = port.connection(handle) else { return };
        let mut ready = Vec::new();
        match event {
            ConnectionEvent::Stream(StreamEvent::Opened) => {
                while let Some(id) = c.accept() {
                    work.insert(id, Work::default());
                    ready.push(id);
                }
            }
            ConnectionEvent::Stream(StreamEvent::Readable(id) | StreamEvent::Writable(id)) => {
                ready.push(id)
            }
            ConnectionEvent::Message => while c.receive_message().is_some() {},
            _ => {}
        }
        for id in ready {
            let Some(one) = work.get_mut(&id) else { continue };
            match *seed {
                Some(seed) => {
                    one.read(seed, false, id, c);
                    if one.receive.ended {
                        let head = one.head.as_slice().try_into().expect("a beginning");
                        one.send.wanted = u64::from_be_bytes(head);
                        one.write(seed, true, id, 0, c);
                    }
                }
                None => answer_anything(one, id, c),
            }
        }
    }
}

/// Responds to any request of a hostile client with as many bytes as a stream may have.
fn answer_anything(work: &mut Work, id: u64, c: &mut Connection) {
    let mut buffer = [0; 8192];
    while let Ok(Read::Bytes(_)) = c.read(id, &mut buffer) {}
    work.send.wanted = ANSWER;
    work.write(0, true, id, 0, c);
}
