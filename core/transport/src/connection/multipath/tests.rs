//! Two connections with several links between them, in virtual time.

use super::super::pair_tests::{beginning, config, keys, params};
use crate::connection::{Closed, Connection, ConnectionConfig, ConnectionEvent};
use crate::streams::{FlowControlLimits, Read, Side};
use narrows_base::{Duration, RandomKey, Rate, Time, random::RandomStream};
use narrows_multipath::{PathStatus, PathWeight};
use narrows_wire::ConnectionId;
use narrows_wire::header::ShortHeader;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Impairments of one link, equal in both directions except `down`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub rate: Rate,
    /// One-way delay.
    pub delay: Duration,
    /// Bytes of the queue.
    pub queue: u64,
    pub loss: f64,
    /// Largest UDP payload that passes.
    pub mtu: usize,
    /// When nothing passes from the client, and from the server.
    pub down: [(f64, f64); 2],
}

pub(super) fn link(mbit: u64, ms: u64) -> Link {
    Link {
        rate: Rate::from_bps(mbit * 1_000_000),
        delay: Duration::from_millis(ms),
        queue: 150_000,
        loss: 0.0,
        mtu: 1500,
        down: [(0.0, 0.0); 2],
    }
}

/// A packet in transit.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub from: SocketAddr,
    pub to_client: bool,
    pub bytes: Vec<u8>,
}

pub(super) struct Bonded {
    pub now: Time,
    pub begun: Time,
    pub client: Connection,
    pub server: Connection,
    pub links: Vec<Link>,
    pub events: Vec<(Side, ConnectionEvent)>,
    /// Bytes that each link accepted from the client, and from the server.
    pub carried: Vec<[u64; 2]>,
    /// Bytes from the server on each link in each tenth of a second.
    log: Vec<Vec<u64>>,
    pub flying: BTreeMap<(Time, u64), Flying>,
    /// Copies of all packets that arrived, if wanted.
    pub keep: Option<Vec<Flying>>,
    order: u64,
    free: Vec<[Time; 2]>,
    /// Whether all paths share the queue of the first link.
    pub has_one_queue: bool,
    random: RandomStream,
}

pub(super) fn bonded_config(paths: u8) -> ConnectionConfig {
    let limits = FlowControlLimits { data: 1 << 24, stream: 1 << 24, both: 16, one_way: 16 };
    ConnectionConfig { paths, limits, send_buffer: 1 << 23, ..config("rrtp") }
}

/// The client's address on a link.
pub(super) fn client_at(link: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + link as u8], 5000 + link as u16))
}

/// The test's connection ID of a path at one end.
fn path_id(side: Side, path: u8) -> ConnectionId {
    ConnectionId(if side == Side::Client { 0xc0 } else { 0x50 } + u32::from(path))
}

impl Bonded {
    pub fn new(links: &[Link], seed: u64) -> Bonded {
        let paths = links.len() as u8;
        Bonded::of(&bonded_config(paths), &bonded_config(8), links, seed)
    }
    pub fn of(
        ours: &ConnectionConfig,
        theirs: &ConnectionConfig,
        links: &[Link],
        seed: u64,
    ) -> Bonded {
        let server_at = "198.51.100.2:443".parse().unwrap();
        let (c, s) = keys(ours, theirs);
        let now = Time::from_secs_f64(50.0);
        let rtt = Some(links[0].delay + links[0].delay);
        let hello = params(ours);
        let beginning_client = beginning(Side::Client, ours, &hello, c, server_at, rtt);
        let client = Connection::new(now, beginning_client);
        let hello = params(theirs);
        let beginning_server = beginning(Side::Server, theirs, &hello, s, client_at(0), rtt);
        let server = Connection::new(now, beginning_server);
        let count = links.len();
        Bonded {
            now,
            begun: now,
            client,
            server,
            links: links.to_vec(),
            events: Vec::new(),
            carried: vec![[0; 2]; count],
            log: vec![vec![0; 2000]; count],
            flying: BTreeMap::new(),
            keep: None,
            order: 0,
            free: vec![[now; 2]; count],
            has_one_queue: false,
            random: RandomKey::from_seed(seed).stream(),
        }
    }
    /// Opens all further paths, as the endpoint of the application does.
    pub fn open_paths(&mut self) {
        for path in 1..self.links.len() as u8 {
            let id = path_id(Side::Client, path);
            assert!(self.client.give_path_id(self.now, path, id));
        }
    }
    pub fn end(&mut self, side: Side) -> &mut Connection {
        if side == Side::Client { &mut self.client } else { &mut self.server }
    }
    pub fn seconds(&self) -> f64 {
        self.now.since(self.begun).as_secs_f64()
    }

