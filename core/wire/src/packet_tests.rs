use super::*;
use proptest::prelude::*;

/// One of each packet.
fn examples() -> Vec<Vec<u8>> {
    let nonce = [7; 16];
    let cookie = Cookie([9; COOKIE_BYTES]);
    let mut start = start_clear(Suite::Aes256Gcm, &nonce, &cookie);
    start.extend_from_slice(&[3; 32]);
    let header = ShortHeader::new(ConnectionId(5), true, 1 << 30, None);
    let mut short = header.bytes()[..header.len()].to_vec();
    short.extend_from_slice(&[1; 40]);
    vec![
        syn(VERSION, &nonce),
        syn_echo(&nonce, &cookie),
        start,
        start_echo(&nonce, &[1; 120]),
        finish(ConnectionId(0xdead_beef), &[1; 90]),
        version(77, &nonce, &[VERSION, 1, 2]),
        reset(&[4; 16]),
        busy(&nonce),
        short,
    ]
}

#[test]
fn lengths_are_as_documented() {
    let lengths: Vec<usize> = examples().iter().map(Vec::len).collect();
    assert_eq!(lengths, [64, 57, 90, 141, 99, 34, 21, 21, 49]);
    assert_eq!((SYN_ECHO_BYTES, START_BYTES, RESET_BYTES, START_CLEAR_BYTES), (57, 90, 21, 58));
    assert_eq!(BUSY_BYTES, 21);
}

/// A forged source address must not turn the server into an amplifier.
#[test]
fn no_answer_to_a_syn_is_longer_than_the_syn() {
    let nonce = [1; 16];
    let cookie = Cookie([0; COOKIE_BYTES]);
    assert!(syn_echo(&nonce, &cookie).len() <= SYN_BYTES);
    assert!(version(9, &nonce, &[0; 100]).len() <= SYN_BYTES);
    let syn = syn(VERSION, &nonce);
    assert!(ParsedPacket::read(&syn).is_ok());
    for length in 0..SYN_BYTES {
        assert!(ParsedPacket::read(&syn[..length]).is_err(), "a SYN of {length} bytes");
    }
    // A RESET responds to data packets; even the shortest is longer.
    const { assert!(RESET_BYTES < 8 + TAG_BYTES) };
    // A BUSY responds to a START.
    const { assert!(BUSY_BYTES < START_BYTES) };
}

#[test]
fn every_prefix_and_corrupt_byte_parses_or_fails() {
    for packet in examples() {
        assert!(ParsedPacket::read(&packet).is_ok(), "{packet:02x?}");
        for length in 0..packet.len() {
            let _ = ParsedPacket::read(&packet[..length]);
        }
        for at in 0..packet.len() {
            for byte in 0..=255 {
                let mut corrupt = packet.clone();
                corrupt[at] = byte;
                if let Ok(ParsedPacket::Version { spoken, .. }) = ParsedPacket::read(&corrupt) {
                    assert!(spoken.iter().count() <= MAX_VERSIONS);
                }
            }
        }
    }
}

#[test]
fn other_versions_are_read_only_in_syn_or_start() {
    let strange = 0x0a0b_0c0d;
    let mut packet = syn(strange, &[2; 16]);
    packet.extend_from_slice(&[0xff; 1400]);
    assert_eq!(
        ParsedPacket::read(&packet),
        Ok(ParsedPacket::Syn { version: strange, nonce: [2; 16] })
    );
    for (kind, mut packet) in examples().into_iter().enumerate() {
        packet[4] ^= 1;
        let read = ParsedPacket::read(&packet);
        // SYN, START and VERSION name versions; a data packet does not.
        assert_eq!(read.is_ok(), [0, 2, 5, 8].contains(&kind), "{kind}: {read:?}");
    }
}

proptest! {
    #[test]
    fn packets_come_back(
        nonce in any::<[u8; 16]>(), cookie in prop::array::uniform32(any::<u8>()), tail in any::<[u8; 4]>(),
        noise in prop::collection::vec(any::<u8>(), 96..900), id in any::<u32>(),
        versions in prop::collection::vec(any::<u32>(), 1..9), chacha in any::<bool>(),
    ) {
        let mut bytes = [0; COOKIE_BYTES];
        bytes[..32].copy_from_slice(&cookie);
        bytes[32..].copy_from_slice(&tail);
        let cookie = Cookie(bytes);
        let suite = if chacha { Suite::ChaCha20Poly1305 } else { Suite::Aes256Gcm };
        let packet = syn(id, &nonce);
        prop_assert_eq!(ParsedPacket::read(&packet), Ok(ParsedPacket::Syn { version: id, nonce }));
        let packet = syn_echo(&nonce, &cookie);
        prop_assert_eq!(ParsedPacket::read(&packet), Ok(ParsedPacket::SynEcho { nonce, cookie }));
        let mut start = start_clear(suite, &nonce, &cookie);
        start.extend_from_slice(&noise[..32]);
        let expected = Start { suite, nonce, cookie, clear: &start[..58], noise: &noise[..32] };
        prop_assert_eq!(ParsedPacket::read(&start), Ok(ParsedPacket::Start(expected)));
        let echo = start_echo(&nonce, &noise);
        prop_assert_eq!(ParsedPacket::read(&echo), Ok(ParsedPacket::StartEcho(StartEcho { nonce, noise: &noise })));
        let connection = ConnectionId(id);
        let last = finish(connection, &noise);
        prop_assert_eq!(ParsedPacket::read(&last), Ok(ParsedPacket::Finish(Finish { connection, noise: &noise })));
        let packet = reset(&nonce);
        prop_assert_eq!(ParsedPacket::read(&packet), Ok(ParsedPacket::Reset { token: nonce }));
        let packet = busy(&nonce);
        prop_assert_eq!(ParsedPacket::read(&packet), Ok(ParsedPacket::Busy { nonce }));
        let list = version(id, &nonce, &versions);
        match ParsedPacket::read(&list) {
            Ok(ParsedPacket::Version { refused, nonce: n, spoken }) => {
                prop_assert_eq!((refused, n), (id, nonce));
                prop_assert_eq!(spoken.iter().collect::<Vec<_>>(), versions);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn any_bytes_are_something_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..1300), kind in 0x80u8..0x90) {
        let _ = ParsedPacket::read(&bytes);
        let mut long = vec![kind];
        long.extend_from_slice(&VERSION.to_be_bytes());
        long.extend_from_slice(&bytes);
        let _ = ParsedPacket::read(&long);
    }
}
