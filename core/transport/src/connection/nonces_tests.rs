use super::*;
use crate::connection::RECEIVER;
use crate::connection::pair_tests::{Net, Pair, config, keys};
use crate::connection::report_frame;
use crate::streams::Side;
use narrows_base::{Duration, Rate, Time};
use narrows_recovery::packet_receiver::{PacketReceiver, ReceivedPacket};
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, FrameWriter, Frames, Prelude, Sealer};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn sum(nonces: impl Iterator<Item = u8>) -> u8 {
    nonces.fold(0, |sum, nonce| sum ^ nonce)
}

proptest! {
    /// For packets in any order, with gaps of any size, the sum is that of the highest ones.
    #[test]
    fn receiver_sums_nonces_of_the_highest_arrivals(
        steps in prop::collection::vec((0u64..40, any::<u8>(), prop::option::weighted(0.1, 0u64..60)), 1..200),
        jump in 0u64..1 << 50,
    ) {
        let mut received = ReceivedNonces::default();
        let mut model = BTreeMap::new();
        let mut floor = 0;
        for (at, (number, nonce, forget)) in steps.into_iter().enumerate() {
            let number = number + at as u64 / 4 + if at > 100 { jump } else { 0 };
            if number >= floor && !model.contains_key(&number) {
                model.insert(number, nonce);
                received.insert(number, nonce);
            }
            if let Some(below) = forget {
                floor = floor.max(below);
                received.forget_below(below);
                model.retain(|n, _| *n >= below);
            }
            for count in 0..=model.len() {
                let expected = sum(model.values().rev().take(count).copied());
                prop_assert_eq!(received.sum_of_highest(count as u64), expected);
                let below = model.range(..number).rev().map(|(_, nonce)| *nonce);
                let count = count.min(below.clone().count());
                prop_assert_eq!(received.sum_below(number, count as u64), sum(below.take(count)));
            }
            let told: u64 = received.ranges().iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(told, model.len() as u64);
        }
    }

    /// Remembered ranges are checked correctly; others give `Forgotten`.
    #[test]
    fn sender_sums_nonces_of_any_remembered_ranges(
        nonces in prop::collection::vec(prop::option::weighted(0.95, any::<u8>()), 1..300),
        cuts in prop::collection::btree_set(0u64..300, 2..12), wrong in 1u8.., kept in 0u64..300,
    ) {
        let mut sent = SentNonces::new(&[1; 32]);
        for (number, nonce) in nonces.iter().enumerate() {
            // `None` is a skipped number.
            nonce.iter().for_each(|n| sent.on_sealed(number as u64, *n));
        }
        let end = sent.end();
        sent.forget_below(kept);
        let cuts: Vec<u64> = cuts.into_iter().map(|n| n.min(end)).collect();
        let ranges = || cuts.chunks_exact(2).map(|c| (c[0], c[1])).rev();
        let all = ranges().flat_map(|(from, to)| nonces[from as usize..to as usize].iter().flatten());
        let right = sum(all.copied());
        if cuts.first().is_some_and(|first| *first < kept.min(end)) {
            prop_assert_eq!(sent.check(ranges(), right), Proof::Forgotten);
        } else {
            prop_assert_eq!(sent.check(ranges(), right), Proof::Right);
            prop_assert_eq!(sent.check(ranges(), right ^ wrong), Proof::Wrong);
        }
    }
}

/// The numbers jump, or no outcome ever becomes known.
#[test]
fn memory_follows_arrivals_and_is_bounded() {
    let mut received = ReceivedNonces::default();
    for number in [0, 1 << 40, 1 << 60] {
        received.insert(number, 1);
        assert!(received.memory() < 400, "{}", received.memory());
    }
    for number in 0..200_000 {
        received.insert((1 << 61) + number, number as u8);
    }
    assert!(received.memory() <= 1 << 18, "{}", received.memory());
    assert!(received.nonces.len() > MAX_SENT_PACKETS);
    received.forget_below((1 << 61) + 199_999);
    assert!(received.memory() <= MIN_CAPACITY + 16, "{}", received.memory());

    let mut sent = SentNonces::new(&[1; 32]);
    for number in 0..1_000_000 {
        sent.on_sealed(number, 1);
        sent.forget(0, number + 1, number.saturating_sub(MAX_SENT_PACKETS as u64));
    }
    assert!(
        sent.sums.len() > 2 * MAX_SENT_PACKETS && sent.memory() <= 1 << 18,
        "{}",
        sent.memory()
    );
}

/// A sender of ACK-only packets gets no reports, and keeps few nonces.
#[test]
fn few_ack_only_packets_are_remembered() {
    let mut sent = SentNonces::new(&[1; 32]);
    for number in 0..1_000_000 {
        sent.on_sealed(number, 1);
        sent.forget(7, number + 1, number + 1);
        assert!(sent.memory() <= 8 * MAX_MUTE as usize, "{}", sent.memory());
    }
}

