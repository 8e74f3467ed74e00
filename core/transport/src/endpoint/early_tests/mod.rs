//! Early data. A server that gave a token gets the request after half a round trip. If it rejects early data, the
//! request still arrives once, later. A copy of the first packet is never accepted.

use super::stub::{CLIENT, SERVER, StubNetwork, config, key, random, wish};
use super::{Clients, ConnectRequest, Connections, EarlyData, EndpointConfig, Handle, ServerKey};
use crate::Protocol;
use crate::connection::{Closed, Connection, ConnectionConfig, ConnectionEvent};
use crate::streams::Read;
use narrows_base::{Duration, RandomKey, Time};
use narrows_wire::Suite;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

mod hostile;
mod paths;

const REQUEST: &[u8] = b"GET the first file";
const STEP: Duration = Duration::from_millis(1);

const EARLY_START: u8 = 0x89;
const EARLY_ECHO: u8 = 0x8a;
const REFUSED: [u8; 5] = [EARLY_START, 0x82, 0x83, 0x84, 0x85];

/// Both ends with their applications: the server responds to the request on a client's first stream.
struct World {
    net: StubNetwork<Connection>,
    /// Complete requests that the server read: whether they were early, and when.
    requests: Vec<(bool, Time)>,
    answer: Vec<u8>,
    /// For each connection, the bytes read of its request; after its end, the bytes written of the response.
    reading: BTreeMap<Handle, (Vec<u8>, Option<usize>)>,
}

fn connection() -> ConnectionConfig {
    let protocol = Protocol::rrtp();
    ConnectionConfig { protocol, ..super::stub::connection() }
}

fn server(early_data: bool) -> EndpointConfig {
    EndpointConfig { early_data, connection: connection(), ..config(2, Clients::Any) }
}

fn request() -> ConnectRequest {
    let early_data = EarlyData::new(REQUEST).map(EarlyData::finished);
    let server_key = ServerKey::Is(*key(2).public());
    ConnectRequest { early_data, connection: connection(), ..wish(SERVER, server_key) }
}

impl World {
    /// A client with a token of the server.
    fn acquainted(seed: u64) -> World {
        World::served_by(seed, server(true))
    }
    fn served_by(seed: u64, config: EndpointConfig) -> World {
        let mut net = StubNetwork::new(seed);
        *net.at(SERVER) = Connections::new(config, random(2 * seed));
        let mut world = World {
            net,
            requests: Vec::new(),
            answer: b"the file".to_vec(),
            reading: BTreeMap::new(),
        };
        let met = world.net.connect(ServerKey::Any);
        world.run(1.0);
        let now = world.net.now;
        world.net.at(CLIENT).close(now, met, 0, "");
        world.run(5.0);
        world.net.seen.clear();
        world.net.events.clear();
        world
    }
    fn start(&mut self) -> Handle {
        let now = self.net.now;
        self.net.at(CLIENT).connect(now, request()).unwrap()
    }
    /// Runs for `seconds` over a path of 20 ms without losses.
    fn run(&mut self, seconds: f64) {
        self.run_over(seconds, &mut |now, _| vec![now + Duration::from_millis(20)]);
    }
    fn run_over(&mut self, seconds: f64, path: &mut dyn FnMut(Time, &[u8]) -> Vec<Time>) {
        let until = self.net.now + Duration::from_secs_f64(seconds);
        while self.net.now < until {
            self.serve();
            let next = self.net.now + STEP;
            self.net.run(next, path);
        }
        self.serve();
    }
    fn serve(&mut self) {
        let at: SocketAddr = SERVER.parse().unwrap();
        let handles: BTreeSet<Handle> =
            self.net.events.iter().filter(|e| e.0 == at).map(|e| e.1).collect();
        for handle in handles {
            let now = self.net.now;
            let Some(connection) = self.net.at(SERVER).connection(handle) else { continue };
            let (read, wrote) = self.reading.entry(handle).or_default();
            let mut buffer = [0; 1000];
            while wrote.is_none() {
                match connection.read(0, &mut buffer) {
                    Ok(Read::Bytes(n)) => read.extend_from_slice(&buffer[..n]),
                    Ok(Read::End) => {
                        assert_eq!(read, REQUEST);
                        self.requests.push((connection.is_early(0), now));
                        *wrote = Some(0);
                    }
                    _ => break,
                }
            }
            if let Some(wrote) = wrote.as_mut().filter(|wrote| **wrote <= self.answer.len()) {
                *wrote += connection.write(0, &self.answer[*wrote..]).unwrap_or(0);
                if *wrote == self.answer.len() {
                    connection.finish(0).unwrap();
                    *wrote += 1;
                }
            }
        }
    }
    /// Runs until the client has the response. Returns the duration in seconds, and whether the request was early.
    fn answered(
        &mut self,
        handle: Handle,
        path: &mut dyn FnMut(Time, &[u8]) -> Vec<Time>,
    ) -> Option<(f64, bool)> {
        let began = self.net.now;
        let mut got = Vec::new();
        while self.net.now.since(began) < Duration::from_secs(25) {
            self.run_over(0.001, path);
            let took = self.net.now.since(began).as_secs_f64();
            let Some(connection) = self.net.at(CLIENT).connection(handle) else { continue };
            assert_eq!(connection.early_stream(), Some(0));
            let mut buffer = [0; 4000];
            loop {
                match connection.read(0, &mut buffer) {
                    Ok(Read::Bytes(n)) => got.extend_from_slice(&buffer[..n]),
                    Ok(Read::End) => {
                        let is_taken = connection.is_early_taken();
                        assert_eq!(got, self.answer);
                        return Some(((took * 1e3).round() / 1e3, is_taken));
                    }
                    _ => break,
                }
            }
        }
        None
    }
    fn get(&mut self) -> (f64, bool) {
        let handle = self.start();
        let path = &mut |now: Time, _: &[u8]| vec![now + Duration::from_millis(20)];
        self.answered(handle, path).expect("an answer")
    }
    /// Types of the long packets sent.
    fn kinds(&self) -> Vec<u8> {
        self.net.seen.iter().map(|s| s.2[0]).filter(|kind| kind & 0x80 != 0).collect()
    }
    fn early_start(&self) -> Vec<u8> {
        self.net.seen.iter().find(|s| s.2[0] == EARLY_START).unwrap().2.clone()
    }
    /// The server's immediate replies to a packet from this address: types of long packets, and bytes in all.
    fn sends(&mut self, from: &str, packet: &[u8]) -> (Vec<u8>, usize) {
        let now = self.net.now;
        let from = from.parse().unwrap();
        self.net.at(SERVER).receive(now, from, 0, &mut packet.to_vec());
        while let Some((handle, event)) = self.net.at(SERVER).event() {
            self.net.events.push((SERVER.parse().unwrap(), handle, event));
        }
        self.serve();
        let mut buffer = [0; 2000];
        let mut kinds = Vec::new();
        let mut bytes = 0;
        while let Some(t) = self.net.at(SERVER).transmit(now, &mut buffer, 1) {
            if t.to == from {
                kinds.push(buffer[0]);
                bytes += t.size;
            }
        }
        (kinds, bytes)
    }
}

