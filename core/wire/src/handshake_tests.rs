//! The whole handshake in memory, from SYN to data both ways.

use crate::cookie::CookieSecrets;
use crate::header::ConnectionId;
use crate::noise::{ClientHandshake, Established, HandshakeError, ServerHandshake, StaticKey};
use crate::packet::{self, ParsedPacket, TAG_BYTES};
use crate::params::{Hello, Params};
use crate::{Frame, FrameWriter, Frames, Prelude, Sealer, Suite, VERSION};
use narrows_base::Time;
use std::net::SocketAddr;

const NONCE: [u8; 16] = [0x11; 16];

fn hello(id: u32) -> Hello {
    let params = Params { max_data: 1 << 20, controller: "tfrc".into(), ..Params::default() };
    Hello { connection: ConnectionId(id), params }
}

fn key(n: u8) -> StaticKey {
    StaticKey::new([n; 32]).unwrap()
}

/// As far as START.
fn opened(suite: Suite) -> ClientHandshake {
    let client: SocketAddr = "192.0.2.1:5000".parse().unwrap();
    let secrets = CookieSecrets::new(&[7; 32]);
    let now = Time::from_secs_f64(50.0);
    let syn = packet::syn(VERSION, &NONCE);
    let Ok(ParsedPacket::Syn { version, nonce }) = ParsedPacket::read(&syn) else {
        panic!("no SYN")
    };
    let echo = packet::syn_echo(&nonce, &secrets.create(now, client, &nonce, version));
    let Ok(ParsedPacket::SynEcho { nonce, cookie }) = ParsedPacket::read(&echo) else {
        panic!("no echo")
    };
    let handshake = ClientHandshake::new(suite, nonce, &cookie, &key(1), [3; 32]).unwrap();
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(handshake.start()) else {
        panic!("no START")
    };
    assert!(secrets.is_valid(now, client, &start.nonce, VERSION, &start.cookie));
    handshake
}

fn answered(start: &[u8]) -> Result<ServerHandshake, HandshakeError> {
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(start) else {
        return Err(HandshakeError::NotOurs);
    };
    ServerHandshake::new(&start, &key(2), [4; 32], &hello(0x5e))
}

fn client_reads(
    client: &mut ClientHandshake,
    echo: &[u8],
    pin: &StaticKey,
) -> Result<(Established, Vec<u8>), HandshakeError> {
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(echo) else {
        return Err(HandshakeError::NotOurs);
    };
    client.on_start_echo(&echo, &hello(0xc1), |key| key == pin.public())
}

fn server_reads(
    server: &mut ServerHandshake,
    finish: &[u8],
) -> Result<Established, HandshakeError> {
    let Ok(ParsedPacket::Finish(finish)) = ParsedPacket::read(finish) else {
        return Err(HandshakeError::NotOurs);
    };
    server.on_finish(&finish)
}

/// Sends data from one end to the other.
fn talk(from: &mut Established, to: &mut Established, number: u64) {
    let mut datagram = vec![0; 200];
    let head = Sealer::header_len(number, None);
    let prelude = Prelude { stamp: 1, distance: 0 };
    let mut writer = FrameWriter::new(&mut datagram[head..200 - TAG_BYTES], prelude).unwrap();
    writer.last_stream(0, 0, true, b"hello").unwrap();
    let length = head + writer.len() + TAG_BYTES;
    datagram.truncate(length);
    from.sealer.seal(number, None, &mut datagram).unwrap();
    let opened = to.opener.open(&mut datagram).unwrap();
    assert_eq!(opened.number, number);
    let (_, frames) = Frames::read(opened.payload).unwrap();
    let frames: Vec<Frame> = frames.map(Result::unwrap).collect();
    assert_eq!(frames, [Frame::Stream { id: 0, offset: 0, fin: true, data: b"hello" }]);
}

fn agree(mut client: Established, mut server: Established) {
    assert_eq!(client.hash, server.hash);
    assert_eq!((&client.key, &server.key), (key(2).public(), key(1).public()));
    assert_eq!((client.peer.clone(), server.peer.clone()), (hello(0x5e), hello(0xc1)));
    talk(&mut client, &mut server, 0);
    talk(&mut server, &mut client, 0);
}

#[test]
fn both_ends_agree() {
    for suite in Suite::ALL {
        let mut client = opened(suite);
        let mut server = answered(client.start()).unwrap();
        let (at_client, finish) = client_reads(&mut client, server.start_echo(), &key(2)).unwrap();
        let at_server = server_reads(&mut server, &finish).unwrap();
        agree(at_client, at_server);
    }
}