    fn flush(&mut self, side: Side) {
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..10_000 {
            let now = self.now;
            let Some(t) = self.end(side).transmit(now, &mut buffer, 40) else { return };
            let to_client = side == Side::Server;
            // A server's reply takes the link of its destination; its socket is always the first.
            assert!(!to_client || t.socket == 0);
            let link = match to_client {
                true => (0..self.links.len()).find(|link| client_at(*link) == t.to),
                false => Some(usize::from(t.socket)),
            };
            let Some(link) = link else { continue };
            for datagram in buffer[..t.size].chunks(t.segment) {
                let from =
                    if to_client { "198.51.100.2:443".parse().unwrap() } else { client_at(link) };
                let flying = Flying { from, to_client, bytes: datagram.to_vec() };
                self.launch(link, flying);
            }
        }
        panic!("{side:?} sends without end at {:?}", self.now);
    }

    fn launch(&mut self, number: usize, flying: Flying) {
        let link = self.links[number];
        let direction = usize::from(flying.to_client);
        let queue = if self.has_one_queue { 0 } else { number };
        let free = &mut self.free[queue][direction];
        let rate = link.rate.as_bps() as f64;
        let size = flying.bytes.len() as u64 + 28;
        let waits = free.since(self.now).as_secs_f64() * rate / 8.0;
        if flying.bytes.len() > link.mtu || waits as u64 + size > link.queue {
            return;
        }
        let start = (*free).max(self.now);
        *free = start + Duration::from_secs_f64(size as f64 * 8.0 / rate);
        let at = *free + link.delay;
        let down = link.down[direction];
        if self.random.chance(link.loss) || (down.0..down.1).contains(&self.seconds()) {
            return;
        }
        self.carried[number][direction] += size;
        if flying.to_client {
            let tenth = (self.seconds() * 10.0) as usize;
            self.log[number][tenth] += size;
        }
        self.order += 1;
        self.flying.insert((at, self.order), flying);
    }

    /// Delivers a packet as an endpoint does. False if it was not accepted.
    pub fn hand(&mut self, mut flying: Flying) -> bool {
        let now = self.now;
        let side = if flying.to_client { Side::Client } else { Side::Server };
        let id = ShortHeader::read(&flying.bytes).unwrap().connection;
        let path = (0..16).find(|path| id == path_id(side, *path)).unwrap_or(0);
        let end = self.end(side);
        let is_authentic = end.receive_on(now, path, flying.from, 0, &mut flying.bytes);
        if let Some(path) = end.wanted_path() {
            assert!(end.give_path_id(now, path, path_id(side, path)));
        }
        is_authentic
    }

