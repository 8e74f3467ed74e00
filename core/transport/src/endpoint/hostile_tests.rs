//! Unknown and hostile peers change no lasting state of an endpoint.

use super::stub::{
    CLIENT, SERVER, SeededEntropy, StubConnection, StubNetwork, Test, config, key, random,
};
use super::{Clients, Connections, EndpointConfig, EndpointLimits, ServerKey};
use crate::connection::ConnectionEvent;
use narrows_base::{Duration, RandomKey, Time};
use narrows_wire::keyless::{KeylessClient, WeakKey};
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{ClientHandshake, ConnectionId, Hello, Params, Suite, VERSION};
use std::net::SocketAddr;

/// Sizes of all collections of an endpoint.
pub(super) fn sizes(endpoint: &Test) -> Vec<usize> {
    let mut all = vec![
        endpoint.len(),
        endpoint.table.slots(),
        endpoint.alarms.len(),
        endpoint.nonces.len(),
        endpoint.remotes.len(),
        endpoint.answers.len(),
        endpoint.urgent.len(),
        endpoint.ready.len(),
        endpoint.eventful.len(),
        endpoint.counts.len(),
        endpoint.counts.gone,
    ];
    all.extend(endpoint.gate.sizes());
    all
}

/// A server with a limit of `handshakes` handshakes.
pub(super) fn server(handshakes: usize) -> Test {
    let config = config(2, Clients::Any);
    let limits = EndpointLimits { handshakes, ..config.limits };
    Connections::new(EndpointConfig { limits, ..config }, random(2))
}

/// All packets that the endpoint sends now.
pub(super) fn drain(endpoint: &mut Test, now: Time) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; 1500];
    let mut all = Vec::new();
    while let Some(t) = endpoint.transmit(now, &mut buffer, 1) {
        all.push((t.to, buffer[..t.size].to_vec()));
    }
    all
}

pub(super) fn place(n: u32) -> SocketAddr {
    SocketAddr::new(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into(), 1000)
}

/// A handshake up to START, with a cookie for `from`.
pub(super) fn start_of(endpoint: &mut Test, now: Time, from: SocketAddr, n: u8) -> ClientHandshake {
    endpoint.receive(now, from, 0, &mut packet::syn(VERSION, &[n; 16]));
    let echo = drain(endpoint, now).pop().expect("an answer").1;
    let Ok(ParsedPacket::SynEcho { nonce, cookie }) = ParsedPacket::read(&echo) else {
        panic!("no echo")
    };
    ClientHandshake::new(Suite::Aes256Gcm, nonce, &cookie, &key(n), [n; 32]).unwrap()
}

/// Sends `syns` SYNs from random addresses. Returns the bytes received and sent. The driver sends
/// only after every 400th; replies beyond the queue's limit are dropped.
fn flood(
    endpoint: &mut Test,
    now: Time,
    random_key: &mut narrows_base::RandomStream,
    syns: u32,
) -> (usize, usize) {
    let mut came = 0;
    let mut left = 0;
    for n in 1..=syns {
        let mut syn = packet::syn(VERSION + u32::from(n % 10 == 0), &[0; 16]);
        syn[5..13].copy_from_slice(&random_key.bits().to_be_bytes());
        endpoint.receive(now, place(random_key.bits() as u32 & 0xff_ffff), 0, &mut syn);
        came += syn.len();
        assert!(endpoint.answers.len() <= 256);
        if n % 400 == 0 {
            left += drain(endpoint, now).iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        }
    }
    (came, left)
}

#[test]
fn spoofed_syns_leave_no_state_and_clients_are_served() {
    let mut net = StubNetwork::pair(1);
    let mut random_key = RandomKey::from_seed(1).stream();
    net.connect(ServerKey::Any);
    net.run_for(1.0);
    let mut after_flood = |net: &mut StubNetwork<StubConnection>| {
        let now = net.now;
        let endpoint = net.at(SERVER);
        let before = sizes(endpoint);
        // One million in all, in an optimized build.
        let syns = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
        let (came, left) = flood(endpoint, now, &mut random_key, syns);
        assert!(left > 0 && left < came, "{left} bytes for {came}");
        assert_eq!(sizes(endpoint), before);
    };
    after_flood(&mut net);
    // A client connects during the flood: after SYN, after START, after FINISH.
    let second = net.connect(ServerKey::Any);
    for _ in 0..4 {
        after_flood(&mut net);
        net.run_for(0.041);
    }
    assert!(net.at(CLIENT).connection(second).is_some());
    assert_eq!(net.at(SERVER).len(), 2);
}

