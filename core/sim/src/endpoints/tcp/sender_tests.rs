//! Timed scenarios: inputs at given times, and the packets that must be sent.

use super::*;
use crate::endpoints::tcp::pair::{Pair, tcp_ends};
use crate::protocol::{FlowProtocol, Preset};
use narrows_base::{RandomKey, Spec};

#[test]
fn data_follow_the_opening_by_one_round_trip() {
    let p = Pair::new("reno-1990");
    assert_eq!(p.seqs(), [1, 2, 3, 4]);
    assert!(p.wire.iter().all(|p| p.size == 1000 && p.payload() == 960));
}

#[test]
fn slow_start_doubles_per_round() {
    let mut p = Pair::new("reno-1990");
    p.round(|_| true);
    assert_eq!(p.wire.len(), 8);
    p.round(|_| true);
    assert_eq!(p.wire.len(), 16);
}

#[test]
fn the_third_duplicate_repairs_and_an_advance_ends_it() {
    for kind in ["reno-1990", "newreno", "sack", "sack(recovery=sack1)"] {
        let mut p = Pair::new(kind);
        p.round(|_| true);
        p.round(|_| true); // 16 in flight: 13..=28
        let lost = p.wire[0].seq;
        p.round(|p| p.seq != lost);
        let repairs: Vec<u64> =
            p.wire.iter().filter(|p| p.has(Packet::RETRANSMISSION)).map(|p| p.seq).collect();
        assert_eq!(repairs, [lost], "{kind}");
        p.round(|_| true);
        assert!(p.receiver.next_expected() > 28, "{kind}");
        assert_eq!(p.sender.counters().timeouts, 0, "{kind}");
        assert!(!p.sender.recovery.in_recovery(), "{kind}");
    }
}

/// Two adjacent losses in a window of 16: the recovery of the first sends new data, and the duplicates for it indicate
/// the second. Since RFC 2582 the timer must find it; Reno of 1990 did not wait.
#[test]
fn second_fast_retransmit_in_a_window_is_optional() {
    for (kind, retransmitted) in [("reno-1990", 1), ("reno-1990(once-per-window=off)", 2)] {
        let mut p = Pair::new(kind);
        p.round(|_| true);
        p.round(|_| true);
        let lost = p.wire[0].seq;
        p.round(|p| p.seq != lost && p.seq != lost + 1);
        for _ in 0..3 {
            p.round(|_| true);
        }
        assert_eq!(p.sender.counters().retransmissions, retransmitted, "{kind}");
        assert_eq!(p.receiver.next_expected() > lost + 1, retransmitted == 2, "{kind}");
        assert_eq!(p.sender.counters().timeouts, 0, "{kind}");
    }
}

#[test]
fn sack_repairs_many_holes_per_rtt_and_newreno_one() {
    let rounds = |kind: &str| {
        let mut p = Pair::new(kind);
        for _ in 0..3 {
            p.round(|_| true);
        }
        let first = p.wire[0].seq;
        let mut lost: Vec<u64> = (0..5).map(|i| first + 4 * i).collect();
        let last = *lost.last().unwrap();
        let mut rounds = 0;
        while p.receiver.next_expected() <= last && rounds < 20 {
            p.round(|p| {
                let gone = lost.iter().position(|l| *l == p.seq);
                gone.map(|i| lost.remove(i)).is_none()
            });
            rounds += 1;
        }
        assert_eq!(p.sender.counters().timeouts, 0, "{kind}");
        assert_eq!(p.sender.counters().retransmissions, 5, "{kind}");
        rounds
    };
    assert!(rounds("sack") <= 3, "sack: {}", rounds("sack"));
    assert!(rounds("newreno") >= 5, "newreno: {}", rounds("newreno"));
}

/// With the receive window full, the pipe runs dry before blocks report a loss late in the window. The rescue
/// retransmission of the last segment does not leave that hole to the timer (RFC 6675 NextSeg rule 4).
#[test]
fn a_hole_that_shows_after_the_rescue_is_repaired() {
    let mut p = Pair::new("sack(receive-window=64,initial-window=64)");
    let lost = [p.wire[0].seq, p.wire[60].seq];
    let mut gone = 0;
    for _ in 0..4 {
        p.round(|p| {
            let lose = gone < 2 && lost.contains(&p.seq);
            gone += usize::from(lose);
            !lose
        });
    }
    assert!(p.receiver.next_expected() > lost[1], "{}", p.receiver.next_expected());
    assert_eq!(p.sender.counters().timeouts, 0);
}

