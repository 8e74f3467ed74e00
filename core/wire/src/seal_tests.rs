use super::*;
use crate::path_keys::PathKeys;
use proptest::prelude::*;

const PAYLOAD: &[u8] = b"a prelude and some frames";

fn sealed(sealer: &mut Sealer, number: u64, acked: Option<u64>, payload: &[u8]) -> Vec<u8> {
    let head = Sealer::header_len(number, acked);
    let mut datagram = vec![0; head];
    datagram.extend_from_slice(payload);
    datagram.resize(head + payload.len() + TAG_BYTES, 0);
    sealer.seal(number, acked, &mut datagram).unwrap();
    datagram
}

/// Opens a copy.
fn open(opener: &mut Opener, datagram: &[u8]) -> Result<(u64, Vec<u8>), OpenError> {
    let mut copy = datagram.to_vec();
    opener.open(&mut copy).map(|o| (o.number, o.payload.to_vec()))
}

#[test]
fn every_flipped_bit_is_refused_and_state_stays() {
    for suite in Suite::ALL {
        for number in [0, 5_000_000_000] {
            let (mut sealer, mut opener) = pair(suite, 1);
            if number > 0 {
                let before = sealed(&mut sealer, number - 2, Some(number - 3), PAYLOAD);
                // A receiver without the numbers between could not recover the number.
                opener.replay.mark(number - 3);
                open(&mut opener, &before).unwrap();
            }
            let datagram = sealed(&mut sealer, number, number.checked_sub(2), PAYLOAD);
            let highest = opener.highest();
            for bit in 0..8 * datagram.len() {
                let mut forged = datagram.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert!(open(&mut opener, &forged).is_err(), "bit {bit}");
                assert_eq!(opener.highest(), highest);
            }
            for length in 0..datagram.len() {
                assert!(open(&mut opener, &datagram[..length]).is_err(), "{length} bytes");
            }
            assert_eq!(open(&mut opener, &datagram), Ok((number, PAYLOAD.to_vec())));
            assert_eq!(open(&mut opener, &datagram), Err(OpenError::Replayed));
        }
    }
}

#[test]
fn only_the_other_end_opens() {
    let (mut sealer, _) = pair(Suite::Aes256Gcm, 1);
    let (_, mut other) = pair(Suite::Aes256Gcm, 2);
    let (_, mut other_suite) = pair(Suite::ChaCha20Poly1305, 1);
    let datagram = sealed(&mut sealer, 0, None, PAYLOAD);
    assert_eq!(open(&mut other, &datagram), Err(OpenError::Forged));
    assert_eq!(open(&mut other_suite, &datagram), Err(OpenError::Forged));
    assert_eq!(other.forged(), 1);
}

#[test]
fn a_number_is_never_sealed_twice() {
    let (mut sealer, _) = pair(Suite::Aes256Gcm, 1);
    sealed(&mut sealer, 7, None, PAYLOAD);
    let mut datagram = [0; 60];
    for number in [0, 6, 7, MAX_PACKET_NUMBER + 1, u64::MAX] {
        assert_eq!(sealer.seal(number, None, &mut datagram), Err(SealError::Number));
    }
    for length in 0..8 + TAG_BYTES {
        assert_eq!(sealer.seal(8, None, &mut datagram[..length]), Err(SealError::TooShort));
    }
    assert_eq!(sealer.seal(8, None, &mut datagram), Ok(()));
}

/// A packet's tag is unpredictable without its random bits.
#[test]
fn random_bits_change_the_nonce_and_can_be_opened() {
    for suite in Suite::ALL {
        let nonces = (0..32).map(|bits| {
            let (mut sealer, mut opener) = pair(suite, 1);
            sealer.set_random(bits);
            let datagram = sealed(&mut sealer, 7, None, PAYLOAD);
            assert_eq!(open(&mut opener, &datagram), Ok((7, PAYLOAD.to_vec())));
            receipt_nonce(&datagram)
        });
        let different: std::collections::BTreeSet<u8> = nonces.collect();
        assert!(different.len() > 24, "{different:?}");
    }
}