/// A request and its response at a server 20 ms away: 2 round trips, 1 with early data.
#[test]
fn a_known_server_answers_after_one_round_trip() {
    for (early_data, expected) in [(true, (0.04, true)), (false, (0.08, false))] {
        let mut world = World::served_by(1, server(early_data));
        assert_eq!(world.get(), expected);
        assert_eq!(world.requests.len(), 1);
        assert_eq!(world.requests[0].0, early_data, "the server's application knows");
        let first = if early_data { vec![EARLY_START, EARLY_ECHO] } else { vec![0x83, 0x84, 0x85] };
        assert_eq!(world.kinds(), first);
    }
    let mut unknown = World::acquainted(2);
    *unknown.net.at(CLIENT) = Connections::new(config(1, Clients::None), random(7));
    assert_eq!(unknown.get(), (0.08, false));
    // Each connection brings the token for the next.
    let mut world = World::acquainted(3);
    for _ in 0..4 {
        assert_eq!(world.get(), (0.04, true));
    }
    world.run(0.1);
    let at_server = world.net.events.iter().filter(|e| e.0 == SERVER.parse().unwrap());
    for handle in at_server.map(|e| e.1).collect::<Vec<_>>() {
        assert!(world.net.at(SERVER).connection(handle).unwrap().is_confirmed());
    }
    assert_eq!((world.net.at(SERVER).unconfirmed, world.net.at(SERVER).gate.half_open()), (0, 0));
}

/// Long responses continue after the limit on the first flight.
#[test]
fn a_long_answer_arrives_whole() {
    let [early, later] = [true, false].map(|early_data| {
        let mut world = World::served_by(4, server(early_data));
        world.answer = vec![5; 100_000];
        let (took, is_taken) = world.get();
        assert_eq!(is_taken, early_data);
        took
    });
    assert!(early < later, "{early} s and {later} s");
}

/// A response that fits into the first flight arrives after one round trip: no other data take its space.
#[test]
fn an_answer_of_two_packets_comes_with_the_first_flight() {
    let mut world = World::acquainted(6);
    world.answer = vec![5; 2000];
    assert_eq!(world.get(), (0.04, true));
    // The token for the next connection arrived with it.
    assert_eq!(world.get(), (0.04, true));
}

/// EARLY-ECHO arrives last of the first flight. Packets that overtook it need no retransmission.
#[test]
fn an_answer_that_overtakes_early_echo_is_kept() {
    let mut world = World::acquainted(7);
    let handle = world.start();
    let path = &mut |now: Time, bytes: &[u8]| {
        let delay = if bytes[0] == EARLY_ECHO { 50 } else { 20 };
        vec![now + Duration::from_millis(delay)]
    };
    assert_eq!(world.answered(handle, path), Some((0.07, true)));
}