/// Only the third packet of a window arrives, then the timer expires. RFC 6675 remembers it, ns-2's Sack1 retransmits
/// it.
#[test]
fn after_a_timeout_sack1_has_forgotten_the_blocks() {
    for (kind, second) in [("sack", 3), ("sack(recovery=sack1)", 2)] {
        let mut p = Pair::new(kind);
        p.round(|_| true);
        let first = p.wire[0].seq;
        p.round(|p| p.seq == first + 2);
        p.wire.clear();
        p.timeout();
        assert_eq!(p.seqs(), [first], "{kind}");
        p.round(|_| true);
        assert_eq!(p.seqs(), [first + 1, first + second], "{kind}");
    }
}

#[test]
fn tahoe_goes_back_to_the_hole_and_starts_anew() {
    let mut p = Pair::new("tahoe");
    p.round(|_| true);
    p.round(|_| true);
    let lost = p.wire[0].seq;
    p.round(|p| p.seq != lost);
    assert_eq!(p.sender.controller().send_limits().cwnd, 1.0);
    let again: Vec<u64> = p.seqs().into_iter().filter(|s| *s == lost).collect();
    assert_eq!(again.len(), 1);
}

#[test]
fn timeouts_back_off_exponentially_and_stop_at_the_ceiling() {
    let mut p = Pair::new("reno-1990(max-rto=10s)");
    p.wire.clear();
    let mut gaps = Vec::new();
    for _ in 0..6 {
        let before = p.now;
        p.timeout();
        gaps.push(p.now.since(before).as_secs_f64());
        assert_eq!(p.seqs(), [1], "the earliest segment, once");
        p.wire.clear();
    }
    let whole: Vec<u64> = gaps.iter().map(|g| g.round() as u64).collect();
    assert_eq!(whole, [1, 2, 4, 8, 10, 10]);
    assert_eq!(p.sender.counters().timeouts, 6);
}

#[test]
fn a_lost_opening_is_sent_again_and_raises_the_timeout() {
    let spec = Spec::parse("reno-1990").unwrap();
    let protocol = FlowProtocol::read(&spec, Preset::Rfc, 1000).unwrap();
    let (sender, receiver) = tcp_ends(&protocol, 0, RandomKey::from_seed(1));
    let mut p = Pair { sender, receiver, now: Time::ZERO, wire: Vec::new() };
    p.tell(SenderInput::Data(u64::MAX));
    p.tell(SenderInput::Open);
    p.wire.clear();
    p.timeout();
    assert_eq!(p.now, Time::ZERO + Duration::from_secs(1));
    assert_eq!(p.seqs(), [0]);
    p.round(|_| true);
    assert_eq!(p.sender.rto_due().since(p.now), Duration::from_secs(3), "RFC 6298 section 5.7");
}

#[test]
fn a_finite_transfer_ends_with_a_short_segment_and_stops() {
    let spec = Spec::parse("sack").unwrap();
    let protocol = FlowProtocol::read(&spec, Preset::Rfc, 1000).unwrap();
    let (sender, receiver) = tcp_ends(&protocol, 0, RandomKey::from_seed(1));
    let mut p = Pair { sender, receiver, now: Time::ZERO, wire: Vec::new() };
    p.tell(SenderInput::Open);
    p.tell(SenderInput::Data(2000));
    for _ in 0..4 {
        p.round(|_| true);
    }
    assert_eq!(p.receiver.delivered(), 2000);
    assert!(p.sender.is_idle());
    assert!(p.sender.rto_due().is_never());
    assert_eq!(p.sender.counters().sent, 4, "the opening, 960, 960 and 80 bytes");
}

