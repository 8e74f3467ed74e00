use super::*;
use crate::header::ConnectionId;
use crate::packet::ParsedPacket;
use crate::{Frame, Frames, Params};

const NONCE: Nonce = [0x11; 16];

fn key(n: u8) -> StaticKey {
    StaticKey::new([n; 32]).unwrap()
}
fn hello(id: u32) -> Hello {
    Hello { connection: ConnectionId(id), params: Params { max_data: 7, ..Params::default() } }
}
fn message(frames: Vec<u8>) -> EarlyMessage {
    EarlyMessage { age: Duration::from_millis(123_456), hello: hello(0xc1), frames }
}
fn client(suite: Suite, server: u8, seed: u8) -> EarlyHandshake {
    // STREAM 0 from offset 0 to its end, with a length.
    let frames = vec![0xe0, 3, b'G', b'E', b'T'];
    let token = Token([0xc0; 36]);
    let server = *key(server).public();
    EarlyHandshake::new(suite, NONCE, &token, &key(1), &server, [seed; 32], &message(frames))
        .unwrap()
}
fn request(start: &[u8], server: u8) -> Result<EarlyRequest, HandshakeError> {
    let Ok(ParsedPacket::EarlyStart(start)) = ParsedPacket::read(start) else {
        return Err(HandshakeError::NotOurs);
    };
    EarlyRequest::read(&start, &key(server), [4; 32])
}
fn answer(echo: &[u8]) -> Option<StartEcho<'_>> {
    match ParsedPacket::read(echo) {
        Ok(ParsedPacket::EarlyEcho(echo)) => Some(echo),
        _ => None,
    }
}
fn flipped(packet: &[u8], bit: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[bit / 8] ^= 1 << (bit % 8);
    packet
}
/// One packet from an end to the other.
fn talk(from: &mut Established, to: &mut Established) {
    let mut datagram = vec![0; 60];
    from.sealer.seal(0, None, &mut datagram).unwrap();
    assert_eq!(to.opener.open(&mut datagram).unwrap().number, 0);
}

#[test]
fn both_ends_agree_and_the_first_packet_has_the_frames() {
    for suite in Suite::ALL {
        let mut client = client(suite, 2, 3);
        assert_eq!(client.start().len(), EARLY_START_BYTES);
        let request = request(client.start(), 2).unwrap();
        assert_eq!((&request.key, &request.message.hello), (key(1).public(), &hello(0xc1)));
        assert_eq!(request.message.age, Duration::from_millis(123_456));
        let frames: Vec<_> = Frames::bare(&request.message.frames).map(Result::unwrap).collect();
        assert_eq!(frames[0], Frame::Stream { id: 0, offset: 0, fin: true, data: b"GET" });
        assert!(matches!(frames[1..], [Frame::Padding(_)]));
        let (mut at_server, echo) = request.accept(&hello(0x5e)).unwrap();
        assert!(echo.len() <= 3 * EARLY_START_BYTES);
        let mut at_client = client.on_early_echo(&answer(&echo).unwrap()).unwrap();
        assert_eq!(at_client.hash, at_server.hash);
        assert_eq!((&at_client.key, &at_client.peer), (key(2).public(), &hello(0x5e)));
        talk(&mut at_client, &mut at_server);
        talk(&mut at_server, &mut at_client);
        let again = client.on_early_echo(&answer(&echo).unwrap()).unwrap_err();
        assert_eq!(again, HandshakeError::Finished);
    }
}

/// A message for one key cannot be read with another key. There is no response to it.
#[test]
fn other_server_can_neither_read_nor_answer() {
    let mut meant = client(Suite::Aes256Gcm, 2, 3);
    assert_eq!(request(meant.start(), 66).unwrap_err(), HandshakeError::Forged);
    // An impostor with the client's key responds to its own message, under the client's nonce.
    let (_, echo) =
        request(client(Suite::Aes256Gcm, 66, 9).start(), 66).unwrap().accept(&hello(6)).unwrap();
    assert_eq!(meant.on_early_echo(&answer(&echo).unwrap()).unwrap_err(), HandshakeError::Forged);
    let (mut at_server, echo) = request(meant.start(), 2).unwrap().accept(&hello(0x5e)).unwrap();
    let mut at_client = meant.on_early_echo(&answer(&echo).unwrap()).unwrap();
    talk(&mut at_client, &mut at_server);
}

/// A packet with any bit changed, or truncated at any length, has no effect, and the valid packet is accepted
/// afterwards.
#[test]
fn damaged_packets_are_refused_and_state_stays() {
    for suite in Suite::ALL {
        let mut client = client(suite, 2, 3);
        let start = client.start().to_vec();
        for bit in (0..8 * start.len()).step_by(7) {
            // X25519 ignores the highest bit of a key, the transcript's hash does not.
            assert!(request(&flipped(&start, bit), 2).is_err(), "bit {bit} of EARLY-START");
        }
        for length in 0..start.len() {
            assert!(ParsedPacket::read(&start[..length]).is_err());
        }
        assert!(ParsedPacket::read(&[&start[..], &[0]].concat()).is_err());
        let (mut at_server, echo) = request(&start, 2).unwrap().accept(&hello(0x5e)).unwrap();
        for bit in (0..8 * echo.len()).step_by(3) {
            let changed = flipped(&echo, bit);
            let Some(changed) = answer(&changed) else { continue };
            assert!(client.on_early_echo(&changed).is_err(), "bit {bit} of EARLY-ECHO");
        }
        for length in 0..echo.len() {
            let Some(cut) = answer(&echo[..length]) else { continue };
            assert!(client.on_early_echo(&cut).is_err(), "{length} bytes of EARLY-ECHO");
        }
        let mut at_client = client.on_early_echo(&answer(&echo).unwrap()).unwrap();
        talk(&mut at_client, &mut at_server);
        talk(&mut at_server, &mut at_client);
    }
}

/// Each response to the same EARLY-START has its own keys, so a replayed copy reveals nothing.
#[test]
fn every_answer_has_its_own_keys() {
    let client = client(Suite::Aes256Gcm, 2, 3);
    let Ok(ParsedPacket::EarlyStart(start)) = ParsedPacket::read(client.start()) else {
        panic!("none")
    };
    let answered = |seed| {
        let request = EarlyRequest::read(&start, &key(2), [seed; 32]).unwrap();
        request.accept(&hello(0x5e)).unwrap().0.hash
    };
    assert_ne!(answered(4), answered(5));
}

#[test]
fn early_frames_are_accepted_only_if_they_fit() {
    let token = Token([0xc0; 36]);
    let server = *key(2).public();
    let mut long = message(vec![1; MAX_EARLY_FRAMES]);
    long.hello.params.controller = "x".repeat(128);
    long.hello.params.applications =
        crate::ApplicationProtocols::new(["a".repeat(60), "b".repeat(60)]).unwrap();
    let made = |message: &EarlyMessage| {
        EarlyHandshake::new(Suite::Aes256Gcm, NONCE, &token, &key(1), &server, [3; 32], message)
    };
    let handshake = made(&long).unwrap();
    assert!(request(handshake.start(), 2).unwrap().message.frames.starts_with(&long.frames));
    long.frames = vec![1; PAYLOAD_BYTES];
    assert_eq!(made(&long).unwrap_err(), HandshakeError::OwnParams);
}
