//! Handshakes between two endpoints, over good and bad paths.

use super::stub::{
    CLIENT, SERVER, StubConnection, StubNetwork, config, connection, key, random, wish,
};
use super::{Clients, ConnectRequest, Connections, ServerKey};
use crate::connection::{Closed, ConnectionEvent};
use narrows_base::{Duration, RandomKey, Rate, Time};
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{ClientHandshake, ConnectionId, Cookie, Hello, Params, Suite, VERSION};
use std::collections::BTreeSet;

fn right() -> ServerKey {
    ServerKey::Is(*key(2).public())
}

#[test]
fn both_ends_learn_peers_key_and_rtt() {
    let mut net = StubNetwork::pair(1);
    let handle = net.connect(right());
    assert_eq!(net.at(CLIENT).len(), 1);
    assert!(net.at(CLIENT).connection(handle).is_none(), "nothing to talk to yet");
    net.run_for(0.1);
    assert_eq!(net.at_of(CLIENT), [ConnectionEvent::Connected(*key(2).public())]);
    assert_eq!(net.at_of(SERVER), [ConnectionEvent::Connected(*key(1).public())]);
    let rtt = Some(Duration::from_millis(40));
    assert_eq!(net.at(CLIENT).connection(handle).unwrap().rtt, rtt);
    let at_server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
    assert_eq!(net.at(SERVER).connection(at_server).unwrap().rtt, rtt);
    // START, START-ECHO, FINISH, the client's PING and its reply.
    let kinds: Vec<u8> = net.seen.iter().map(|s| s.2[0]).collect();
    assert_eq!(kinds, [0x83, 0x84, 0x85, 0, 0]);
    // Simulated handshakes have the same sizes; those with parameters have about the same.
    let sizes: Vec<u16> = net.seen.iter().map(|s| s.2.len() as u16).collect();
    let client = narrows_recovery::handshake::CLIENT_BYTES;
    let server = narrows_recovery::handshake::SERVER_BYTES;
    assert_eq!(sizes[0], client[1]);
    assert!(sizes[1].abs_diff(server[1]) < 30 && sizes[2].abs_diff(client[2]) < 5, "{sizes:?}");
}

/// A server that requires a cookie costs one round trip more.
#[test]
fn a_server_may_ask_for_a_cookie() {
    let mut net = StubNetwork::pair_with_cookies(1);
    let handle = net.connect(right());
    net.run_for(0.1);
    let rtt = Some(Duration::from_millis(40));
    assert_eq!(net.at(CLIENT).connection(handle).unwrap().rtt, rtt);
    net.run_for(0.1);
    let kinds: Vec<u8> = net.seen.iter().map(|s| s.2[0]).collect();
    assert_eq!(kinds, [0x83, 0x82, 0x83, 0x84, 0x85, 0, 0]);
    let client = narrows_recovery::handshake::CLIENT_BYTES;
    let server = narrows_recovery::handshake::SERVER_BYTES;
    assert_eq!(net.seen[1].2.len(), usize::from(server[0]));
    assert_eq!(packet::SYN_BYTES, usize::from(client[0]));
}

/// If requested, and if hints give no rate, the first packets measure the path's rate. The server keeps no state for
/// them and sends at most as many bytes as it received.
#[test]
fn larger_syns_tell_the_rate_before_data_do() {
    for (probes_rate, told, syns) in [(true, None, 3), (false, None, 0), (true, Some(1), 0)] {
        let mut net = StubNetwork::pair(1);
        let mut config = connection();
        config.probes_rate = probes_rate;
        config.hints.rate = told.map(Rate::from_bps);
        let now = net.now;
        let wish = ConnectRequest { connection: config, ..wish(SERVER, right()) };
        let handle = net.at(CLIENT).connect(now, wish).unwrap();
        // 1 Mbit/s: each packet waits for the one before it.
        let mut free = now;
        let until = now + Duration::from_secs(1);
        net.run(until, &mut |now, packet| {
            free = free.max(now) + Duration::from_micros((packet.len() as u64 + 28) * 8);
            vec![free + Duration::from_millis(20)]
        });
        let sizes: Vec<usize> =
            net.seen.iter().filter(|s| s.2[0] == 0x81).map(|s| s.2.len()).collect();
        assert_eq!(sizes, [500; 3][..syns]);
        let dispersion = net.at(CLIENT).connection(handle).unwrap().dispersion;
        assert_eq!(dispersion.is_some(), syns == 3);
        if let Some(s) = dispersion {
            // The replies in both directions share one link.
            let rate = s.bits / s.took.as_secs_f64();
            assert!((0.8e6..1.05e6).contains(&rate), "{rate}");
        }
    }
}

