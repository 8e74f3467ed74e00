//! Address tokens: the handshake with a known server takes one round trip, and a rejected token causes no failure.

use super::stub::{CLIENT, SERVER, StubNetwork, config, key, random, wish};
use super::{Clients, Connections, Handle, ServerKey, TokenStore};
use crate::connection::{Closed, Connection, ConnectionEvent};
use narrows_base::{Duration, RandomKey, Time};
use narrows_wire::{Token, packet};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

type Whole = StubNetwork<Connection>;

const OTHER: &str = "198.51.100.8:5000";

/// An application's own store, which can return a token twice, and to several endpoints.
#[derive(Clone, Default, Debug)]
struct Shared {
    tokens: Arc<Mutex<BTreeMap<SocketAddr, (Token, Time)>>>,
    keeps_used: bool,
}

impl TokenStore for Shared {
    fn insert(&mut self, now: Time, server: SocketAddr, token: Token) {
        self.tokens.lock().unwrap().insert(server, (token, now));
    }
    fn take(&mut self, now: Time, server: SocketAddr) -> Option<(Token, Duration)> {
        let mut tokens = self.tokens.lock().unwrap();
        let kept =
            if self.keeps_used { tokens.get(&server).copied() } else { tokens.remove(&server) };
        kept.map(|(token, since)| (token, now.since(since)))
    }
}

impl Shared {
    fn has(&self) -> Option<(Token, Time)> {
        self.tokens.lock().unwrap().get(&SERVER.parse().unwrap()).copied()
    }
}

/// Connects from this address and runs for a second. Returns the handshake packets sent, and the time until the client
/// could send data.
fn connects(net: &mut Whole, from: &str) -> (Vec<u8>, f64) {
    let seen = net.seen.len();
    let events = net.events.len();
    let began = net.now;
    let handle = net.at(from).connect(began, wish(SERVER, ServerKey::Any)).unwrap();
    let mut took = f64::NAN;
    for _ in 0..100 {
        net.run_for(0.01);
        if took.is_nan() && net.at(from).connection(handle).is_some() {
            took = net.now.since(began).as_secs_f64();
        }
    }
    let told = net.events[events..]
        .iter()
        .filter(|e| matches!(e.2, ConnectionEvent::Connected(_)))
        .count();
    assert_eq!(told, 2, "both ends are connected");
    let kinds = net.seen[seen..].iter().map(|s| s.2[0]).filter(|kind| kind & 0x80 != 0);
    (kinds.collect(), took)
}

const STARTED: [u8; 3] = [0x83, 0x84, 0x85];
const REFUSED: [u8; 5] = [0x83, 0x82, 0x83, 0x84, 0x85];

/// A pair after one connection. The test can read the client's token store.
fn acquainted(seed: u64, keeps_used: bool) -> (Whole, Shared) {
    let mut net = Whole::new(seed);
    let store = Shared { keeps_used, ..Shared::default() };
    net.at(CLIENT).set_token_store(Box::new(store.clone()));
    assert_eq!(connects(&mut net, CLIENT), (STARTED.to_vec(), 0.04));
    assert!(store.has().is_some());
    (net, store)
}

#[test]
fn tokens_are_used_one_after_the_other() {
    let mut net = Whole::new(1);
    assert_eq!(connects(&mut net, CLIENT), (STARTED.to_vec(), 0.04));
    // Each connection brings the token for the next.
    for _ in 0..3 {
        let seen = net.seen.len();
        assert_eq!(connects(&mut net, CLIENT), (STARTED.to_vec(), 0.04));
        assert!(net.seen[seen].2[22] & 0x80 != 0, "a token in place of the cookie");
    }
    let rtts = |net: &mut Whole, at: &str| {
        let handles: Vec<Handle> =
            net.events.iter().filter(|e| e.0 == at.parse().unwrap()).map(|e| e.1).collect();
        let srtt = |h| net.at(at).connection(h).map(|c| c.stats().srtt);
        handles.into_iter().filter_map(srtt).collect::<Vec<_>>()
    };
    for at in [CLIENT, SERVER] {
        let known = rtts(&mut net, at);
        assert!(!known.is_empty() && known.iter().all(|rtt| *rtt >= Duration::from_millis(40)));
    }
}

/// A new port of the client keeps the token valid; another IP address does not.
#[test]
fn a_token_is_good_at_its_address_only() {
    for (from, expected) in
        [("198.51.100.7:6000", (&STARTED[..], 0.04)), (OTHER, (&REFUSED[..], 0.08))]
    {
        let (mut net, store) = acquainted(2, false);
        let mut thief = Connections::new(config(7, Clients::None), random(70));
        thief.set_token_store(Box::new(store));
        net.ports.insert(from.parse().unwrap(), thief);
        let (kinds, took) = connects(&mut net, from);
        assert_eq!((&kinds[..], took), expected, "{from}");
    }
}