    /// Runs until a time in seconds, or until `stop` returns true. Returns whether it did.
    pub fn run(&mut self, until: f64, mut stop: impl FnMut(&mut Bonded) -> bool) -> bool {
        let until = self.begun + Duration::from_secs_f64(until);
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 1_000_000, "the ends never rest");
            for side in [Side::Client, Side::Server] {
                self.flush(side);
                while let Some(event) = self.end(side).event() {
                    self.events.push((side, event));
                }
            }
            if stop(self) {
                return true;
            }
            for side in [Side::Client, Side::Server] {
                self.flush(side);
            }
            let arrival = self.flying.keys().next().map_or(Time::NEVER, |k| k.0);
            let due = self.client.next_timeout().min(self.server.next_timeout()).min(arrival);
            if due > until {
                self.now = until;
                return false;
            }
            self.now = self.now.max(due);
            while let Some((key, _)) =
                self.flying.first_key_value().filter(|(k, _)| k.0 <= self.now)
            {
                let key = *key;
                let flying = self.flying.remove(&key).unwrap();
                if let Some(keep) = &mut self.keep {
                    keep.push(flying.clone());
                }
                self.hand(flying);
            }
            for side in [Side::Client, Side::Server] {
                let now = self.now;
                if self.end(side).next_timeout() <= now {
                    self.end(side).on_timeout(now);
                }
            }
        }
    }

    /// Transfers bytes over a new stream, until a time. Returns when each read happened, with all bytes until then.
    pub fn transfer(&mut self, from: Side, bytes: u64, until: f64) -> Transfer {
        let other = if from == Side::Client { Side::Server } else { Side::Client };
        let id = self.end(from).open(true).unwrap();
        let byte = |at: u64| (at ^ (at >> 8) ^ (at >> 16)).wrapping_mul(31) as u8;
        let mut written = 0u64;
        let mut read = 0u64;
        let mut ended = false;
        let mut reads = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        self.run(until, |world| {
            while written < bytes {
                let most = (bytes - written).min(4096);
                let chunk: Vec<u8> = (written..written + most).map(byte).collect();
                match world.end(from).write(id, &chunk).unwrap_or(0) {
                    0 => break,
                    n => written += n as u64,
                }
                if written == bytes {
                    world.end(from).finish(id).unwrap();
                }
            }
            let at = world.seconds();
            let reader = world.end(other);
            while reader.accept().is_some() {}
            loop {
                match reader.read(id, &mut buffer) {
                    Ok(Read::Bytes(n)) => {
                        for (at, b) in (read..).zip(&buffer[..n]) {
                            assert_eq!(*b, byte(at), "byte {at}");
                        }
                        read += n as u64;
                        reads.push((at, read));
                    }
                    Ok(Read::End) => break ended = true,
                    _ => break,
                }
            }
            ended
        });
        assert!(!ended || read == bytes);
        Transfer { ended, reads }
    }
    pub fn closed(&self, side: Side) -> Option<&Closed> {
        self.events.iter().rev().find_map(|(s, e)| match e {
            ConnectionEvent::Closed(c) if *s == side => Some(c),
            _ => None,
        })
    }
}

pub(super) struct Transfer {
    /// Whether all bytes arrived.
    pub ended: bool,
    /// Time and sum of each read.
    reads: Vec<(f64, u64)>,
}

impl Transfer {
    /// Bytes read between two times.
    fn between(&self, from: f64, to: f64) -> u64 {
        let until = |at: f64| self.reads.iter().rev().find(|r| r.0 <= at).map_or(0, |r| r.1);
        until(to) - until(from)
    }
    /// The longest time without a read between two times.
    fn longest_gap(&self, from: f64, to: f64) -> f64 {
        let inside = self.reads.iter().map(|r| r.0).filter(|at| (from..to).contains(at));
        let times: Vec<f64> = std::iter::once(from).chain(inside).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
    }
}

struct Reached {
    share: f64,
    world: Bonded,
}

/// Share of the sum of the rates of `links` that a transfer from the server reaches from 3 s to 8 s.
fn share(links: &[Link], seed: u64) -> Reached {
    let mut world = Bonded::new(links, seed);
    world.open_paths();
    let took = world.transfer(Side::Server, 1 << 30, 8.0);
    let sum: f64 = links.iter().map(|l| l.rate.as_bps() as f64 * (1.0 - l.loss)).sum();
    Reached { share: took.between(3.0, 8.0) as f64 * 8.0 / 5.0 / sum, world }
}