#[test]
fn keys_change_only_when_the_peer_follows() {
    let (mut sealer, mut opener) = pair(Suite::Aes256Gcm, 1);
    let at = WINDOW;
    let early = sealed(&mut sealer, 0, None, PAYLOAD);
    open(&mut opener, &early).unwrap();
    sealer.acknowledged(0);
    assert!(!sealer.update(), "too soon to tell the phases apart");
    let late = sealed(&mut sealer, at - 2, None, PAYLOAD);
    let first = sealed(&mut sealer, at - 1, None, PAYLOAD);
    open(&mut opener, &first).unwrap();
    assert!(sealer.update());
    sealer.acknowledged(at + 5);
    sealer.acknowledged(at - 1);
    assert!(
        !sealer.confirmed,
        "what was not sent, or belongs to the phase before, counts for nothing"
    );
    let third = sealed(&mut sealer, at + 3, None, PAYLOAD);
    let fourth = sealed(&mut sealer, at + 4, None, PAYLOAD);
    assert_eq!(third[0] ^ first[0], 0x40);
    open(&mut opener, &fourth).unwrap();
    // Overtaken by the change of keys, but not lost; and those before it neither.
    open(&mut opener, &third).unwrap();
    open(&mut opener, &late).unwrap();
    assert_eq!(open(&mut opener, &late), Err(OpenError::Replayed));
    assert!(opener.previous.is_some());
    let far = sealed(&mut sealer, 2 * at + 4, None, PAYLOAD);
    open(&mut opener, &far).unwrap();
    assert!(opener.previous.is_none(), "kept although nothing of it can be opened");
    assert!(!sealer.update(), "not acknowledged");
    sealer.acknowledged(2 * at + 4);
    assert!(sealer.update());
    // The same phase bit as at first, other keys.
    let last = sealed(&mut sealer, 2 * at + 5, None, PAYLOAD);
    assert_eq!(last[0] & 0x40, first[0] & 0x40);
    open(&mut opener, &last).unwrap();
}

#[test]
fn a_key_seals_no_more_than_it_may() {
    let (mut sealer, mut opener) = pair(Suite::Aes256Gcm, 1);
    let datagram = sealed(&mut sealer, 0, None, PAYLOAD);
    open(&mut opener, &datagram).unwrap();
    sealer.sealed = MAX_KEY_PACKETS - 1;
    let last = sealed(&mut sealer, 1, None, PAYLOAD);
    let mut refused = [0; 60];
    assert_eq!(sealer.seal(2, None, &mut refused), Err(SealError::KeyUsedUp));
    open(&mut opener, &last).unwrap();
    sealer.acknowledged(1);
    assert_eq!(sealer.seal(WINDOW - 1, None, &mut refused), Err(SealError::KeyUsedUp));
    sealer.from = WINDOW;
    let next = sealed(&mut sealer, WINDOW, Some(1), PAYLOAD);
    assert_eq!(next[0] & 0x40, 0x40);
    open(&mut opener, &next).unwrap();
    opener.forged = MAX_FORGED;
    let after = sealed(&mut sealer, WINDOW + 1, Some(1), PAYLOAD);
    assert_eq!(open(&mut opener, &after), Err(OpenError::TooManyForged));
}

/// Ten thousand idle connections are kept at once.
#[test]
fn keys_of_a_connection_take_less_than_4_kb() {
    assert!(size_of::<Sealer>() + size_of::<Opener>() < 4096);
}

#[derive(Clone, Copy, Debug)]
enum Delivery {
    Now,
    Later(usize),
    Lost,
    Twice,
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop_oneof![
        4 => Just(Delivery::Now),
        2 => (1usize..60).prop_map(Delivery::Later),
        1 => Just(Delivery::Lost),
        1 => Just(Delivery::Twice),
    ]
}