#[test]
fn a_token_is_used_once() {
    let (mut net, store) = acquainted(3, true);
    let first = store.has();
    assert_eq!(connects(&mut net, CLIENT), (STARTED.to_vec(), 0.04));
    assert_ne!(store.has(), first, "there is a new one");
    store.tokens.lock().unwrap().insert(SERVER.parse().unwrap(), first.unwrap());
    assert_eq!(connects(&mut net, CLIENT), (REFUSED.to_vec(), 0.08));
}

#[test]
fn a_token_is_good_for_a_day() {
    for (hours, expected) in [(23.9, (&STARTED[..], 0.04)), (24.1, (&REFUSED[..], 0.08))] {
        let (mut net, _) = acquainted(4, false);
        net.run_for(hours * 3600.0);
        let (kinds, took) = connects(&mut net, CLIENT);
        assert_eq!((&kinds[..], took), expected, "{hours} hours");
    }
}

/// A server draws its secret when it starts. Only the same secret validates its tokens.
#[test]
fn a_server_that_was_started_again_asks_for_a_cookie() {
    let seed = 5;
    for (secret, expected) in [(2 * seed, (&STARTED[..], 0.04)), (99, (&REFUSED[..], 0.08))] {
        let (mut net, _) = acquainted(seed, false);
        *net.at(SERVER) = Connections::new(config(2, Clients::Any), random(secret));
        let (kinds, took) = connects(&mut net, CLIENT);
        assert_eq!((&kinds[..], took), expected);
    }
}

/// A copied START with a token opens no handshake, and gets fewer bytes than it has.
#[test]
fn copied_start_with_a_token_opens_no_connection() {
    let (mut net, _) = acquainted(6, false);
    let seen = net.seen.len();
    connects(&mut net, CLIENT);
    let start = net.seen[seen].2.clone();
    assert_eq!(start[0], 0x83);
    let connections = net.at(SERVER).len();
    let copied = |net: &mut Whole, from: &str, after: f64| {
        net.run_for(after);
        let now = net.now;
        let server = net.at(SERVER);
        server.receive(now, from.parse().unwrap(), 0, &mut start.clone());
        let mut buffer = [0; 1500];
        let mut answers = Vec::new();
        while let Some(t) = server.transmit(now, &mut buffer, 1) {
            assert!(t.size < start.len());
            answers.push(buffer[0]);
        }
        assert!(server.len() <= connections);
        assert_eq!(server.gate.half_open(), 0);
        answers
    };
    // The handshake is known, and over.
    assert_eq!(copied(&mut net, CLIENT, 0.0), []);
    // The token is used, or is another client's: the reply is a cookie.
    assert_eq!(copied(&mut net, "198.51.100.7:6000", 0.0), [0x82]);
    assert_eq!(copied(&mut net, OTHER, 0.0), [0x82]);
    assert_eq!(copied(&mut net, CLIENT, 45.0), [0x82]);
    assert_eq!(copied(&mut net, CLIENT, 100_000.0), [0x82]);
}

/// A forged cookie gets no reply. A forged token gets the same reply as a SYN.
#[test]
fn a_forged_token_is_answered_by_less_than_it_has() {
    let mut server = Connections::<Connection>::new(config(2, Clients::Any), random(1));
    let now = Time::from_secs_f64(50.0);
    for (first, answers) in [(0x01, 0), (0x80, 1)] {
        let cookie = narrows_wire::Cookie([first; 36]);
        let suite = narrows_wire::Suite::Aes256Gcm;
        let client =
            narrows_wire::ClientHandshake::new(suite, [4; 16], &cookie, &key(1), [8; 32]).unwrap();
        for _ in 0..1000 {
            server.receive(now, OTHER.parse().unwrap(), 0, &mut client.start().to_vec());
        }
        let mut buffer = [0; 1500];
        let mut count = 0;
        let mut bytes = 0;
        while let Some(t) = server.transmit(now, &mut buffer, 1) {
            count += 1;
            bytes += t.size;
        }
        assert_eq!((count, bytes), (answers * 256, answers * 256 * packet::SYN_ECHO_BYTES));
        assert!(server.is_empty() && packet::SYN_ECHO_BYTES < packet::START_BYTES);
    }
}

/// The packet with the token is lost. Another packet repeats the token.
#[test]
fn a_token_that_is_lost_comes_again() {
    for seed in 0..10 {
        let mut net = Whole::new(seed);
        let store = Shared::default();
        net.at(CLIENT).set_token_store(Box::new(store.clone()));
        net.connect(ServerKey::Any);
        let mut lost = 0;
        let mut large = 0;
        let until = net.now + Duration::from_secs(5);
        net.run(until, &mut |now, bytes| {
            // The server's first full packet is the second that is seen.
            large += u32::from(bytes.len() == 1200);
            if bytes.len() == 1200 && large == 2 {
                lost += 1;
                return Vec::new();
            }
            vec![now + Duration::from_millis(20)]
        });
        assert!(lost == 1 && store.has().is_some(), "seed {seed}");
        assert_eq!(connects(&mut net, CLIENT).0, STARTED);
    }
}