#[test]
fn data_follows_finish_at_once_and_arrives_both_ways() {
    let mut net = StubNetwork::pair(2);
    let handle = net.connect(right());
    net.run_for(0.045);
    // A round trip after `connect` the client may send data.
    net.at(CLIENT).connection(handle).unwrap().to_say.push_back(b"hello".to_vec());
    net.run_for(0.03);
    let at_server = net.events.iter().find(|e| e.2 == ConnectionEvent::Message).expect("heard").1;
    assert_eq!(net.at(SERVER).connection(at_server).unwrap().heard, [b"hello"]);
    net.at(SERVER).connection(at_server).unwrap().to_say.push_back(b"you too".to_vec());
    net.run_for(0.03);
    assert_eq!(net.at(CLIENT).connection(handle).unwrap().heard, [b"you too"]);
}

/// The first FINISH is lost. All data sent directly after it reach the server, because a copy of FINISH is sent with
/// them.
#[test]
fn a_lost_finish_does_not_cost_the_flight_behind_it() {
    let mut net = StubNetwork::pair(2);
    let handle = net.connect(right());
    let mut finishes = 0;
    let until = net.now + Duration::from_millis(45);
    let mut way = |now: Time, packet: &[u8]| {
        finishes += u32::from(packet[0] == 0x85);
        if packet[0] == 0x85 && finishes == 1 {
            return Vec::new();
        }
        vec![now + Duration::from_millis(20)]
    };
    net.run(until, &mut way);
    for n in 0..20u8 {
        net.at(CLIENT).connection(handle).unwrap().to_say.push_back(vec![n]);
    }
    // By time, the next FINISH would leave 0.1 s after the first.
    let until = net.now + Duration::from_millis(35);
    net.run(until, &mut way);
    let at_server = net.events.iter().find(|e| e.2 == ConnectionEvent::Message).expect("heard").1;
    assert_eq!(net.at(SERVER).connection(at_server).unwrap().heard.len(), 20);
    assert!((3..=6).contains(&finishes), "{finishes}");
}

/// On a path that loses, duplicates and reorders packets, both ends connect and exchange data. Otherwise the client
/// reports that no reply came, and the server keeps no state.
#[test]
fn handshake_over_a_bad_path_ends_clearly() {
    let mut connected = 0;
    let mut failed = 0;
    for seed in 0..200 {
        let mut net = StubNetwork::pair(seed);
        let mut random_key = RandomKey::from_seed(seed).named("path").stream();
        let loss = [0.0, 0.2, 0.5, 0.8][seed as usize % 4];
        let handle = net.connect(right());
        let until = net.now + Duration::from_secs(29);
        net.run(until, &mut |now, _| {
            let mut copies = Vec::new();
            for _ in 0..=u32::from(random_key.chance(0.3)) {
                if !random_key.chance(loss) {
                    copies.push(now + Duration::from_secs_f64(random_key.uniform(0.005, 0.4)));
                }
            }
            copies
        });
        match net.closed(CLIENT) {
            None => {
                connected += 1;
                assert!(net.is_connected(CLIENT) && net.is_connected(SERVER), "seed {seed}");
                net.at(CLIENT).connection(handle).unwrap().to_say.push_back(b"x".to_vec());
                net.run_for(0.1);
                assert!(net.at_of(SERVER).contains(&ConnectionEvent::Message), "seed {seed}");
            }
            Some(why) => {
                failed += 1;
                assert!(loss > 0.4, "seed {seed}: much patience, little loss");
                // A server without FINISH has dropped the handshake, and sends RESET for data.
                assert!(
                    matches!(why, Closed::NoAnswer { .. } | Closed::Reset),
                    "seed {seed}: {why:?}"
                );
                assert!(net.at(CLIENT).is_empty(), "seed {seed}");
            }
        }
        // A connection that exists only at the server ends by its own timeout.
        net.ports.remove(&CLIENT.parse().unwrap());
        net.run_for(60.0);
        assert!(net.at(SERVER).is_empty(), "seed {seed}");
        assert_eq!(net.at(SERVER).gate.half_open(), 0);
    }
    assert!(connected >= 100 && failed > 0, "{connected} connected, {failed} failed");
}