proptest! {
    /// Over a path with loss, delay and duplication, and with key updates as often as permitted: every received packet
    /// is opened once, as it was sealed, and acknowledged updates never confuse the receiver.
    #[test]
    fn each_packet_is_opened_once(steps in prop::collection::vec((delivery(), 1u64..40, 0usize..200, any::<bool>()), 1..300), chacha in any::<bool>()) {
        let suite = if chacha { Suite::ChaCha20Poly1305 } else { Suite::Aes256Gcm };
        let (mut sealer, mut opener) = pair(suite, 3);
        let mut number = 0;
        let mut waiting: Vec<(usize, u64, Vec<u8>, Vec<u8>)> = Vec::new();
        let mut acked = None;
        for (at, (delivery, skip, length, update)) in steps.into_iter().enumerate() {
            number += skip;
            let payload: Vec<u8> = (0..length).map(|i| (i as u64 + number) as u8).collect();
            let datagram = sealed(&mut sealer, number, acked, &payload);
            match delivery {
                Delivery::Now => waiting.push((at, number, payload, datagram)),
                Delivery::Later(by) => waiting.push((at + by, number, payload, datagram)),
                Delivery::Lost => {}
                Delivery::Twice => {
                    waiting.push((at, number, payload.clone(), datagram.clone()));
                    waiting.push((at + 3, number, payload, datagram));
                }
            }
            let mut seen = Vec::new();
            for (_, number, payload, datagram) in waiting.extract_if(.., |(due, ..)| *due <= at) {
                let read = open(&mut opener, &datagram);
                if read == Err(OpenError::Replayed) {
                    prop_assert!(!opener.replay.is_new(number));
                } else {
                    prop_assert_eq!(read, Ok((number, payload)));
                    seen.push(number);
                }
            }
            for number in seen {
                sealer.acknowledged(number);
                acked = acked.max(Some(number));
            }
            if update {
                sealer.update();
            }
        }
    }

    /// The sealed bytes do not depend on where the payload's last bytes were stored.
    #[test]
    fn scattered_bytes_are_sealed_like_contiguous_ones(
        suite in prop::sample::select(Suite::ALL.to_vec()),
        payload in prop::collection::vec(any::<u8>(), 0..1500),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut one = pair(suite, 1).0;
        let mut other = pair(suite, 1).0;
        let whole = sealed(&mut one, 3, None, &payload);
        let (head, tail) = payload.split_at(cut.index(payload.len() + 1));
        let mut datagram = vec![0xaa; whole.len()];
        datagram[8..8 + head.len()].copy_from_slice(head);
        other.seal_with(3, None, &mut datagram, tail).unwrap();
        prop_assert_eq!(datagram, whole);
    }

    #[test]
    fn any_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let (_, mut opener) = pair(Suite::Aes256Gcm, 1);
        prop_assert!(opener.open(&mut bytes).is_err());
    }
}

/// A packet opens only as one of its path, and each path has its own numbers and key updates.
#[test]
fn packets_of_one_path_open_on_no_other() {
    for suite in Suite::ALL {
        let keys = |seed: u8| {
            let secret = |n: u8| Secret::first(suite, &[seed; 32], &[n; 32]);
            PathKeys { send: secret(1), receive: secret(2) }
        };
        let ours = keys(1);
        let same = keys(1);
        let theirs = PathKeys { send: same.receive, receive: same.send };
        assert!(ours.path(0).is_none(), "the handshake's own path");
        let mut openers: Vec<Opener> = vec![Opener::new(&theirs.receive, 0).unwrap()];
        openers.extend((1..8).map(|path| theirs.path(path).unwrap().opener().unwrap()));
        let id = ConnectionId(1);
        let mut datagrams =
            vec![sealed(&mut Sealer::new(id, &ours.send, 0).unwrap(), 5, None, PAYLOAD)];
        for path in 1..8 {
            let mut sealer = ours.path(path).unwrap().sealer(id).unwrap();
            datagrams.push(sealed(&mut sealer, 5, None, PAYLOAD));
        }
        for (path, opener) in openers.iter_mut().enumerate() {
            for (sent, datagram) in datagrams.iter().enumerate() {
                let opened = open(opener, datagram);
                let expected = match sent == path {
                    true => Ok((5, PAYLOAD.to_vec())),
                    false if sent > path => Err(OpenError::Replayed),
                    false => Err(OpenError::Forged),
                };
                assert_eq!(opened, expected, "a packet of path {sent} on {path}");
            }
        }
        // Even with one key for two paths, the nonces would differ.
        let secret = Secret::first(suite, &[3; 32], &[3; 32]);
        let datagram = sealed(&mut Sealer::new(id, &secret, 1).unwrap(), 5, None, PAYLOAD);
        let mut other = Opener::new(&secret, 2).unwrap();
        assert_eq!(open(&mut other, &datagram), Err(OpenError::Forged));
        assert!(open(&mut Opener::new(&secret, 1).unwrap(), &datagram).is_ok());
    }
}
