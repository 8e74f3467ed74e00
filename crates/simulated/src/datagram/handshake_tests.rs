use super::*;
use narrows_base::Duration;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn echo(stage: u64) -> Packet {
    Packet {
        seq: stage,
        stamp: Time::ZERO,
        number: 0,
        random_key: 0,
        sack: [(0, 0); 3],
        flow: 0,
        size: 0,
        hop: 0,
        flags: Packet::ACK | Packet::SYN,
    }
}

/// A path with a hinted rate and no other hints.
fn told() -> PathHints {
    PathHints { rate: Some(narrows_base::Rate::from_bps(1_000_000)), ..PathHints::default() }
}

/// If the rate is unknown, three larger SYNs measure it; the second of them suffices if the first is lost.
#[test]
fn larger_syns_ask_for_the_rate() {
    let mut o = Handshake::new(Opening::Cookie, &PathHints::default()).unwrap();
    o.open(at(0));
    assert_eq!(o.next_packet(at(0)).unwrap(), (0, 92));
    for _ in 0..3 {
        assert!(o.due() <= at(0));
        assert_eq!(o.next_packet(at(0)).unwrap(), (0, 528));
    }
    assert_eq!(o.due(), at(300));
    for ms in [40, 48, 56, 64] {
        assert!(o.on_answer(at(ms), &echo(0)).is_none());
    }
    assert_eq!(o.next_packet(at(64)).unwrap().0, 1);
    let sample = o.on_answer(at(110), &echo(1)).unwrap();
    assert_eq!(sample.rtt, Some(Duration::from_millis(40)));
    let dispersion = sample.dispersion.unwrap();
    assert_eq!((dispersion.bits, dispersion.took), (3.0 * 528.0 * 8.0, Duration::from_millis(24)));

    let mut o = Handshake::new(Opening::Cookie, &PathHints::default()).unwrap();
    o.open(at(0));
    for _ in 0..4 {
        o.next_packet(at(0)).unwrap();
    }
    // The answer to the second or a later one.
    o.on_answer(at(48), &echo(0));
    assert_eq!(o.next_packet(at(48)).unwrap().0, 1);
    assert!(o.on_answer(at(90), &echo(1)).unwrap().dispersion.is_none());
}

/// Two round trips, then data behind FINISH; the RTT is known by then.
#[test]
fn an_opening_takes_two_round_trips() {
    let mut o = Handshake::new(Opening::Cookie, &told()).unwrap();
    o.open(at(5));
    assert_eq!((o.due(), o.next_packet(at(5)).unwrap()), (at(5), (0, 92)));
    assert!(o.on_answer(at(45), &echo(0)).is_none());
    assert_eq!((o.due(), o.next_packet(at(45)).unwrap().0), (at(45), 1));
    assert!(!o.is_open());
    let sample = o.on_answer(at(85), &echo(1)).unwrap();
    assert_eq!(sample.rtt, Some(Duration::from_millis(40)));
    assert_eq!(o.next_packet(at(85)).unwrap().0, 2);
    assert!(o.is_open());
    o.on_report();
    assert!(o.due().is_never());
}

/// If START is not answered within three seconds, the handshake restarts with SYN, as over sockets.
#[test]
fn a_start_in_vain_begins_again() {
    let mut o = Handshake::new(Opening::Cookie, &told()).unwrap();
    o.open(at(0));
    o.next_packet(at(0)).unwrap();
    assert!(o.on_answer(at(40), &echo(0)).is_none());
    let mut places = Vec::new();
    while o.due() < at(5000) {
        let due = o.due();
        places.push((due.as_nanos() / 1_000_000, o.next_packet(due).unwrap().0));
    }
    let (starts, syns) = places.split_at(9);
    let times = |packets: &[(u64, _)]| packets.iter().map(|p| p.0).collect::<Vec<_>>();
    assert_eq!(times(starts), [40, 140, 240, 340, 540, 740, 1140, 1540, 2340]);
    assert_eq!(times(syns), [3140, 3440, 3740, 4040, 4640]);
    assert!(starts.iter().all(|p| p.1 == 1) && syns.iter().all(|p| p.1 == 0));
    assert!(o.on_answer(at(5000), &echo(1)).is_none(), "of a START that was given up");
}

/// A SYN without an answer is repeated, and then no answer to it gives an RTT sample.
#[test]
fn a_lost_syn_costs_300_ms_and_the_sample() {
    let mut o = Handshake::new(Opening::Cookie, &told()).unwrap();
    o.open(at(0));
    o.next_packet(at(0)).unwrap();
    assert_eq!(o.due(), at(300));
    o.next_packet(at(300)).unwrap();
    assert!(o.on_answer(at(340), &echo(0)).is_none());
    o.next_packet(at(340)).unwrap();
    // Another answer to SYN, and then START's.
    assert!(o.on_answer(at(350), &echo(0)).is_none());
    let sample = o.on_answer(at(380), &echo(1)).unwrap();
    assert_eq!(sample.rtt, Some(Duration::from_millis(40)));
    assert_eq!(o.sent(), 3);
}

/// With an address token START leaves at once; if it is not answered, the handshake restarts with SYN.
#[test]
fn with_a_token_an_opening_takes_one_round_trip() {
    let mut o = Handshake::new(Opening::Token, &PathHints::default()).unwrap();
    o.open(at(5));
    assert_eq!((o.due(), o.next_packet(at(5)).unwrap()), (at(5), (1, 118)));
    assert_eq!(o.due(), at(305), "nothing else leaves");
    let sample = o.on_answer(at(45), &echo(1)).unwrap();
    assert_eq!(sample.rtt, Some(Duration::from_millis(40)));
    assert!(sample.dispersion.is_none());
    assert_eq!(o.next_packet(at(45)).unwrap().0, 2);
    assert!(o.is_open());

    let mut o = Handshake::new(Opening::Token, &PathHints::default()).unwrap();
    o.open(at(0));
    let mut places = Vec::new();
    while o.due() < at(5000) {
        let due = o.due();
        places.push((due.as_nanos() / 1_000_000, o.next_packet(due).unwrap().0));
    }
    let first_syn = places.iter().position(|p| p.1 == 0).unwrap();
    assert_eq!((first_syn, places[first_syn].0), (6, 3100), "{places:?}");
}