#[test]
fn missing_peer_is_reported_at_the_deadline() {
    let mut net = StubNetwork::pair(3);
    net.ports.remove(&SERVER.parse().unwrap());
    net.connect(ServerKey::Any);
    net.run_for(14.9);
    assert_eq!(net.closed(CLIENT), None);
    // START at 0, 0.3, 0.6, 0.9, 1.5, 2.1; SYN at 3.3, 3.9, 4.5, 5.7, 6.9, 9.3, 11.7.
    assert_eq!(net.seen.len(), 14);
    net.run_for(0.2);
    let waited = Duration::from_secs(15);
    assert_eq!(net.closed(CLIENT), Some(Closed::NoAnswer { waited, first_answer: None }));
    assert!(net.at(CLIENT).is_empty());
    assert!(net.at(CLIENT).next_timeout().is_never());
}

/// Reports nine times that the client's packets to `remote` were refused, with these first bytes.
fn refuse(net: &mut StubNetwork<StubConnection>, remote: &str, quoted: &[u8]) {
    let now = net.now;
    for _ in 0..9 {
        net.at(CLIENT).on_refused(now, remote.parse().unwrap(), quoted);
    }
}

/// The client's last packet.
fn last_sent(net: &StubNetwork<StubConnection>) -> Vec<u8> {
    let client = CLIENT.parse().unwrap();
    net.seen.iter().rev().find(|seen| seen.0 == client).unwrap().2.clone()
}

/// An attempt ends when three packets were reported as refused; repeated reports of one packet count once.
#[test]
fn attempt_ends_when_three_packets_are_refused() {
    let mut net = StubNetwork::pair(3);
    net.ports.remove(&SERVER.parse().unwrap());
    net.connect(ServerKey::Any);
    net.run_for(0.01);
    // Packets leave at 0, 0.3 and 0.6 s.
    for _ in 0..3 {
        let quoted = last_sent(&net);
        refuse(&mut net, SERVER, &quoted);
        refuse(&mut net, CLIENT, &quoted);
        net.run_for(0.3);
    }
    net.run_for(2.6);
    assert_eq!(net.closed(CLIENT), None, "an answer may be on its way");
    net.run_for(0.2);
    assert_eq!(net.closed(CLIENT), Some(Closed::NoListener));
    assert!(!net.at(CLIENT).is_connecting());
}

/// RFC 5927: an attacker beside the path has to guess what a report quotes.
#[test]
fn refusals_without_the_nonce_leave_attempt_open() {
    let mut net = StubNetwork::pair(3);
    net.ports.remove(&SERVER.parse().unwrap());
    net.connect(ServerKey::Any);
    for _ in 0..30 {
        net.run_for(0.31);
        let mut quoted = last_sent(&net);
        refuse(&mut net, SERVER, &[]);
        refuse(&mut net, SERVER, &quoted[..8]);
        quoted[12] ^= 1;
        refuse(&mut net, SERVER, &quoted);
        assert_eq!(net.closed(CLIENT), None);
    }
    net.run_for(10.0);
    assert!(matches!(net.closed(CLIENT), Some(Closed::NoAnswer { .. })));
}

/// At a long round trip an observer's reports arrive before the reply.
#[test]
fn refusals_before_a_late_reply_leave_attempt_open() {
    let mut net = StubNetwork::pair(3);
    net.connect(right());
    let mut way = |now: Time, _: &[u8]| vec![now + Duration::from_millis(600)];
    for _ in 0..4 {
        let until = net.now + Duration::from_millis(290);
        net.run(until, &mut way);
        let quoted = last_sent(&net);
        refuse(&mut net, SERVER, &quoted);
    }
    let until = net.now + Duration::from_secs(5);
    net.run(until, &mut way);
    assert_eq!(net.closed(CLIENT), None);
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER));
}

