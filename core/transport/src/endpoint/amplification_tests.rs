//! A server sends few bytes to an address that is not validated.

use super::hostile_tests::{drain, place};
use super::stub::{SERVER, config, connection, key, random};
use super::{Clients, Connections, Endpoint, EndpointConfig};
use crate::Protocol;
use crate::connection::ConnectionConfig;
use narrows_base::{Duration, Time};
use narrows_recovery::protocol::MakeReceiverSide;
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{ClientHandshake, ConnectionId, Cookie, Hello, Params, Suite, VERSION};
use std::net::SocketAddr;
use std::sync::Arc;

/// A server with real connections and a protocol label of `label` bytes.
fn server(label: usize) -> Endpoint {
    let like = Protocol::with_controller("cubic").unwrap();
    let copy = like.clone();
    let label = "x".repeat(label);
    // The receiver side makes the label necessary for the client.
    let tfrc = Protocol::with_controller("tfrc").unwrap();
    let receiver_side: Arc<MakeReceiverSide> = Arc::new(move |e| tfrc.receiver_side(e).unwrap());
    let make = move |e: &_| copy.controller(e);
    let protocol =
        Protocol::custom(&label, like.config().clone(), make, Some(receiver_side)).unwrap();
    let connection = ConnectionConfig { protocol, ..connection() };
    Connections::new(EndpointConfig { connection, ..config(2, Clients::Any) }, random(3))
}

/// Bytes that the server sends in reply, and the replies.
fn answered(
    endpoint: &mut Endpoint,
    now: Time,
    from: SocketAddr,
    bytes: &[u8],
) -> (usize, Vec<Vec<u8>>) {
    endpoint.receive(now, from, 0, &mut bytes.to_vec());
    let mut buffer = [0; 2000];
    let mut all = Vec::new();
    while let Some(t) = endpoint.transmit(now, &mut buffer, 1) {
        assert_eq!(t.to, from);
        all.push(buffer[..t.size].to_vec());
    }
    (all.iter().map(Vec::len).sum(), all)
}

/// Every packet of a handshake, also repeated, gets at most three times its bytes. A SYN, which may have a forged
/// address, gets fewer bytes than it has. So does any packet that is not authentic.
#[test]
fn no_handshake_packet_is_amplified_threefold() {
    assert!(longest_answer_to_start(64) > 2 * packet::START_BYTES);
    assert!(longest_answer_to_start(128) < 2 * packet::START_BYTES, "it is told later");
}

fn longest_answer_to_start(label: usize) -> usize {
    let mut endpoint = server(label);
    let from = place(1);
    let victim = place(2);
    let mut now = Time::from_secs_f64(50.0);
    let mut ask = |endpoint: &mut Endpoint, from: SocketAddr, bytes: &[u8], most: f64| {
        let mut first = Vec::new();
        // Every 10 ms, as in a flood, and every 60 ms, when the server replies to repetitions.
        for n in 0..20 {
            let (count, said) = answered(endpoint, now, from, bytes);
            assert!(count as f64 <= most * bytes.len() as f64, "{count} for {}", bytes.len());
            if n == 0 {
                first = said;
            }
            now += Duration::from_millis(if n < 10 { 10 } else { 60 });
        }
        first
    };
    for version in [VERSION, VERSION + 1] {
        for bytes in [64, 500, 1200] {
            ask(&mut endpoint, victim, &packet::syn_of(version, &[3; 16], bytes), 1.0);
        }
    }
    let unproven =
        ClientHandshake::new(Suite::Aes256Gcm, [6; 16], &Cookie::NONE, &key(1), [8; 32]).unwrap();
    ask(&mut endpoint, victim, unproven.start(), 3.0);
    let echo = ask(&mut endpoint, from, &packet::syn(VERSION, &[4; 16]), 1.0).remove(0);
    let Ok(ParsedPacket::SynEcho { nonce, cookie }) = ParsedPacket::read(&echo) else {
        panic!("no echo")
    };
    let mut client =
        ClientHandshake::new(Suite::Aes256Gcm, nonce, &cookie, &key(1), [8; 32]).unwrap();
    let start = client.start().to_vec();
    ask(&mut endpoint, victim, &start, 0.0);
    let echo = ask(&mut endpoint, from, &start, 3.0).remove(0);
    let Ok(ParsedPacket::StartEcho(read)) = ParsedPacket::read(&echo) else {
        panic!("no START-ECHO")
    };
    let params = Params::default();
    let hello = Hello { connection: ConnectionId(5), params };
    let (_, finish) = client.on_start_echo(&read, &hello, |_| true).unwrap();
    ask(&mut endpoint, victim, &finish, 0.0);
    let mut forged = finish.clone();
    *forged.last_mut().unwrap() ^= 1;
    ask(&mut endpoint, from, &forged, 0.0);
    // Short packets for a handshake and for no connection, a RESET, and a BUSY.
    let mut short = vec![0; 24];
    short[1..5].copy_from_slice(&finish[5..9]);
    ask(&mut endpoint, victim, &short, 0.0);
    ask(&mut endpoint, from, &short, 0.0);
    short[1..5].copy_from_slice(&[0xff; 4]);
    ask(&mut endpoint, victim, &short, 1.0);
    ask(&mut endpoint, victim, &packet::reset(&[1; 16]), 0.0);
    ask(&mut endpoint, victim, &packet::busy(&nonce), 0.0);
    echo.len()
}

/// A refusal after FINISH is repeated only to the client's validated address, and at most 20 times per second.
#[test]
fn a_refusal_is_not_repeated_to_every_packet() {
    let only = [*key(7).public()].into();
    let mut endpoint = Connections::new(config(2, Clients::Listed(only)), random(3));
    let now = Time::from_secs_f64(50.0);
    let from = SERVER.parse().unwrap();
    let mut client = super::hostile_tests::start_of(&mut endpoint, now, from, 1);
    endpoint.receive(now, from, 0, &mut client.start().to_vec());
    let echo = drain(&mut endpoint, now).pop().unwrap().1;
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(&echo) else { panic!("no echo") };
    let hello = Hello { connection: ConnectionId(5), params: Params::default() };
    let (_, finish) = client.on_start_echo(&echo, &hello, |_| true).unwrap();
    let mut said = 0;
    for n in 0..1000u64 {
        let now = now + Duration::from_millis(n);
        endpoint.receive(now, from, 0, &mut finish.clone());
        for (to, close) in drain(&mut endpoint, now) {
            assert!(to == from && close.len() <= finish.len(), "{}", close.len());
            said += 1;
        }
    }
    assert!((2..=20).contains(&said), "{said}");
}