/// A request was rejected for lack of a place, and then arrived by a full handshake. A later copy is not accepted when
/// there is a place.
#[test]
fn refused_early_data_uses_up_its_token() {
    let mut world = World::acquainted(8);
    world.net.at(SERVER).unconfirmed = 16;
    assert_eq!(world.get(), (0.12, false));
    world.net.at(SERVER).unconfirmed = 0;
    let copy = world.early_start();
    for from in [CLIENT, "198.51.100.7:6000"] {
        assert_eq!(world.sends(from, &copy).0, [0x82]);
    }
    assert_eq!(world.requests.len(), 1);
}

/// A client sends no early data without the server's key, or without a token that permits them.
#[test]
fn early_data_needs_a_key_and_a_permission() {
    let mut world = World::acquainted(5);
    let now = world.net.now;
    let anybody = ConnectRequest { server_key: ServerKey::Any, ..request() };
    world.net.at(CLIENT).connect(now, anybody).unwrap();
    world.run(0.2);
    assert_eq!(world.kinds(), [0x83, 0x84, 0x85]);
    assert_eq!(world.requests.len(), 1);
    assert!(!world.requests[0].0);
}

/// For each reason to reject early data with a valid token, the request arrives once and the client's application sees
/// the same stream.
#[test]
fn refused_early_data_arrive_once() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 6] = [
        ("it was started again", |w| {
            *w.net.at(SERVER) = Connections::new(server(true), random(99))
        }),
        ("it takes none any more", |w| w.net.at(SERVER).config.early_data = false),
        ("all that are not confirmed have come", |w| w.net.at(SERVER).unconfirmed = 16),
        ("the client's store says another age", |w| {
            let now = w.net.now;
            let (token, _) = w.net.at(CLIENT).tokens.take(now, SERVER.parse().unwrap()).unwrap();
            w.net.at(CLIENT).tokens.insert(now, SERVER.parse().unwrap(), token);
            w.run(0.01);
        }),
        ("its limits permit no such stream", |w| {
            w.net.at(SERVER).config.connection.limits.data = 5
        }),
        ("it gave its last place away", |w| {
            w.net.at(SERVER).config.limits.connections_of_source = 1
        }),
    ];
    for (n, (name, change)) in changes.into_iter().enumerate() {
        let mut world = World::acquainted(10 + n as u64);
        // The second connection of this network.
        if name.contains("place") {
            world.get();
            world.requests.clear();
            world.net.seen.clear();
        }
        world.run(20.0);
        change(&mut world);
        let (took, is_taken) = world.get();
        world.run(20.0);
        assert!(!is_taken, "{name}");
        let was_early: Vec<bool> = world.requests.iter().map(|r| r.0).collect();
        // Bytes beyond the stream limits wait for higher ones.
        let expected = if name.contains("limits") { 0.24 } else { 0.12 };
        assert_eq!((was_early, took), (vec![false], expected), "{name}");
        assert_eq!(world.kinds(), REFUSED, "{name}");
        world.net.at(SERVER).unconfirmed = 0;
    }
}

/// A server of an older build without support for EARLY-START has replaced the one that gave the token.
#[test]
fn an_old_server_is_spoken_to_as_ever() {
    let mut world = World::acquainted(50);
    let handle = world.start();
    let answered = world.answered(handle, &mut |now, bytes| {
        let is_known = bytes[0] != EARLY_START;
        if is_known { vec![now + Duration::from_millis(20)] } else { Vec::new() }
    });
    let (took, is_taken) = answered.expect("an answer");
    assert!(!is_taken && took < 5.0, "{took}");
    assert_eq!(world.requests.len(), 1);
}

/// A client without early data, such as an older build, uses the token in START.
#[test]
fn an_old_client_uses_the_token_as_ever() {
    let mut world = World::acquainted(51);
    let now = world.net.now;
    let plain = ConnectRequest { early_data: None, ..request() };
    let handle = world.net.at(CLIENT).connect(now, plain).unwrap();
    world.run(1.0);
    assert_eq!(world.kinds(), [0x83, 0x84, 0x85]);
    assert_eq!(world.net.at(CLIENT).connection(handle).unwrap().early_stream(), None);
}

/// A client that moved gets a token for its new address.
#[test]
fn migrated_client_gets_a_token_for_its_address() {
    let elsewhere: SocketAddr = "203.0.113.5:7000".parse().unwrap();
    let mut world = World::acquainted(80);
    let handle = world.start();
    world.run(1.0);
    let client = world.net.ports.remove(&CLIENT.parse().unwrap()).unwrap();
    world.net.ports.insert(elsewhere, client);
    let at = elsewhere.to_string();
    world.net.at(&at).connection(handle).unwrap().on_local_address_change(0);
    world.run(2.0);
    let moved =
        |e: &(SocketAddr, Handle, ConnectionEvent)| e.2 == ConnectionEvent::Moved(elsewhere);
    assert!(world.net.events.iter().any(moved));
    let now = world.net.now;
    world.net.at(&at).close(now, handle, 0, "");
    world.run(5.0);
    world.net.seen.clear();
    let now = world.net.now;
    world.net.at(&at).connect(now, request()).unwrap();
    world.run(0.2);
    assert_eq!(world.kinds(), [EARLY_START, EARLY_ECHO]);
    assert_eq!(world.requests.len(), 2);
}