/// Reports end neither an attempt with a reply nor a connection.
#[test]
fn refusals_after_a_reply_are_ignored() {
    let mut net = StubNetwork::pair_with_cookies(3);
    net.connect(right());
    // SYN-ECHO arrives; all STARTs with a cookie are lost.
    let until = net.now + Duration::from_secs(2);
    net.run(until, &mut |now, bytes| {
        let is_lost = bytes[0] == 0x83 && bytes[22..58] != [0; 36];
        if is_lost { vec![] } else { vec![now + Duration::from_millis(20)] }
    });
    let quoted = last_sent(&net);
    refuse(&mut net, SERVER, &quoted);
    net.run_for(3.0);
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER));
    refuse(&mut net, SERVER, &quoted);
    net.run_for(1.0);
    assert_eq!(net.closed(CLIENT), None);
}

/// If the cookie is too old or a packet was damaged, the attempt restarts with a new nonce, because the server may
/// remember the old one.
#[test]
fn a_start_that_is_not_answered_is_begun_again() {
    let mut net = StubNetwork::pair(4);
    net.connect(right());
    let outage = net.now + Duration::from_secs(11);
    let until = net.now + Duration::from_secs(14);
    net.run(until, &mut |now, bytes| {
        let is_lost = bytes[0] == 0x84 && now < outage;
        if is_lost { vec![] } else { vec![now + Duration::from_millis(20)] }
    });
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER));
    let nonces: BTreeSet<&[u8]> =
        net.seen.iter().filter(|s| s.2[0] == 0x83).map(|s| &s.2[6..22]).collect();
    // After about three seconds each.
    assert_eq!(nonces.len(), 4);
}

/// One bit of the first START's key is changed in transit: the server keeps a handshake that cannot complete, and
/// repeats its reply. If one bit of the first cookie is changed, the server does not reply.
#[test]
fn damaged_key_or_cookie_only_delays_the_handshake() {
    for (kind, place) in [(0x83, 80), (0x82, 40)] {
        let mut net = StubNetwork::pair_with_cookies(40);
        net.connect(right());
        for _ in 0..10 {
            net.run_for(0.01);
            for (_, _, bytes) in net.flying.values_mut().filter(|f| f.2[0] == kind) {
                bytes[place] ^= 1;
            }
        }
        net.run_for(5.0);
        assert!(net.is_connected(CLIENT) && net.is_connected(SERVER), "{kind:x}");
    }
}

#[test]
fn server_with_wrong_key_gets_no_data_and_is_named() {
    let mut net = StubNetwork::pair(5);
    net.connect(ServerKey::Is(*key(3).public()));
    net.run_for(0.9);
    assert_eq!(net.closed(CLIENT), None, "the right one may still come");
    net.run_for(0.3);
    assert_eq!(net.closed(CLIENT), Some(Closed::WrongKey { found: *key(2).public() }));
    assert!(net.seen.iter().all(|s| s.2[0] != 0x85), "FINISH has the client's key");
}

/// A forged reply that arrives before the server's does not end the attempt.
#[test]
fn the_right_server_may_answer_after_a_wrong_one() {
    let mut net = StubNetwork::pair(6);
    let client = CLIENT.parse().unwrap();
    let server = SERVER.parse().unwrap();
    net.connect(right());
    net.run_for(0.005);
    let start = net.seen.iter().find(|s| s.2[0] == 0x83).unwrap().2.clone();
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(&start) else { panic!("no START") };
    let hello = Hello { connection: ConnectionId(7), params: Params::default() };
    let impostor = narrows_wire::ServerHandshake::new(&start, &key(9), [9; 32], &hello).unwrap();
    let soon = net.now + Duration::from_millis(1);
    net.fly(soon, server, client, impostor.start_echo());
    net.run_for(2.0);
    assert_eq!(net.at_of(CLIENT), [ConnectionEvent::Connected(*key(2).public())]);
}

