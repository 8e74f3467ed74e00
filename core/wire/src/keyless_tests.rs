//! Ends without a private key: their keys have low order.

use super::*;
use crate::keyless::{KeylessClient, WeakKey, builder};
use crate::noise::{PublicKey, is_low_order};
use crate::packet::MAX_LONG_BYTES;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};

/// Every encoding of a point of low order: the first bytes of 0, 1, p - 1, p and p + 1, the two of order 8; each also
/// with the highest bit.
fn points() -> Vec<PublicKey> {
    let padded = |first: u8, rest: u8, last: u8| {
        let mut key = [rest; 32];
        key[0] = first;
        key[31] = last;
        key
    };
    let of_order_8 = |hex: &str| {
        let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(byte)
    };
    let mut all = vec![
        padded(0, 0, 0),
        padded(1, 0, 0),
        padded(0xec, 0xff, 0x7f),
        padded(0xed, 0xff, 0x7f),
        padded(0xee, 0xff, 0x7f),
        of_order_8("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        of_order_8("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    ];
    for at in 0..all.len() {
        let mut high = all[at];
        high[31] |= 0x80;
        all.push(high);
    }
    all
}

#[test]
fn points_of_low_order_are_those_with_shared_secret_zero() {
    let secret = |point: &PublicKey| {
        let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).unwrap();
        dh.set(&[7; 32]);
        let mut out = [1; 32];
        dh.dh(point, &mut out).unwrap();
        out
    };
    let all = points();
    assert_eq!(all.len(), 14);
    for point in &all {
        assert_eq!(secret(point), [0; 32], "{point:02x?}");
        assert!(is_low_order(point), "{point:02x?}");
    }
    for lowest in 0..=255 {
        for (rest, last) in [(0, 0), (0xff, 0x7f), (0xff, 0xff)] {
            let mut other = [rest; 32];
            other[0] = lowest;
            other[31] = last;
            assert_eq!(is_low_order(&other), secret(&other) == [0; 32], "{other:02x?}");
        }
    }
}

#[test]
fn client_key_of_low_order_ends_handshake() {
    for weak in [WeakKey::Static, WeakKey::Ephemeral] {
        for point in points() {
            let mut client =
                KeylessClient::new(NONCE, &crate::Cookie([0; 36]), weak, point).unwrap();
            let server = answered(client.start());
            if weak == WeakKey::Ephemeral {
                assert_eq!(server.unwrap_err(), HandshakeError::LowOrderKey);
                continue;
            }
            let mut server = server.unwrap();
            let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(server.start_echo()) else {
                panic!("no echo")
            };
            let finish = client.finish(&echo, &hello(0xc1)).unwrap();
            let e = server_reads(&mut server, &finish).unwrap_err();
            assert_eq!(e, HandshakeError::LowOrderKey, "{point:02x?}");
        }
    }
}

/// The client expects the key that the impostor claims.
#[test]
fn server_key_of_low_order_ends_no_attempt() {
    for weak in [WeakKey::Static, WeakKey::Ephemeral] {
        for point in points() {
            let mut client = opened(Suite::Aes256Gcm);
            let start = client.start().to_vec();
            let Ok(ParsedPacket::Start(read)) = ParsedPacket::read(&start) else {
                panic!("no START")
            };
            let mut buffer = [0; MAX_LONG_BYTES];
            let made = builder(Suite::Aes256Gcm, read.clear, weak, point).unwrap();
            let mut impostor = made.build_responder().unwrap();
            impostor.read_message(read.noise, &mut buffer).unwrap();
            let payload = crate::noise::hello_bytes(&hello(6)).unwrap();
            let length = impostor.write_message(&payload, &mut buffer).unwrap();
            let echo = packet::start_echo(&NONCE, &buffer[..length]);
            let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(&echo) else {
                panic!("no echo")
            };
            let e = client.on_start_echo(&echo, &hello(0xc1), |_| true).unwrap_err();
            assert_eq!(e, HandshakeError::LowOrderKey, "{weak:?} {point:02x?}");
            // The right server may still answer.
            let mut server = answered(&start).unwrap();
            let read = client_reads(&mut client, server.start_echo(), &key(2));
            let (at_client, finish) = read.unwrap();
            agree(at_client, server_reads(&mut server, &finish).unwrap());
        }
    }
}