#[test]
fn two_paths_reach_the_sum_of_their_rates() {
    for (links, least) in [
        ([link(10, 20), link(10, 20)], 0.9),
        ([link(10, 20), link(5, 80)], 0.9),
        ([link(20, 10), Link { loss: 0.01, ..link(8, 40) }], 0.85),
    ] {
        for seed in 1..=2 {
            let Reached { share, world } = share(&links, seed);
            assert!(share > least, "{share} of {links:?}");
            assert!(world.carried.iter().all(|bytes| bytes[1] > 1_000_000), "both carry data");
            assert_eq!(world.server.path_stats().iter().filter(|p| p.is_usable).count(), 2);
        }
    }
}

/// A terminal beside an upload: its bytes do not take the slow path, which the upload fills, also after a long output.
#[test]
fn stream_of_higher_priority_takes_the_earliest_path() {
    for output in [1, 9 << 20] {
        let mut world = Bonded::new(&[link(20, 10), link(4, 80)], 1);
        world.open_paths();
        let terminal = world.server.open(true).unwrap();
        world.server.set_priority(terminal, 1).unwrap();
        let bulk = world.server.open(true).unwrap();
        let mut unwritten = vec![0; output];
        let mut sent = Vec::new();
        let mut delays = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        let mut bulk_bytes = 0;
        let mut read = 0;
        world.run(10.0, |world| {
            let at = world.seconds();
            let n = world.server.write(terminal, &unwritten).unwrap();
            unwritten.truncate(unwritten.len() - n);
            if at > 5.0 + 0.05 * sent.len() as f64 {
                assert_eq!(world.server.write(terminal, &[1]), Ok(1));
                sent.push(at);
            }
            while world.server.write(bulk, &[0; 4096]).is_ok_and(|n| n > 0) {}
            while world.client.accept().is_some() {}
            while let Ok(Read::Bytes(n)) = world.client.read(terminal, &mut buffer) {
                read += n;
                while delays.len() < read.saturating_sub(output) {
                    delays.push(at - sent[delays.len()]);
                }
            }
            while let Ok(Read::Bytes(n)) = world.client.read(bulk, &mut buffer) {
                bulk_bytes += if at > 5.0 { n as u64 } else { 0 };
            }
            false
        });
        let longest = delays.iter().copied().fold(0.0, f64::max);
        assert!(delays.len() > 90 && longest < 0.02, "{longest} s after {output} bytes");
        let share = bulk_bytes as f64 * 8.0 / 5.0 / 24e6;
        assert!(share > 0.9, "{share}");
    }
}

/// Messages that arrived in the last of 6 s, of a flow of this rate in Mbit/s, and their longest delay.
struct MessageFlow {
    mbit: f64,
    longest: f64,
}

fn message_flow(mbit: f64, has_bulk: bool) -> MessageFlow {
    let mut world = Bonded::new(&[link(20, 10), link(10, 40)], 1);
    world.open_paths();
    let bulk = world.server.open(true).unwrap();
    let mut message = [0; 1000];
    let mut sent = Vec::new();
    let mut arrived = 0;
    let mut longest: f64 = 0.0;
    world.run(6.0, |world| {
        let at = world.seconds();
        let now = world.now;
        while at * mbit * 1e6 / 8000.0 > sent.len() as f64 {
            message[..8].copy_from_slice(&(sent.len() as u64).to_be_bytes());
            let _ = world.server.send_message(now, &message, Duration::ZERO);
            sent.push(at);
        }
        while has_bulk && world.server.write(bulk, &[0; 4096]).is_ok_and(|n| n > 0) {}
        while let Some(message) = world.client.receive_message() {
            let number = u64::from_be_bytes(message[..8].try_into().unwrap());
            if at > 5.0 {
                arrived += 1;
                longest = longest.max(at - sent[number as usize]);
            }
        }
        false
    });
    MessageFlow { mbit: arrived as f64 * 8e-3, longest }
}