#[test]
fn unlisted_clients_are_refused_with_a_reason() {
    for (listed, is_in) in [(1, true), (3, false)] {
        let mut net = StubNetwork::pair(7);
        let clients = Clients::Listed([*key(listed).public()].into());
        *net.at(SERVER) = Connections::new(config(2, clients), random(7));
        net.connect(right());
        // The first CLOSE is lost.
        let mut lost = 0;
        let until = net.now + Duration::from_secs(1);
        net.run(until, &mut |now, bytes| {
            lost += u32::from(bytes[0] < 0x80);
            if lost == 2 { vec![] } else { vec![now + Duration::from_millis(20)] }
        });
        if is_in {
            assert_eq!(net.closed(CLIENT), None);
            assert!(net.is_connected(SERVER));
            continue;
        }
        let closed = net.closed(CLIENT);
        assert!(matches!(closed, Some(Closed::ByPeer { code: 4, .. })), "{closed:?}");
        assert_eq!(net.at_of(SERVER), [], "the application hears nothing of it");
        net.run_for(10.0);
        assert!(net.at(SERVER).is_empty());
        assert_eq!(net.at(SERVER).gate.half_open(), 0);
    }
}

#[test]
fn a_server_of_other_versions_only_is_a_clear_error() {
    let mut net = StubNetwork::pair(8);
    net.connect(right());
    let server = SERVER.parse().unwrap();
    let client = CLIENT.parse().unwrap();
    net.ports.remove(&server);
    net.run_for(0.01);
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(&net.seen[0].2) else {
        panic!("no START")
    };
    let nonce = start.nonce;
    let soon = net.now + Duration::from_millis(1);
    let unlike = |list: &[u32]| packet::version(VERSION, &nonce, list);
    net.fly(soon, server, client, &unlike(&[VERSION + 3, VERSION]));
    net.run_for(2.0);
    assert_eq!(net.closed(CLIENT), None, "a list that has our version is nonsense");
    let soon = net.now + Duration::from_millis(1);
    net.fly(soon, server, client, &unlike(&[VERSION + 3]));
    net.run_for(1.2);
    assert_eq!(net.closed(CLIENT), Some(Closed::Version));
}

#[test]
fn a_forged_version_does_not_stop_a_server_that_answers() {
    let mut net = StubNetwork::pair(9);
    net.connect(right());
    net.run_for(0.01);
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(&net.seen[0].2) else {
        panic!("no START")
    };
    let forged = packet::version(VERSION, &start.nonce, &[VERSION + 3]);
    let soon = net.now + Duration::from_millis(1);
    net.fly(soon, SERVER.parse().unwrap(), CLIENT.parse().unwrap(), &forged);
    net.run_for(3.0);
    assert_eq!(net.at_of(CLIENT), [ConnectionEvent::Connected(*key(2).public())]);
}

#[test]
fn another_version_is_answered_with_ours() {
    let mut server: Connections<StubConnection> =
        Connections::new(config(2, Clients::Any), random(10));
    let now = Time::from_secs_f64(5.0);
    let syn = packet::syn(VERSION + 1, &[3; 16]);
    let mut start =
        ClientHandshake::new(Suite::Aes256Gcm, [3; 16], &Cookie::NONE, &key(1), [8; 32])
            .unwrap()
            .start()
            .to_vec();
    start[1..5].copy_from_slice(&(VERSION + 1).to_be_bytes());
    for asked in [syn, start] {
        server.receive(now, CLIENT.parse().unwrap(), 0, &mut asked.clone());
        let mut buffer = [0; 100];
        let sent = server.transmit(now, &mut buffer, 1).unwrap();
        assert!(sent.size <= asked.len());
        let answer = &buffer[..sent.size];
        assert_eq!(answer, packet::version(VERSION + 1, &[3; 16], &[VERSION]));
    }
}

