//! A receiver's acknowledgements.

use super::*;
use crate::protocol::Preset;

fn data(seq: u64) -> Packet {
    Packet {
        seq,
        stamp: Time::from_nanos(seq * 10),
        number: seq as u32,
        sack: [(if seq == 0 { 0 } else { 960 }, 0), (0, 0), (0, 0)],
        size: 1000,
        flags: if seq == 0 { Packet::SYN } else { 0 },
        ..Packet::default()
    }
}
/// In preset `linux`, 40 ms after the handshake.
fn opened() -> (TcpReceiver, Time) {
    let mut r = TcpReceiver::new(&TcpConfig::preset(Preset::Linux), 0, 1);
    r.on_packet(Time::ZERO, &data(0));
    (r, Time::ZERO + Duration::from_millis(40))
}
fn receiver(ack_every: u32) -> TcpReceiver {
    let config = TcpConfig { ack_every, ..TcpConfig::preset(Preset::Rfc) };
    TcpReceiver::new(&config, 0, 1)
}

#[test]
fn the_first_block_holds_the_segment_that_came_last() {
    let mut r = receiver(1);
    for s in 0..3 {
        r.on_packet(Time::ZERO, &data(s));
    }
    let ack = r.on_packet(Time::ZERO, &data(5)).unwrap();
    assert_eq!((ack.seq, ack.sack[0]), (3, (2, 3)));
    let ack = r.on_packet(Time::ZERO, &data(8)).unwrap();
    assert_eq!(ack.sack, [(5, 6), (2, 3), (0, 0)]);
    let ack = r.on_packet(Time::ZERO, &data(6)).unwrap();
    assert_eq!(ack.sack, [(2, 4), (5, 6), (0, 0)]);
    // The hole is filled: everything up to 7 is in order.
    r.on_packet(Time::ZERO, &data(3));
    let ack = r.on_packet(Time::ZERO, &data(4)).unwrap();
    assert_eq!((ack.seq, ack.sack[0]), (7, (1, 2)));
    assert_eq!(r.delivered(), 6 * 960);
}

#[test]
fn short_segments_are_counted_by_their_bytes_whatever_the_order() {
    let mut r = receiver(1);
    let mut short = data(2);
    short.sack[0].0 = 100;
    short.size = 140;
    for p in [data(0), short, data(3), data(1)] {
        r.on_packet(Time::ZERO, &p);
    }
    assert_eq!(r.delivered(), 960 + 100 + 960);
    // A segment has arrived out of order, but it is not delivered yet.
    short.seq = 6;
    r.on_packet(Time::ZERO, &data(5));
    r.on_packet(Time::ZERO, &short);
    assert_eq!((r.delivered(), r.received()), (960 + 100 + 960, 2 * 960 + 100 + 960 + 100));
}

#[test]
fn delayed_acks_answer_every_second_packet_or_after_a_while() {
    let mut r = receiver(2);
    assert!(r.on_packet(Time::ZERO, &data(0)).is_some(), "the opening is answered at once");
    assert!(r.on_packet(Time::ZERO, &data(1)).is_none());
    let ack = r.on_packet(Time::ZERO, &data(2)).unwrap();
    assert_eq!((ack.seq, ack.number), (3, 1), "the first of the two is echoed");
    assert!(r.on_packet(Time::from_nanos(5), &data(3)).is_none());
    let due = Time::from_nanos(5) + Duration::from_millis(100);
    assert_eq!(r.next_timeout(), due);
    assert_eq!(r.on_timeout(due).unwrap().seq, 4);
    assert!(r.next_timeout().is_never());
    assert!(r.on_packet(due, &data(9)).is_some(), "out of order: at once");
}

#[test]
fn linux_acknowledges_the_first_segments_singly_and_compresses_sacks() {
    let (mut r, now) = opened();
    let acked: Vec<bool> = (1..=20).map(|s| r.on_packet(now, &data(s)).is_some()).collect();
    assert!(acked[..16].iter().all(|a| *a), "sixteen after the opening");
    assert_eq!(acked[16..], [false, true, false, true]);
    let acked: Vec<bool> = (30..36).map(|s| r.on_packet(now, &data(s)).is_some()).collect();
    assert_eq!(acked, [true, true, true, false, false, false]);
    assert_eq!(r.next_timeout(), now + Duration::from_millis(1));
    let ack = r.on_timeout(r.next_timeout()).unwrap();
    assert_eq!((ack.seq, ack.sack[0]), (21, (9, 15)));
}

/// Every third segment is missing: each two are a block of their own, and an acknowledgement has room for three.
#[test]
fn an_acknowledgement_that_waits_leaves_before_a_block_is_displaced() {
    let (mut r, now) = opened();
    for s in 1..=20 {
        r.on_packet(now, &data(s));
    }
    let arrived: Vec<u64> = (22..80).filter(|s| s % 3 != 0).collect();
    let mut acks: Vec<Packet> =
        arrived.iter().filter_map(|s| r.on_packet(now, &data(*s))).collect();
    acks.extend(r.on_timeout(r.next_timeout()));
    let reported = |seq: u64| {
        let holds = |ack: &Packet, b: &(u64, u64)| (ack.seq + b.0..ack.seq + b.1).contains(&seq);
        let blocks = |ack: &Packet| ack.sack.map(|b| (u64::from(b.0), u64::from(b.1)));
        acks.iter().any(|ack| blocks(ack).iter().any(|b| holds(ack, b)))
    };
    assert!(arrived.iter().all(|s| reported(*s)), "{acks:?}");
    assert!(acks.len() < arrived.len(), "none waited");
}

#[test]
fn acks_wait_at_most_a_twentieth_of_the_rtt() {
    for (rtt_ms, wait_us) in [(4, 200), (40, 1000)] {
        let mut r = TcpReceiver::new(&TcpConfig::preset(Preset::Linux), 0, 1);
        r.on_packet(Time::ZERO, &data(0));
        let now = Time::ZERO + Duration::from_millis(rtt_ms);
        r.on_packet(now, &data(1));
        for s in 5..9 {
            r.on_packet(now, &data(s));
        }
        assert_eq!(r.next_timeout(), now + Duration::from_micros(wait_us));
    }
}

#[test]
fn damaged_packets_are_thrown_away() {
    let mut r = receiver(1);
    let mut p = data(0);
    p.flags |= Packet::CORRUPT;
    assert!(r.on_packet(Time::ZERO, &p).is_none());
    assert_eq!(r.next_expected(), 0);
}

/// RFC 2883 section 4.
#[test]
fn repeated_segment_is_reported_in_the_first_block() {
    let (mut r, now) = opened();
    for s in 1..4 {
        r.on_packet(now, &data(s));
    }
    let ack = r.on_packet(now, &data(1)).unwrap();
    assert_eq!(ack.sack, [(0_u32.wrapping_sub(3), 0_u32.wrapping_sub(2)), (0, 0), (0, 0)]);
    r.on_packet(now, &data(6));
    let ack = r.on_packet(now, &data(6)).unwrap();
    assert_eq!(ack.sack, [(2, 3), (2, 3), (0, 0)]);
    let ack = r.on_packet(now, &data(4)).unwrap();
    assert_eq!(ack.sack, [(1, 2), (0, 0), (0, 0)], "reported once");
}

#[test]
fn receiver_without_rack_reports_no_repeated_segment() {
    let mut r = receiver(1);
    for s in 0..3 {
        r.on_packet(Time::ZERO, &data(s));
    }
    let ack = r.on_packet(Time::ZERO, &data(1)).unwrap();
    assert_eq!((ack.seq, ack.sack), (3, [(0, 0); 3]));
}