#[test]
fn messages_beyond_the_best_paths_rate_take_another() {
    let fitting = message_flow(10.0, true);
    assert!(fitting.mbit > 9.0 && fitting.longest < 0.025, "{} s", fitting.longest);
    let beyond = message_flow(26.0, false);
    assert!(beyond.mbit > 25.0, "{} Mbit/s", beyond.mbit);
}

#[test]
fn paths_over_one_queue_are_carried_by_one() {
    let mut world = Bonded::new(&[link(10, 20), link(10, 30)], 1);
    world.has_one_queue = true;
    world.open_paths();
    let took = world.transfer(Side::Server, 1 << 30, 10.0);
    let rate = took.between(6.0, 10.0) as f64 * 8.0 / 4.0;
    assert!(rate > 8_500_000.0, "{rate}");
    let second: u64 = world.log[1][60..100].iter().sum();
    assert!((10_000..250_000).contains(&second), "{second} bytes on the second path");
    let leaders = |world: &Bonded| -> Vec<Option<u8>> {
        world.server.path_stats().iter().map(|path| path.leader).collect()
    };
    let shown = |world: &Bonded| -> Vec<Option<u8>> {
        world.client.path_stats().iter().map(|path| path.peer_leader).collect()
    };
    assert_eq!(leaders(&world), [None, Some(0)]);
    assert_eq!(shown(&world), [None, Some(0)]);
    // Their queues are separate from now on.
    world.has_one_queue = false;
    let took = world.transfer(Side::Server, 1 << 30, 30.0);
    let rate = took.between(25.0, 30.0) as f64 * 8.0 / 5.0;
    assert!(rate > 17_000_000.0, "{rate}");
    assert_eq!(leaders(&world), [None, None]);
    assert_eq!(shown(&world), [None, None]);
}

#[test]
fn four_paths_carry_one_stream_in_either_direction() {
    for from in [Side::Client, Side::Server] {
        let links = [link(5, 10), link(5, 20), link(5, 30), link(5, 40)];
        let mut world = Bonded::new(&links, 1);
        world.open_paths();
        let took = world.transfer(from, 20_000_000, 12.0);
        assert!(took.ended, "{from:?}: {:?}", took.reads.last());
        let direction = usize::from(from == Side::Server);
        assert!(world.carried.iter().all(|bytes| bytes[direction] > 2_000_000));
    }
}

#[test]
fn path_that_dies_is_left_and_used_again() {
    let dead = (4.0, 7.0);
    let both = [dead, dead];
    let forward = [(0.0, 0.0), dead];
    let back = [dead, (0.0, 0.0)];
    for down in [both, forward, back] {
        for dying in 0..2 {
            let mut links = [link(8, 20), link(8, 20)];
            links[dying].down = down;
            let mut world = Bonded::new(&links, 1);
            world.open_paths();
            let data = world.transfer(Side::Server, 1 << 30, 11.0);
            let gap = data.longest_gap(3.0, 11.0);
            assert!(gap < 0.4, "{down:?} of {dying}: gap of {gap} s");
            let one = data.between(5.0, 7.0) as f64 * 8.0 / 2.0 / 8e6;
            assert!(one > 0.85, "{down:?} of {dying}: {one} of the other path");
            let again = data.between(8.5, 11.0) as f64 * 8.0 / 2.5 / 16e6;
            assert!(again > 0.85, "{down:?} of {dying}: {again} of both");
            // One full packet each half second, and nothing else, while the path is silent.
            let probes: u64 = world.log[dying][50..70].iter().sum();
            assert!(probes <= 5 * 1500, "{down:?} of {dying}: {probes} bytes on the dead path");
            assert_eq!(world.closed(Side::Client), None);
        }
    }
}