/// After a version downgrade the client gets CLOSE 5.
#[test]
fn a_downgrade_is_noticed() {
    let mut server: Connections<StubConnection> =
        Connections::new(config(2, Clients::Any), random(11));
    server.speaks = &[VERSION + 1, VERSION];
    let now = Time::from_secs_f64(5.0);
    let client = CLIENT.parse().unwrap();
    let mut buffer = [0; 1500];
    let mut exchange = |server: &mut Connections<StubConnection>, packet: &[u8]| {
        server.receive(now, client, 0, &mut packet.to_vec());
        server.transmit(now, &mut buffer, 1).map(|t| buffer[..t.size].to_vec())
    };
    let echo = exchange(&mut server, &packet::syn(VERSION, &[4; 16])).unwrap();
    let Ok(ParsedPacket::SynEcho { nonce, cookie }) = ParsedPacket::read(&echo) else {
        panic!("no echo")
    };
    let mut handshake =
        ClientHandshake::new(Suite::ChaCha20Poly1305, nonce, &cookie, &key(1), [8; 32]).unwrap();
    let echo = exchange(&mut server, handshake.start()).unwrap();
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(&echo) else { panic!("no echo") };
    let params = Params { offered: Some(VERSION + 1), ..Params::default() };
    let hello = Hello { connection: ConnectionId(1), params };
    let (mut keys, finish) = handshake.on_start_echo(&echo, &hello, |_| true).unwrap();
    let mut close = exchange(&mut server, &finish).unwrap();
    let opened = keys.opener.open(&mut close).unwrap();
    let (_, mut frames) = narrows_wire::Frames::read(opened.payload).unwrap();
    let frame = frames.next().unwrap().unwrap();
    assert!(matches!(frame, narrows_wire::Frame::Close { code: 5, .. }), "{frame:?}");
    assert!(server.event().is_none());
}

#[test]
fn closing_before_the_answer_and_after_it() {
    let mut net = StubNetwork::pair(12);
    let handle = net.connect(right());
    let now = net.now;
    net.at(CLIENT).close(now, handle, 300, "never mind");
    net.run_for(0.2);
    assert_eq!(net.at_of(CLIENT), [ConnectionEvent::Closed(Closed::Locally)]);
    assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty());
    assert!(net.seen.is_empty());

    let handle = net.connect(right());
    net.run_for(0.2);
    let now = net.now;
    net.at(CLIENT).close(now, handle, 300, "bye");
    net.run_for(0.2);
    let told = net.closed(SERVER);
    assert!(matches!(told, Some(Closed::ByPeer { code: 300, .. })), "{told:?}");
    assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty());
    assert!(net.at(CLIENT).connection(handle).is_none());
}

/// A restarted server sends a RESET with a token that only this server can make.
#[test]
fn a_server_that_lost_its_memory_resets_and_others_cannot() {
    let mut net = StubNetwork::pair(13);
    let handle = net.connect(right());
    net.run_for(0.2);
    let server = SERVER.parse().unwrap();
    let client = CLIENT.parse().unwrap();
    let soon = net.now + Duration::from_millis(1);
    net.fly(soon, server, client, &packet::reset(&[0; 16]));
    net.run_for(0.1);
    assert_eq!(net.closed(CLIENT), None);
    *net.at(SERVER) = Connections::new(config(2, Clients::Any), random(99));
    net.at(CLIENT).connection(handle).unwrap().to_say.push_back(b"still there?".to_vec());
    net.run_for(0.1);
    assert_eq!(net.closed(CLIENT), Some(Closed::Reset));
    assert!(net.at(CLIENT).is_empty());
}

#[test]
fn connections_are_bounded_and_handles_never_come_again() {
    let mut endpoint: Connections<StubConnection> =
        Connections::new(config(1, Clients::None), random(14));
    let mut seen = BTreeSet::new();
    let mut now = Time::from_secs_f64(1.0);
    for _ in 0..3 {
        for _ in 0..64 {
            assert!(seen.insert(endpoint.connect(now, wish(SERVER, ServerKey::Any)).unwrap()));
        }
        assert!(endpoint.connect(now, wish(SERVER, ServerKey::Any)).is_none());
        now += Duration::from_secs(15);
        endpoint.on_timeout(now);
        assert_eq!(std::iter::from_fn(|| endpoint.event()).count(), 64);
        assert!(endpoint.is_empty());
        assert_eq!(
            (endpoint.nonces.len(), endpoint.alarms.len(), endpoint.table.slots()),
            (0, 0, 64)
        );
    }
}