/// A server that no longer accepts tokens, such as an earlier build, does not reply to them. The client falls back to
/// SYN.
#[test]
fn silence_after_a_token_falls_back_to_syn() {
    let (mut net, _) = acquainted(8, false);
    let now = net.now;
    let seen = net.seen.len();
    let handle = net.at(CLIENT).connect(now, wish(SERVER, ServerKey::Any)).unwrap();
    net.run(now + Duration::from_secs(6), &mut |now, bytes| {
        let has_token = bytes[0] == 0x83 && bytes[22] & 0x80 != 0;
        if has_token { Vec::new() } else { vec![now + Duration::from_millis(20)] }
    });
    assert!(net.at(CLIENT).connection(handle).is_some());
    let kinds: Vec<u8> =
        net.seen[seen..].iter().map(|s| s.2[0]).filter(|kind| kind & 0x80 != 0).collect();
    assert_eq!(kinds, [[0x83; 6].as_slice(), &[0x81, 0x82, 0x83, 0x84, 0x85]].concat());
}

/// A client without a token store.
#[derive(Debug)]
struct Forgetful;

impl TokenStore for Forgetful {
    fn insert(&mut self, _: Time, _: SocketAddr, _: Token) {}
    fn take(&mut self, _: Time, _: SocketAddr) -> Option<(Token, Duration)> {
        None
    }
}

/// Opens four connections in sequence over a path that loses, duplicates and reorders packets. Returns how many were
/// opened, and how many without SYN.
fn opened_over_a_bad_path(seed: u64, loss: f64, has_tokens: bool) -> (u32, u32) {
    let mut opened = 0;
    let mut by_token = 0;
    let mut net = Whole::new(seed);
    let mut random_key = RandomKey::from_seed(seed).named("path").stream();
    if !has_tokens {
        net.at(CLIENT).set_token_store(Box::new(Forgetful));
    }
    for _ in 0..4 {
        let now = net.now;
        let seen = net.seen.len();
        let handle = net.at(CLIENT).connect(now, wish(SERVER, ServerKey::Any)).unwrap();
        net.run(now + Duration::from_secs(20), &mut |now, _| {
            let mut copies = Vec::new();
            for _ in 0..=u32::from(random_key.chance(0.3)) {
                if !random_key.chance(loss) {
                    copies.push(now + Duration::from_secs_f64(random_key.uniform(0.005, 0.4)));
                }
            }
            copies
        });
        let at_client = |e: &&(SocketAddr, Handle, ConnectionEvent)| {
            e.1 == handle && e.0 == CLIENT.parse().unwrap()
        };
        let ended = net.events.iter().filter(at_client).find_map(|e| match &e.2 {
            ConnectionEvent::Closed(why) => Some(why.clone()),
            _ => None,
        });
        match ended {
            None => {
                opened += 1;
                assert!(net.at(CLIENT).connection(handle).is_some(), "seed {seed}");
                by_token += u32::from(net.seen[seen..].iter().all(|s| s.2[0] != 0x81));
            }
            Some(why) => {
                assert!(loss > 0.2, "seed {seed}: {why:?}");
                assert!(
                    matches!(why, Closed::NoAnswer { .. } | Closed::Reset),
                    "seed {seed}: {why:?}"
                );
            }
        }
        let now = net.now;
        net.at(CLIENT).close(now, handle, 0, "");
        net.run_for(10.0);
    }
    net.run_for(30.0);
    assert_eq!(net.at(SERVER).gate.half_open(), 0, "seed {seed}");
    (opened, by_token)
}

/// With tokens as many connections are opened as without.
#[test]
fn tokens_over_a_bad_path_cost_no_connection() {
    for loss in [0.0, 0.1, 0.3, 0.5] {
        let mut with = 0;
        let mut without = 0;
        let mut by_token = 0;
        for seed in 0..60 {
            let (opened, known) = opened_over_a_bad_path(seed, loss, true);
            with += opened;
            by_token += known;
            without += opened_over_a_bad_path(seed, loss, false).0;
        }
        println!("{loss}: of 240, {with} with tokens ({by_token} without SYN), {without} without");
        assert!(with >= without && by_token > 60, "{loss}: {with}, {without}, {by_token}");
    }
}

/// A server stays within its limit on used tokens, and still accepts no token twice.
#[test]
fn used_tokens_are_bounded() {
    let mut server_config = config(2, Clients::Any);
    server_config.limits.used_tokens = 3;
    let mut net = Whole::new(9);
    *net.at(SERVER) = Connections::new(server_config, random(3));
    let store = Shared { keeps_used: true, ..Shared::default() };
    net.at(CLIENT).set_token_store(Box::new(store.clone()));
    connects(&mut net, CLIENT);
    let mut tokens = Vec::new();
    for _ in 0..6 {
        tokens.push(store.has().unwrap());
        assert_eq!(connects(&mut net, CLIENT).0, STARTED);
        assert!(net.at(SERVER).gate.used_tokens() <= 3);
    }
    for old in tokens {
        store.tokens.lock().unwrap().insert(SERVER.parse().unwrap(), old);
        assert_eq!(connects(&mut net, CLIENT).0, REFUSED);
    }
}
