use super::*;
use narrows_base::Duration;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn echo(stage: u64) -> Packet {
    Packet { seq: stage, size: 0, flags: Packet::ACK | Packet::SYN, ..Packet::default() }
}

/// A path with a hinted rate and no other hints.
fn hinted() -> PathHints {
    PathHints { rate: Some(narrows_base::Rate::from_bps(1_000_000)), ..PathHints::default() }
}

/// If the rate is unknown, three larger SYNs measure it. Their replies may arrive after START-ECHO.
#[test]
fn larger_syns_ask_for_the_rate() {
    let mut o = Handshake::new(OpeningExchange::Full, &PathHints::default()).unwrap();
    o.open(at(0));
    assert_eq!(o.next_packet(at(0)).unwrap(), (1, 118));
    for _ in 0..3 {
        assert!(o.due() <= at(0));
        assert_eq!(o.next_packet(at(0)).unwrap(), (0, 528));
    }
    assert_eq!(o.due(), at(300));
    assert_eq!(
        o.on_answer(at(40), &echo(1)),
        (Some(HandshakeRtt::Is(Duration::from_millis(40))), None)
    );
    assert_eq!(o.next_packet(at(40)).unwrap().0, 2);
    for ms in [48, 56] {
        assert_eq!(o.on_answer(at(ms), &echo(0)), (None, None));
    }
    let dispersion = o.on_answer(at(64), &echo(0)).1.unwrap();
    assert_eq!((dispersion.bits, dispersion.took), (2.0 * 528.0 * 8.0, Duration::from_millis(16)));

    // They may also arrive before it. A lost one leaves the rate unknown.
    for answered in [2, 3] {
        let mut o = Handshake::new(OpeningExchange::Full, &PathHints::default()).unwrap();
        o.open(at(0));
        for _ in 0..4 {
            o.next_packet(at(0)).unwrap();
        }
        for ms in 0..answered {
            assert_eq!(o.on_answer(at(40 + ms), &echo(0)), (None, None));
        }
        assert_eq!(o.on_answer(at(50), &echo(1)).1.is_some(), answered == 3);
    }
}

/// One round trip, then data behind FINISH; the RTT is known by then.
#[test]
fn an_opening_takes_one_round_trip() {
    let mut o = Handshake::new(OpeningExchange::Full, &hinted()).unwrap();
    o.open(at(5));
    assert_eq!((o.due(), o.next_packet(at(5)).unwrap()), (at(5), (1, 118)));
    assert!(!o.is_open());
    assert_eq!(
        o.on_answer(at(45), &echo(1)),
        (Some(HandshakeRtt::Is(Duration::from_millis(40))), None)
    );
    assert_eq!(o.next_packet(at(45)).unwrap().0, 2);
    assert!(o.is_open());
    o.on_report();
    assert!(o.due().is_never());
}

/// If START is not answered within three seconds, the handshake restarts with SYN, as over sockets.
#[test]
fn a_start_in_vain_begins_again() {
    let mut o = Handshake::new(OpeningExchange::Full, &hinted()).unwrap();
    o.open(at(0));
    let mut places = Vec::new();
    while o.due() < at(4000) {
        let due = o.due();
        places.push((due.as_nanos() / 1_000_000, o.next_packet(due).unwrap().0));
    }
    let starts: Vec<u64> = places.iter().filter(|p| p.1 == 1).map(|p| p.0).collect();
    let syns: Vec<u64> = places.iter().filter(|p| p.1 == 0).map(|p| p.0).collect();
    assert_eq!(starts, [0, 300, 600, 900, 1500, 2100]);
    assert_eq!(syns, [3300, 3900]);
    // The cookie of SYN-ECHO, then START.
    assert_eq!(o.on_answer(at(4010), &echo(0)), (None, None));
    assert_eq!(o.next_packet(at(4010)).unwrap().0, 1);
    let rtt = HandshakeRtt::Is(Duration::from_millis(40));
    assert_eq!(o.on_answer(at(4050), &echo(1)).0, Some(rtt));
}

/// On a path of seconds the reply to START arrives while SYN-ECHO is awaited.
#[test]
fn start_echo_after_the_restart_opens_without_sample() {
    let mut o = Handshake::new(OpeningExchange::Full, &hinted()).unwrap();
    o.open(at(0));
    while o.due() < at(4000) {
        o.next_packet(o.due()).unwrap();
    }
    let rtt = HandshakeRtt::AtMost(Duration::from_millis(4000));
    assert_eq!(o.on_answer(at(4000), &echo(1)), (Some(rtt), None));
    assert_eq!(o.next_packet(at(4000)).unwrap().0, 2);
    assert!(o.is_open());
}

/// A START without an answer is repeated, and then no answer to it gives an RTT sample.
#[test]
fn a_lost_start_costs_300_ms_and_the_sample() {
    let mut o = Handshake::new(OpeningExchange::Full, &hinted()).unwrap();
    o.open(at(0));
    o.next_packet(at(0)).unwrap();
    assert_eq!(o.due(), at(300));
    o.next_packet(at(300)).unwrap();
    let rtt = HandshakeRtt::AtMost(Duration::from_millis(340));
    assert_eq!(o.on_answer(at(340), &echo(1)), (Some(rtt), None));
    assert_eq!(o.next_packet(at(340)).unwrap().0, 2);
    assert_eq!(o.sent(), 3);
}

/// With an address token the rate is not probed.
#[test]
fn with_a_token_the_rate_is_not_asked_for() {
    let mut o = Handshake::new(OpeningExchange::Token, &PathHints::default()).unwrap();
    o.open(at(5));
    assert_eq!((o.due(), o.next_packet(at(5)).unwrap()), (at(5), (1, 118)));
    assert_eq!(o.due(), at(305), "nothing else leaves");
}