#[test]
fn path_that_never_answers_takes_little_from_the_other() {
    let dead = Link { down: [(0.0, 99.0); 2], ..link(8, 20) };
    let one_way = Link { down: [(0.0, 0.0), (0.0, 99.0)], ..link(8, 20) };
    let small = Link { mtu: 1100, ..link(8, 20) };
    let alone = share(&[link(8, 20)], 1).share;
    for second in [dead, one_way, small] {
        let Reached { share, world } = share(&[link(8, 20), second], 1);
        assert!(2.0 * share > 0.97 * alone, "{share} beside {second:?}, alone {alone}");
        assert!(!world.client.path_stats().iter().any(|p| p.number == 1 && p.is_usable));
        assert_eq!(world.closed(Side::Client), None);
    }
}

#[test]
fn peer_without_several_paths_goes_on_with_one() {
    for (ours, theirs) in [(2, 1), (1, 8), (2, 0), (0, 2)] {
        let mut world =
            Bonded::of(&bonded_config(ours), &bonded_config(theirs), &[link(20, 20); 2], 1);
        assert_eq!((world.client.max_paths(), world.server.max_paths()), (1, 1));
        let now = world.now;
        assert!(!world.client.give_path_id(now, 1, ConnectionId(0xc1)));
        assert!(world.transfer(Side::Server, 1_000_000, 5.0).ended);
        assert_eq!(world.carried[1], [0, 0]);
    }
}

#[test]
fn agreed_paths_are_at_most_eight() {
    for (ours, theirs, agreed) in [(2, 8, 2), (8, 3, 3), (200, 255, 8)] {
        let world = Bonded::of(&bonded_config(ours), &bonded_config(theirs), &[link(20, 20)], 1);
        assert_eq!(world.client.max_paths(), agreed);
        assert_eq!(world.server.max_paths(), agreed);
    }
}

/// The limit on the rate holds for all paths together.
#[test]
fn rate_limit_is_shared_by_all_paths() {
    let limit = Some(Rate::from_bps(8_000_000));
    let theirs = ConnectionConfig { rate_limit: limit, ..bonded_config(8) };
    let links = [link(20, 20), link(20, 20)];
    let mut world = Bonded::of(&bonded_config(2), &theirs, &links, 1);
    world.open_paths();
    let took = world.transfer(Side::Server, 1 << 30, 10.0);
    let rate = took.between(2.0, 10.0) as f64 * 8.0 / 8.0;
    assert!(rate < 8_000_000.0 && rate > 6_500_000.0, "{rate}");
    world.server.limit_rate(None);
    let took = world.transfer(Side::Server, 1 << 30, 16.0);
    assert!(took.between(13.0, 16.0) as f64 * 8.0 / 3.0 > 30e6);
}

/// A path that carries no data leaves its share of the limit to the others.
#[test]
fn rate_limit_is_that_of_the_paths_in_use() {
    let limit = Some(Rate::from_bps(8_000_000));
    let theirs = ConnectionConfig { rate_limit: limit, ..bonded_config(8) };
    let dying = Link { down: [(4.0, 8.0); 2], ..link(20, 20) };
    for status in [PathStatus::Available, PathStatus::Standby, PathStatus::Unusable] {
        let mut world = Bonded::of(&bonded_config(2), &theirs, &[link(20, 20), dying], 1);
        world.open_paths();
        let now = world.now;
        assert!(world.client.set_path_status(now, 1, status));
        let took = world.transfer(Side::Server, 1 << 30, 12.0);
        for (from, to) in [(2.0, 4.0), (5.0, 8.0), (9.5, 12.0)] {
            let rate = took.between(from, to) as f64 * 8.0 / (to - from);
            assert!((6_500_000.0..8_000_000.0).contains(&rate), "{status:?} from {from} s: {rate}");
        }
    }
}