/// After a transfer of thousands of packets in either direction, little memory remains once one or two more packets are
/// acknowledged.
#[test]
fn an_idle_connection_keeps_little() {
    let net = Net {
        rate: Rate::from_bps(500_000_000),
        delay: Duration::from_millis(100),
        queue: 4_000_000,
        ..Net::good()
    };
    let mut pair = Pair::new(&config("rrtp+bbr"), net, 1);
    pair.transfer(Side::Client, 20_000_000, 60.0).unwrap();
    pair.transfer(Side::Server, 20_000_000, 60.0).unwrap();
    for _ in 0..4 {
        for side in [Side::Client, Side::Server] {
            pair.transfer(side, 10, 60.0).unwrap();
            pair.run_for(2.0);
        }
    }
    for side in [Side::Client, Side::Server] {
        let end = pair.end(side);
        assert!(end.path.sender.next_number() > 3000);
        let kept = end.path.nonces.memory();
        assert!(kept <= 2 * MIN_CAPACITY, "{side:?}: {kept}");
        let kept = end.path.receiver.memory() + end.path.receiver.received().memory();
        assert!(kept <= 2 * MIN_CAPACITY, "{side:?}: {kept}");
    }
}

/// A packet that arrives after its outcome was settled is not reported: its nonce may have been dropped.
#[test]
fn report_omits_packets_below_the_least_unacked() {
    let now = Time::from_secs_f64(1.0);
    let mut receiver = PacketReceiver::<ReceivedNonces>::new(&RECEIVER, None, None);
    for (number, least_unacked, nonce) in
        [(0, 0, 1), (10, 10, 2), (12, 10, 4), (3, 0, 8), (11, 0, 16)]
    {
        let came = ReceivedPacket {
            number,
            nonce,
            sent: now,
            least_unacked,
            bytes: 1228,
            marked: false,
            ack_eliciting: true,
            uncounted: 0,
        };
        receiver.on_packet(now, &came, Duration::ZERO);
    }
    let mut buffer = [0; 200];
    let mut writer = FrameWriter::new(&mut buffer, Prelude { stamp: 0, distance: 0 }).unwrap();
    assert!(report_frame::write(&mut receiver, now, &mut writer));
    let length = writer.len();
    let (_, mut frames) = Frames::read(&buffer[..length]).unwrap();
    let Some(Ok(Frame::Report(report))) = frames.next() else { panic!("no report") };
    assert_eq!(report.arrived().collect::<Vec<_>>(), [(10, 13)]);
    assert_eq!(report.nonce_sum, 2 ^ 4 ^ 16);
}

/// On a path with all impairments every relevant report can be checked and is right. No report ends a connection or is
/// ignored.
#[test]
fn every_report_of_an_honest_peer_proves_itself() {
    for seed in 0..40 {
        let net = Net {
            loss: 0.03,
            twice: 0.05,
            late: if seed % 2 == 0 { 0.1 } else { 0.0 },
            swapped: 0.1,
            damaged: 0.01,
            ..Net::good()
        };
        let mut pair = Pair::new(&config("rrtp+cubic"), net, seed);
        for side in [Side::Client, Side::Server, Side::Client] {
            pair.transfer(side, 300_000, 120.0).unwrap_or_else(|| panic!("seed {seed}"));
        }
        for side in [Side::Client, Side::Server] {
            assert_eq!(pair.end(side).stats().unproved, 0, "seed {seed}");
        }
    }
}

/// Probability of guessing a nonce: 1/256 for an unknown packet, 1/32 if all but the random header bits are known. Each
/// packet needs another guess.
#[test]
fn a_guess_is_seldom_right() {
    let known = config("rrtp");
    let (_, mut server) = keys(&known, &known);
    let (_, mut oracle) = keys(&known, &known);
    let mut nonces = SentNonces::new(&[7; 32]);
    const PACKETS: u64 = 100_000;
    let mut blind = 0;
    let mut knowing = 0;
    for number in 0..PACKETS {
        let acked = number.checked_sub(1);
        let seal = |sealer: &mut Sealer, bits| {
            sealer.set_random(bits);
            let mut datagram = [0; 60];
            sealer.seal(number, acked, &mut datagram).unwrap();
            receipt_nonce(&datagram)
        };
        let nonce = seal(&mut server.sealer, nonces.header_bits());
        blind += u64::from(nonce == 0);
        knowing += u64::from(nonce == seal(&mut oracle.sealer, 0));
    }
    let blind = PACKETS as f64 / blind as f64;
    let knowing = PACKETS as f64 / knowing as f64;
    assert!((230.0..290.0).contains(&blind), "one in {blind}");
    assert!((25.0..33.0).contains(&knowing), "one in {knowing}");
}