#[test]
fn copied_start_opens_no_connection() {
    let now = Time::from_secs_f64(50.0);
    let mut endpoint = server(16);
    let start = start_of(&mut endpoint, now, place(1), 1).start().to_vec();
    let mut send = |at: Time, from, bytes: &[u8]| {
        endpoint.on_timeout(at);
        endpoint.receive(at, from, 0, &mut bytes.to_vec());
        (endpoint.len(), drain(&mut endpoint, at).len())
    };
    // From another address, with another nonce, or after 40 s it gets no reply.
    assert_eq!(send(now, place(2), &start), (0, 0));
    let mut other = start.clone();
    other[6] ^= 1;
    assert_eq!(send(now, place(1), &other), (0, 0));
    assert_eq!(send(now + Duration::from_secs(40), place(1), &start), (0, 0));
    // A repetition of the true START gets the same reply, at a limited rate.
    assert_eq!(send(now, place(1), &start), (1, 1));
    assert_eq!(send(now, place(1), &start), (1, 0));
    assert_eq!(send(now + Duration::from_millis(60), place(1), &start), (1, 1));
    // Its handshake is dropped after 30 s, but its nonce is remembered.
    assert_eq!(send(now + Duration::from_millis(29_900), place(1), &start), (1, 1));
    assert_eq!(send(now + Duration::from_secs(30), place(1), &start), (0, 0));
    assert_eq!(send(now + Duration::from_millis(39_999), place(1), &start), (0, 0));
}

#[test]
fn copied_start_or_finish_of_live_connection_is_ignored() {
    let mut net = StubNetwork::pair(3);
    net.connect(ServerKey::Any);
    net.run_for(0.5);
    let copies: Vec<Vec<u8>> =
        net.seen.iter().filter(|s| s.2[0] == 0x83 || s.2[0] == 0x85).map(|s| s.2.clone()).collect();
    assert_eq!(copies.len(), 2);
    let now = net.now;
    let endpoint = net.at(SERVER);
    let before = sizes(endpoint);
    for copy in copies {
        endpoint.receive(now, CLIENT.parse().unwrap(), 0, &mut copy.clone());
        assert_eq!((sizes(endpoint), drain(endpoint, now)), (before.clone(), vec![]));
    }
}

/// Cookies made with the previous secret remain valid.
#[test]
fn secrets_rotate_without_refusing_anybody() {
    let mut endpoint = server(16);
    for second in [0.0, 19.9, 20.1, 40.2, 1000.0, 1001.0] {
        let now = Time::from_secs_f64(100.0 + second);
        let n = second as u8;
        let start = start_of(&mut endpoint, now, place(7), n).start().to_vec();
        // Another client's SYN in between causes the change of secret.
        let later = now + Duration::from_millis(500);
        endpoint.receive(later, place(8), 0, &mut packet::syn(VERSION, &[9; 16]));
        endpoint.receive(later, place(7), 0, &mut start.clone());
        assert_eq!(drain(&mut endpoint, later).len(), 2, "{second}");
    }
}

/// A few packets that overtake FINISH are kept.
#[test]
fn data_that_overtakes_finish_is_not_lost() {
    let mut net = StubNetwork::pair(4);
    let handle = net.connect(ServerKey::Any);
    // The copies of FINISH are as late.
    let mut way = |now: Time, bytes: &[u8]| {
        let late = if bytes[0] == 0x85 { 100 } else { 20 };
        vec![now + Duration::from_millis(late)]
    };
    let until = net.now + Duration::from_millis(90);
    net.run(until, &mut way);
    for n in 0..20 {
        net.at(CLIENT).connection(handle).unwrap().to_say.push_back(vec![n]);
    }
    let until = net.now + Duration::from_millis(20);
    net.run(until, &mut way);
    let kept = net.at(SERVER).gate.sizes()[0];
    assert_eq!(kept, 1, "still a handshake");
    net.run_for(0.2);
    let at_server = net.events.iter().find(|e| e.2 == ConnectionEvent::Message).expect("heard").1;
    let connection = net.at(SERVER).connection(at_server).unwrap();
    // The client's PING was the first of four.
    assert_eq!(connection.heard, [[0], [1], [2]]);
    assert_eq!(connection.rtt, None, "this FINISH may be a repetition");
}