/// On a path with a long RTT given by hints, packets are not repeated before a reply can have arrived.
#[test]
fn a_long_path_that_is_known_is_asked_once() {
    let mut net = StubNetwork::pair(15);
    let mut config = connection();
    config.hints.rtt = Some(Duration::from_millis(600));
    let wish = ConnectRequest { connection: config, ..wish(SERVER, right()) };
    let now = net.now;
    let handle = net.at(CLIENT).connect(now, wish).unwrap();
    let until = net.now + Duration::from_secs(3);
    net.run(until, &mut |now, _| vec![now + Duration::from_millis(300)]);
    let count = |kind: u8| net.seen.iter().filter(|s| s.2[0] == kind).count();
    // A copy of FINISH leaves with the stub's second packet, before a reply can have arrived.
    assert_eq!([0x81, 0x82, 0x83, 0x84, 0x85].map(count), [0, 0, 1, 1, 2]);
    let rtt = net.at(CLIENT).connection(handle).unwrap().rtt;
    assert_eq!(rtt, Some(Duration::from_millis(600)));
}

/// A connection to a server in `rtt`, and the round trips that it took at the client. `way` gives a packet's copies
/// beyond the delay of half a round trip.
fn round_trips_to_open(net: &mut StubNetwork<StubConnection>, rtt: f64, loss: f64) -> f64 {
    let patience = Duration::from_secs(25);
    let wish = ConnectRequest { patience, ..wish(SERVER, right()) };
    let began = net.now;
    let handle = net.at(CLIENT).connect(began, wish).unwrap();
    let mut random_key = RandomKey::from_seed(7).named("path").stream();
    while net.at(CLIENT).connection(handle).is_none() {
        let until = net.now + Duration::from_millis(50);
        net.run(until, &mut |now, _| {
            let delay = Duration::from_secs_f64(rtt / 2.0);
            if random_key.chance(loss) { vec![] } else { vec![now + delay] }
        });
        assert_eq!(net.closed(CLIENT), None, "round trips of {rtt} s");
    }
    let opened = net.now.since(began).as_secs_f64();
    let until = net.now + Duration::from_secs_f64(3.0 * rtt + 5.0);
    net.run(until, &mut |now, _| {
        let delay = Duration::from_secs_f64(rtt / 2.0);
        if random_key.chance(loss) { vec![] } else { vec![now + delay] }
    });
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER), "round trips of {rtt} s");
    opened / rtt
}

/// The reply to the first START arrives after the attempt has restarted with another nonce.
#[test]
fn rtt_of_twenty_seconds_needs_one_handshake_attempt() {
    for rtt in [3.6, 4.0, 8.0, 12.0, 20.0] {
        let mut net = StubNetwork::pair(50);
        assert!(round_trips_to_open(&mut net, rtt, 0.0) < 1.1, "{rtt} s");
        let starts = net.seen.iter().filter(|s| matches!(s.2[0], 0x81 | 0x83)).count();
        assert!(starts <= 16, "{starts} packets until the first reply");
        let mut net = StubNetwork::pair_with_cookies(50);
        assert!(round_trips_to_open(&mut net, rtt, 0.0) < 2.1, "{rtt} s");
        let mut net = StubNetwork::pair(51);
        assert!(round_trips_to_open(&mut net, rtt, 0.2) < 3.0, "{rtt} s");
        let mut net = StubNetwork::pair_with_cookies(51);
        assert!(round_trips_to_open(&mut net, rtt, 0.2) < 4.0, "{rtt} s");
    }
}

/// A server that answers SYN and never START: the failure reports the first answer, and the attempt ends.
#[test]
fn unfinished_handshake_reports_the_first_answer() {
    let mut net = StubNetwork::pair_with_cookies(52);
    net.connect(right());
    let until = net.now + Duration::from_secs(60);
    net.run(until, &mut |now, bytes| {
        if bytes[0] == 0x84 { vec![] } else { vec![now + Duration::from_secs(2)] }
    });
    let Some(Closed::NoAnswer { first_answer, .. }) = net.closed(CLIENT) else {
        panic!("{:?}", net.closed(CLIENT))
    };
    assert_eq!(first_answer, Some(Duration::from_secs(4)));
    assert!(net.at(CLIENT).nonces.is_empty());
}