/// An idle connection needs few packets on each path, and both paths are usable after it.
#[test]
fn idle_paths_are_kept_alive() {
    let keeping =
        |paths| ConnectionConfig { keep_alive: Duration::from_secs(5), ..bonded_config(paths) };
    let mut world = Bonded::of(&keeping(2), &bonded_config(8), &[link(20, 20), link(20, 40)], 1);
    world.open_paths();
    world.transfer(Side::Server, 3_000_000, 5.0);
    world.run(10.0, |_| false);
    let before = world.carried.clone();
    world.run(130.0, |_| false);
    for (link, bytes) in world.carried.iter().enumerate() {
        let bytes = bytes[0] - before[link][0];
        assert!((10_000..150_000).contains(&bytes), "{bytes} bytes in two minutes on {link}");
    }
    assert!(world.server.path_stats().iter().all(|p| p.is_usable));
}

/// CLOSE takes a path that answers.
#[test]
fn close_arrives_when_the_first_path_is_dead() {
    let dead = Link { down: [(2.0, 99.0); 2], ..link(20, 20) };
    let mut world = Bonded::new(&[dead, link(20, 20)], 1);
    world.open_paths();
    world.transfer(Side::Server, 1 << 30, 5.0);
    let now = world.now;
    world.client.close(now, 300, "enough");
    world.run(8.0, |_| false);
    assert!(matches!(world.closed(Side::Server), Some(Closed::ByPeer { code: 300, .. })));
}

#[test]
fn lighter_path_carries_its_part_until_the_other_dies() {
    for from in [Side::Client, Side::Server] {
        let mut dying = link(10, 20);
        dying.down = [(6.0, 60.0); 2];
        let mut world = Bonded::new(&[dying, link(10, 10)], 1);
        let weight = PathWeight::from_percent(25).unwrap();
        assert!(world.client.set_path_weight(world.now, 1, weight));
        world.open_paths();
        let direction = usize::from(from == Side::Server);
        let transfer = world.transfer(from, 1 << 30, 6.0);
        let heavy = world.carried[0][direction] as f64;
        let light = world.carried[1][direction] as f64;
        assert!((0.2..0.3).contains(&(light / heavy)), "{from:?}: {light} beside {heavy}");
        assert!(transfer.between(2.0, 6.0) > 5_000_000, "the heavier path is full");
        let permitted = world.end(from).stats().permitted.unwrap().as_bps();
        assert!((9_000_000..14_000_000).contains(&permitted), "{permitted}");
        let transfer = world.transfer(from, 1 << 30, 12.0);
        assert!(transfer.between(8.0, 12.0) > 4_000_000, "the lighter path is full");
    }
}

/// A line that is paid by the byte carries no data while the other one answers.
#[test]
fn standby_path_carries_data_only_while_the_other_is_silent() {
    let dying = Link { down: [(4.0, 7.0); 2], ..link(8, 20) };
    let lossy = Link { loss: 0.2, ..link(8, 20) };
    for (first, standby) in [(dying, link(8, 20)), (dying, lossy)] {
        let mut world = Bonded::new(&[first, standby], 1);
        let now = world.now;
        assert!(world.client.set_path_status(now, 1, PathStatus::Standby));
        world.open_paths();
        let data = world.transfer(Side::Server, 1 << 30, 11.0);
        let of = |from: usize, to: usize| world.log[1][from..to].iter().sum::<u64>();
        assert!(of(10, 40) < 50_000, "{} bytes on standby", of(10, 40));
        assert!(of(45, 70) > 1_000_000, "{} bytes in the outage", of(45, 70));
        assert!(of(90, 110) < 50_000, "{} bytes on standby again", of(90, 110));
        assert!(data.longest_gap(3.0, 11.0) < 0.5);
        assert_eq!(world.server.path_stats()[1].status, PathStatus::Standby);
    }
}