#[test]
fn lost_finish_is_retransmitted_and_a_duplicate_ignored() {
    let mut client = opened(Suite::Aes256Gcm);
    let mut server = answered(client.start()).unwrap();
    let (mut at_client, finish) = client_reads(&mut client, server.start_echo(), &key(2)).unwrap();
    // The server has no keys yet, so it cannot open data sent with the lost FINISH.
    let mut early = vec![0; 60];
    at_client.sealer.seal(0, None, &mut early).unwrap();
    let mut at_server = server_reads(&mut server, &finish).unwrap();
    talk(&mut at_client, &mut at_server, 1);
    // Its repetition arrives as well.
    assert!(server_reads(&mut server, &finish).is_err());
    assert_eq!(at_server.opener.open(&mut early).unwrap().number, 0);
    talk(&mut at_client, &mut at_server, 2);
}

#[test]
fn a_repeated_start_has_the_same_answer() {
    let client = opened(Suite::Aes256Gcm);
    assert_eq!(
        answered(client.start()).unwrap().start_echo(),
        answered(client.start()).unwrap().start_echo()
    );
}

#[test]
fn server_with_wrong_key_cannot_read_or_stop_it() {
    let mut client = opened(Suite::Aes256Gcm);
    let start = client.start().to_vec();
    let Ok(ParsedPacket::Start(read)) = ParsedPacket::read(&start) else { panic!("no START") };
    let impostor = ServerHandshake::new(&read, &key(66), [6; 32], &hello(6)).unwrap();
    let refused = client_reads(&mut client, impostor.start_echo(), &key(2)).unwrap_err();
    assert_eq!(refused, HandshakeError::KeyRefused(*key(66).public()));
    let mut server = answered(&start).unwrap();
    let (at_client, finish) = client_reads(&mut client, server.start_echo(), &key(2)).unwrap();
    let at_server = server_reads(&mut server, &finish).unwrap();
    agree(at_client, at_server);
}

/// A server that refuses this client has its key, and can send a sealed CLOSE.
#[test]
fn a_client_is_refused_under_seal() {
    let mut client = opened(Suite::Aes256Gcm);
    let mut server = answered(client.start()).unwrap();
    let (mut at_client, finish) = client_reads(&mut client, server.start_echo(), &key(2)).unwrap();
    let mut at_server = server_reads(&mut server, &finish).unwrap();
    assert_eq!(&at_server.key, key(1).public());
    talk(&mut at_server, &mut at_client, 0);
    assert_eq!(server_reads(&mut server, &finish).unwrap_err(), HandshakeError::Finished);
    let again = client_reads(&mut client, server.start_echo(), &key(2)).unwrap_err();
    assert_eq!(again, HandshakeError::Finished);
}

/// A packet with any bit flipped is refused, or the two ends derive different keys. When the right packet follows, the
/// handshake continues.
#[test]
fn tampered_packets_are_refused_and_state_stays() {
    for suite in Suite::ALL {
        let mut client = opened(suite);
        let start = client.start().to_vec();
        let mut server = answered(&start).unwrap();
        let echo = server.start_echo().to_vec();
        let flipped = |packet: &[u8], bit: usize| {
            let mut packet = packet.to_vec();
            packet[bit / 8] ^= 1 << (bit % 8);
            packet
        };
        for bit in 0..8 * start.len() {
            // An endpoint would refuse most by their cookie; here even those that pass fail.
            let Ok(misled) = answered(&flipped(&start, bit)) else { continue };
            // X25519 ignores the highest bit of a key: the hash does not.
            let read = client_reads(&mut client, misled.start_echo(), &key(2));
            assert!(read.is_err(), "bit {bit} of START");
        }
        for bit in 0..8 * echo.len() {
            let read = client_reads(&mut client, &flipped(&echo, bit), &key(2));
            assert!(read.is_err(), "bit {bit} of START-ECHO");
        }
        let (at_client, finish) = client_reads(&mut client, &echo, &key(2)).unwrap();
        for bit in 0..8 * finish.len() {
            let read = server_reads(&mut server, &flipped(&finish, bit));
            assert!(read.is_err(), "bit {bit} of FINISH");
        }
        for length in 0..finish.len() {
            assert!(server_reads(&mut server, &finish[..length]).is_err());
        }
        let at_server = server_reads(&mut server, &finish).unwrap();
        agree(at_client, at_server);
    }
}

#[path = "keyless_tests.rs"]
mod keyless_tests;