/// Datagrams of every type, unchanged, truncated, changed or random. No input causes a panic or
/// changes state at either end, in any stage.
#[test]
fn forged_and_broken_datagrams_change_no_state() {
    let mut net = StubNetwork::pair_with_cookies(5);
    let alive = net.connect(ServerKey::Any);
    net.run_for(0.5);
    let seen = std::mem::take(&mut net.seen);
    // A second handshake, stopped at each of its stages.
    net.connect(ServerKey::Is(*key(2).public()));
    net.run_for(0.0);
    let mut random_key = RandomKey::from_seed(5).stream();
    for stage in 0..5 {
        for n in 0..4000 {
            let (from, to, bytes) = &seen[random_key.bits() as usize % seen.len()];
            let mut bytes = bytes.clone();
            match n % 3 {
                0 => bytes.truncate(random_key.bits() as usize % bytes.len()),
                1 => {
                    // Except the last bytes of a SYN, which have no meaning.
                    let bit = random_key.bits() as usize % (8 * bytes.len().min(21));
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                _ => {
                    let mut random =
                        SeededEntropy(RandomKey::from_seed(random_key.bits()).stream());
                    super::Entropy::fill(&mut random, &mut bytes[1..]);
                }
            }
            let now = net.now;
            let endpoint = net.ports.get_mut(to).unwrap();
            let before = sizes(endpoint);
            endpoint.receive(now, *from, 3, &mut bytes);
            let answers = drain(endpoint, now);
            // A SYN or an unknown ID from any address gets a shorter reply.
            assert!(answers.iter().all(|(at, answer)| at == from && answer.len() <= 64));
            assert_eq!(sizes(endpoint)[..5], before[..5]);
            assert_eq!(sizes(endpoint)[9..], before[9..]);
        }
        let until = net.now + Duration::from_millis(20);
        net.run(until, &mut |now, _| vec![now + Duration::from_millis(20)]);
        assert!(net.at_of(CLIENT).len() == 1 + usize::from(stage >= 3), "stage {stage}");
    }
    net.run_for(0.5);
    assert_eq!(net.closed(CLIENT), None);
    net.at(CLIENT).connection(alive).unwrap().to_say.push_back(b"as ever".to_vec());
    net.run_for(0.1);
    assert!(net.at_of(SERVER).contains(&ConnectionEvent::Message));
}

/// An endpoint that only connects does not reply to SYN.
#[test]
fn a_client_answers_no_syn() {
    let mut endpoint: Test = Connections::new(config(1, Clients::None), random(1));
    let now = Time::from_secs_f64(1.0);
    endpoint.receive(now, place(1), 0, &mut packet::syn(VERSION, &[0; 16]));
    assert_eq!(drain(&mut endpoint, now), []);
}

/// An attacker with a valid cookie forges the second half of a FINISH. The handshake still
/// completes.
#[test]
fn forged_finish_leaves_the_handshake_open() {
    let now = Time::from_secs_f64(50.0);
    let mut endpoint = server(16);
    let mut client = start_of(&mut endpoint, now, place(1), 1);
    endpoint.receive(now, place(1), 0, &mut client.start().to_vec());
    let echo = drain(&mut endpoint, now).pop().unwrap().1;
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(&echo) else { panic!("no echo") };
    let hello = Hello { connection: ConnectionId(5), params: Params::default() };
    let (_, finish) = client.on_start_echo(&echo, &hello, |_| true).unwrap();
    for at in (9..finish.len()).step_by(3) {
        let mut forged = finish.clone();
        forged[at] ^= 0x10;
        endpoint.receive(now, place(1), 0, &mut forged);
        assert!(endpoint.event().is_none());
    }
    endpoint.receive(now, place(2), 0, &mut finish.clone());
    assert!(endpoint.event().is_none(), "from elsewhere");
    endpoint.receive(now, place(1), 0, &mut finish.clone());
    assert_eq!(endpoint.event().map(|e| e.1), Some(ConnectionEvent::Connected(*key(1).public())));
}

/// With a static or an ephemeral key of low order. Zero is what 52 times `a` says in a list of clients.
#[test]
fn client_without_private_key_is_not_connected() {
    let now = Time::from_secs_f64(50.0);
    let hello = Hello { connection: ConnectionId(5), params: Params::default() };
    for weak in [WeakKey::Static, WeakKey::Ephemeral] {
        let mut endpoint = server(16);
        endpoint.receive(now, place(1), 0, &mut packet::syn(VERSION, &[1; 16]));
        let echo = drain(&mut endpoint, now).pop().expect("an answer").1;
        let Ok(ParsedPacket::SynEcho { nonce, cookie }) = ParsedPacket::read(&echo) else {
            panic!("no echo")
        };
        let mut client = KeylessClient::new(nonce, &cookie, weak, [0; 32]).unwrap();
        endpoint.receive(now, place(1), 0, &mut client.start().to_vec());
        let answers = drain(&mut endpoint, now);
        assert_eq!(answers.is_empty(), weak == WeakKey::Ephemeral);
        if let Some((_, echo)) = answers.last() {
            let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(echo) else {
                panic!("no echo")
            };
            let mut finish = client.finish(&echo, &hello).unwrap();
            endpoint.receive(now, place(1), 0, &mut finish);
        }
        assert!(endpoint.event().is_none());
        assert_eq!(drain(&mut endpoint, now), []);
    }
}