#[test]
fn path_status_changes_in_the_middle_of_a_transfer() {
    for number in 0..2 {
        let mut world = Bonded::new(&[link(8, 20), link(8, 20)], 1);
        world.open_paths();
        world.transfer(Side::Server, 1 << 30, 4.0);
        let index = usize::from(number);
        for (at, status) in [(4, PathStatus::Standby), (7, PathStatus::Available)] {
            let now = world.now;
            assert!(world.client.set_path_status(now, number, status));
            world.transfer(Side::Server, 1 << 30, f64::from(at) + 3.0);
            let bytes: u64 = world.log[index][at as usize * 10 + 10..].iter().sum();
            let is_standby = status == PathStatus::Standby;
            assert_eq!(bytes < 50_000, is_standby, "{status:?}: {bytes} bytes on {number}");
        }
    }
}

#[test]
fn closed_path_carries_no_more_and_loses_no_data() {
    let keeping = ConnectionConfig { keep_alive: Duration::from_secs(5), ..bonded_config(2) };
    for number in 0..2 {
        let links = [link(8, 20), link(8, 20)];
        let mut world = Bonded::of(&keeping, &bonded_config(8), &links, 1);
        world.open_paths();
        let mut before = 0;
        let started = world.transfer(Side::Server, 1 << 30, 3.0);
        assert!(!started.ended);
        let now = world.now;
        assert!(world.client.set_path_status(now, number, PathStatus::Unusable));
        assert!(!world.client.set_path_status(now, number, PathStatus::Available), "for good");
        let index = usize::from(number);
        world.run(3.5, |world| {
            before = world.carried[index][1];
            false
        });
        let sent = world.transfer(Side::Server, 2_000_000, 30.0);
        assert!(sent.ended, "{number}: {:?}", sent.reads.last());
        assert_eq!(world.carried[index][1], before, "path {number}");
        world.run(120.0, |_| false);
        assert_eq!(world.carried[index][1], before, "path {number} is kept alive");
        assert_eq!(world.closed(Side::Client), None);
    }
}

/// A lost PATH_STATUS is repeated, also if its path is the only one.
#[test]
fn status_reaches_the_server_over_lossy_paths() {
    for seed in 0..10 {
        let lossy = Link { loss: 0.5, ..link(8, 20) };
        let mut world = Bonded::new(&[lossy, lossy], seed);
        let now = world.now;
        assert!(world.client.set_path_status(now, 0, PathStatus::Standby));
        let arrived =
            world.run(30.0, |world| world.server.path_stats()[0].status == PathStatus::Standby);
        assert!(arrived, "seed {seed}");
    }
}

#[test]
fn server_and_single_path_have_no_status_to_set() {
    let mut world = Bonded::new(&[link(8, 20), link(8, 20)], 1);
    let now = world.now;
    assert!(!world.server.set_path_status(now, 0, PathStatus::Standby));
    assert!(!world.client.set_path_status(now, 2, PathStatus::Standby), "beyond the number");
    let mut one = Bonded::new(&[link(8, 20)], 1);
    assert!(!one.client.set_path_status(now, 0, PathStatus::Standby));
}

/// The end of a file does not wait for losses on a slow path: without copies it takes 1.16 times as long as alone.
#[test]
fn late_data_leave_again_on_the_faster_path() {
    let took = |links: &[Link], seed| {
        let mut world = Bonded::new(links, seed);
        world.open_paths();
        assert!(world.transfer(Side::Server, 4_000_000, 60.0).ended);
        world.seconds()
    };
    let slow = Link { loss: 0.05, ..link(1, 100) };
    let mean = |links: &[Link]| (1..=4).map(|seed| took(links, seed)).sum::<f64>() / 4.0;
    let alone = mean(&[link(20, 10)]);
    let both = mean(&[link(20, 10), slow]);
    assert!(both < 1.05 * alone, "{both} s, {alone} s");
}