#[test]
fn invalid_acks_change_no_state() {
    let mut p = Pair::new("sack");
    let mut ack = p.receiver.on_packet(p.now, &p.wire[0].clone()).unwrap();
    for seq in [0, 1_000_000, u64::MAX] {
        ack.seq = seq;
        p.tell(SenderInput::Packet(ack));
    }
    assert_eq!(p.sender.acknowledged(), 1);
    ack.seq = 1;
    ack.sack = [(5, 2), (u32::MAX, u32::MAX), (1, u32::MAX)];
    p.tell(SenderInput::Packet(ack));
    assert_eq!(p.sender.acknowledged(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]
    /// With losses, duplicates and reordering, the application's bytes arrive, each once, and the recovery's count of
    /// outstanding segments is at most the number in flight.
    #[test]
    fn everything_arrives_on_a_terrible_path(
        seed in 0u64..10_000,
        kind in 0usize..12,
        loss in 0.0f64..0.4,
    ) {
        let name = if kind == 11 { "sack(recovery=sack1)" } else { crate::protocol::TCP_PROTOCOLS.names()[kind] };
        let spec = Spec::parse(name).unwrap();
        let protocol = FlowProtocol::read(&spec, Preset::Rfc, 1000).unwrap();
        let (sender, receiver) = tcp_ends(&protocol, 0, RandomKey::from_seed(seed));
        let mut p = Pair { sender, receiver, now: Time::ZERO, wire: Vec::new() };
        let mut random = RandomKey::from_seed(seed).named("path").stream();
        p.tell(SenderInput::Open);
        p.tell(SenderInput::Data(200_000));
        let mut turns = 0;
        while !p.sender.is_idle() {
            turns += 1;
            proptest::prop_assert!(turns < 200_000, "{name} is stuck at {:?}", p.sender);
            p.now += Duration::from_micros(1 + random.bits() % 3000);
            if p.wire.is_empty() {
                p.sender.handle(p.now, SenderInput::Timeout);
                match p.sender.poll(p.now) {
                    SenderOutput::Send(s) => { p.wire.push(s); p.tell(SenderInput::Timeout); }
                    SenderOutput::Wait(t) => {
                        proptest::prop_assert!(!t.is_never(), "{name} waits for ever: {:?}", p.sender);
                        p.now = p.now.max(t);
                        p.tell(SenderInput::Timeout);
                    }
                }
                continue;
            }
            let i = (random.bits() % p.wire.len().min(4) as u64) as usize;
            let packet = p.wire.remove(i);
            if random.chance(loss) { continue; }
            if random.chance(0.05) { p.wire.push(packet); }
            if let Some(ack) = p.receiver.on_packet(p.now, &packet) {
                if !random.chance(loss) { p.tell(SenderInput::Packet(ack)); }
                if random.chance(0.05) { p.tell(SenderInput::Packet(ack)); }
            }
            let scoreboard = &p.sender.scoreboard;
            let copies: i64 = (scoreboard.una..scoreboard.max).map(|s| i64::from(scoreboard.get(s).copies)).sum();
            if let Some(pipe) = p.sender.recovery.pipe() {
                proptest::prop_assert_eq!(copies, pipe, "the pipe is the sum of copies");
            }
        }
        proptest::prop_assert_eq!(p.receiver.delivered(), 200_000);
    }
}

#[test]
fn duplicates_after_a_timeout_keep_retransmissions_flowing() {
    for (kind, sent) in [("reno-1990", 2), ("reno-1990(limited-transmit=off)", 1)] {
        let mut p = Pair::new(kind);
        p.round(|_| true);
        let oldest = p.wire[0].seq;
        p.wire.clear();
        p.timeout();
        assert_eq!(p.seqs(), [oldest], "{kind}");
        // A late copy of a segment above the hole: a duplicate.
        let late = Packet { seq: oldest + 4, flags: 0, ..p.wire[0] };
        let ack = p.receiver.on_packet(p.now, &late).unwrap();
        p.tell(SenderInput::Packet(ack));
        assert_eq!(p.wire.len(), sent, "{kind}");
        assert!(!p.sender.recovery.in_recovery(), "{kind}: one duplicate is no loss");
    }
}

#[test]
fn tahoe_ignores_duplicates_of_its_abandoned_flight() {
    let mut p = Pair::new("tahoe");
    for _ in 0..2 {
        p.round(|_| true);
    }
    let lost = p.wire[0].seq;
    p.round(|p| p.seq != lost);
    // Two by limited transmit, then the hole; the other twelve duplicates release no packets.
    assert_eq!(p.wire.iter().filter(|p| p.has(Packet::RETRANSMISSION)).count(), 1);
    assert_eq!(p.wire.len(), 3, "{:?}", p.seqs());
}

#[test]
fn vegas_sends_a_repair_again_when_it_is_late_too() {
    let mut p = Pair::new("vegas");
    for _ in 0..4 {
        p.round(|_| true);
    }
    let lost = p.wire[0].seq;
    let again = |p: &Pair| p.wire.iter().filter(|p| p.seq == lost).count();
    p.round(|p| p.seq != lost);
    assert_eq!(again(&p), 1, "the repair");
    p.wire.retain(|p| p.seq != lost);
    // New data still arrive and cause duplicates. The recovery's age shows that its retransmission was lost.
    p.after_ms(150);
    p.deliver(|_| true);
    assert_eq!(again(&p), 1, "the repair of the repair");
    assert_eq!(p.sender.counters().timeouts, 0);
}

/// A loss halves the flight without the segments of limited transmit (RFC 5681 section 3.2 step 2, RFC 6675 section 5
/// (4.2)).
#[test]
fn limited_transmit_leaves_the_cut_as_it_was() {
    for kind in ["reno-1990", "newreno", "sack"] {
        let mut p = Pair::new(kind);
        p.round(|_| true);
        p.round(|_| true);
        assert_eq!(p.wire.len(), 16, "{kind}");
        let lost = p.wire[0].seq;
        p.round(|p| p.seq != lost);
        assert_eq!(p.sender.controller().send_limits().ssthresh, Some(8.0), "{kind}");
    }
}

/// A receiver that acknowledges every second packet does not slow down slow start (RFC 3465).
#[test]
fn delayed_acks_do_not_slow_growth() {
    let window = |kind: &str| {
        let mut p = Pair::new(kind);
        for _ in 0..4 {
            p.round(|_| true);
        }
        p.sender.controller().send_limits().cwnd
    };
    for name in ["sack", "illinois", "westwood", "westwood+", "veno", "jersey", "cubic"] {
        let each = window(name);
        let second = window(&format!("{name}(ack-every=2)"));
        assert!(second > 0.9 * each, "{name}: {second} of {each}");
    }
}

/// A pair in preset `linux` with data without end, an acknowledgement for every packet, and windows grown to 40.
fn linux(name: &str) -> Pair {
    let spec = Spec::parse(&format!("{name}(ack-every=1)")).unwrap();
    let mut p = Pair::of(&FlowProtocol::read(&spec, Preset::Linux, 1500).unwrap());
    assert_eq!(p.wire.len(), 10);
    p.round(|_| true);
    p.round(|_| true);
    assert_eq!(p.wire.len(), 40);
    p
}

#[test]
fn rack_finds_a_lost_retransmission_without_a_timeout() {
    let mut p = linux("sack");
    let lost = p.wire[0].seq;
    p.round(|p| p.seq != lost);
    assert!(p.wire.iter().any(|p| p.seq == lost), "sent again");
    p.round(|p| p.seq != lost);
    assert!(p.wire.iter().any(|p| p.seq == lost), "and again");
    p.round(|_| true);
    assert!(p.receiver.next_expected() > lost);
    assert_eq!(p.sender.counters().timeouts, 0);
}

/// A probe after two round trips finds the segments behind a tail loss, before a timeout.
#[test]
fn a_probe_finds_a_lost_tail() {
    let mut p = linux("sack");
    let tail: Vec<u64> = p.seqs()[20..].to_vec();
    p.tell(SenderInput::Stop);
    p.round(|p| !tail.contains(&p.seq));
    let wait = p.sender.rto_due().since(p.now);
    assert!(wait < Duration::from_millis(120), "{wait}");
    p.wire.clear();
    p.timeout();
    assert_eq!(p.seqs(), [*tail.last().unwrap()]);
    // Slow start from one probe: 1 + 2 + 4 + ...
    for _ in 0..7 {
        p.round(|_| true);
    }
    assert_eq!(p.receiver.next_expected(), tail.last().unwrap() + 1);
    assert_eq!(p.sender.counters().timeouts, 0);
}

/// A recovery sends while the window decreases, instead of a pause and a burst (RFC 9937).
#[test]
fn a_recovery_reduces_in_proportion() {
    let mut p = linux("sack");
    let lost = p.wire[0].seq;
    p.round(|p| p.seq != lost);
    let sent = p.wire.len() as i64;
    assert!((sent - 21).abs() <= 3, "one for two of 39, and what two duplicates let out: {sent}");
    p.round(|_| true);
    let cwnd = p.sender.controller().send_limits().cwnd;
    assert!((20.0..=21.0).contains(&cwnd), "{cwnd}");
}

/// Originals that arrive after a timeout undo its reduction (RFC 5682).
#[test]
fn a_spurious_timeout_is_undone() {
    let mut p = linux("sack");
    let late = std::mem::take(&mut p.wire);
    p.timeout(); // the probe
    p.timeout();
    assert_eq!(p.sender.controller().send_limits().cwnd, 1.0);
    p.wire = late;
    p.deliver(|_| true);
    assert!(p.sender.controller().send_limits().cwnd >= 40.0);
    assert_eq!(p.sender.controller().send_limits().ssthresh, Some(f64::INFINITY));
}

/// Also if a later acknowledgement overtakes the report, which is the only one.
#[test]
fn duplicates_of_all_retransmissions_undo_the_reduction() {
    for overtaken in [false, true] {
        let mut p = linux("sack");
        let late = p.wire.remove(0);
        p.round(|_| true);
        p.round(|_| true);
        assert!(p.receiver.next_expected() > late.seq);
        assert!(p.sender.controller().send_limits().cwnd < 25.0);
        let report = p.receiver.on_packet(p.now, &late).unwrap();
        if overtaken {
            p.round(|_| true);
        }
        p.tell(SenderInput::Packet(report));
        let limits = p.sender.controller().send_limits();
        assert!(limits.cwnd >= 40.0, "{}", limits.cwnd);
        assert_eq!(limits.ssthresh, Some(f64::INFINITY));
    }
}

/// A link that duplicates packets reveals no spurious retransmission.
#[test]
fn duplicates_without_retransmissions_are_not_delivered_segments() {
    let mut p = linux("sack");
    let copy = p.wire[0];
    p.round(|_| true);
    let before = p.sender.delivery.delivered();
    let report = p.receiver.on_packet(p.now, &copy).unwrap();
    p.tell(SenderInput::Packet(report));
    assert_eq!(p.sender.delivery.delivered(), before);
}

/// A retransmitted segment is timed by its time stamp, which counts milliseconds (RFC 7323). The handshake's RTT counts
/// for the path, but not for controllers.
#[test]
fn linux_times_a_repaired_segment_in_milliseconds() {
    let mut p = linux("sack");
    let round = |p: &mut Pair, tenths: u64, lost: u64| {
        p.now += Duration::from_micros(100 * tenths);
        p.deliver(|p| p.seq != lost);
    };
    let least = |p: &Pair| (p.sender.rtt.min(), p.sender.path_min_rtt());
    p.sender.rtt.forget_min();
    round(&mut p, 509, u64::MAX);
    let whole = Duration::from_micros(50_900);
    assert_eq!(least(&p), (whole, Duration::from_millis(50)));
    let lost = p.wire[0].seq;
    round(&mut p, 509, lost);
    // Retransmitted at 251.8 ms; the last acknowledgement arrived a millisecond later.
    p.now += Duration::from_micros(49_100);
    p.deliver(|p| p.seq == lost);
    assert_eq!(least(&p).0, Duration::from_millis(50), "of 50.1 ms");
}

/// The buffers of Linux hold 2.75 MB, whatever the window.
#[test]
fn linux_has_no_more_in_flight_than_its_buffers_hold() {
    for (spec, flight) in [("", 1899), (",receive-window=100", 100)] {
        let spec = Spec::parse(&format!("sack(initial-window=5000{spec})")).unwrap();
        let p = Pair::of(&FlowProtocol::read(&spec, Preset::Linux, 1500).unwrap());
        assert_eq!(p.wire.len(), flight);
    }
}

/// Linux paces from the tenth segment on.
#[test]
fn linux_does_not_pace_the_first_window() {
    let protocol =
        |spec: &str| FlowProtocol::read(&Spec::parse(spec).unwrap(), Preset::Linux, 1500).unwrap();
    assert_eq!(Pair::of(&protocol("bbr")).wire.len(), 10);
    let more = Pair::of(&protocol("bbr(initial-window=20)")).wire.len();
    assert!((10..=12).contains(&more), "{more}: then a burst of two every few milliseconds");
}

/// A full receive window does not make rate samples application-limited: they show BBR that the path is full.
#[test]
fn a_full_receive_window_limits_no_rate_sample() {
    let spec = Spec::parse("bbr(receive-window=8)").unwrap();
    let p = Pair::of(&FlowProtocol::read(&spec, Preset::Linux, 1500).unwrap());
    assert_eq!((p.wire.len(), p.sender.delivery.app_limited_until), (8, 0));
}
