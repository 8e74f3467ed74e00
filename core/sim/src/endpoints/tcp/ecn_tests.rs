//! Scenarios with marks: the flags of packets and the reactions (RFC 3168 section 6.1).

use crate::endpoints::tcp::pair::Pair;
use crate::protocol::{FlowProtocol, Preset, TcpConfig};
use narrows_base::{Duration, Packet};

/// A round trip in which `marks` selects the ECN-capable packets to be marked.
fn round(p: &mut Pair, mut marks: impl FnMut(&Packet) -> bool) {
    p.after_ms(50);
    p.deliver_changed(|packet| {
        if packet.has(Packet::ECT) && marks(packet) {
            packet.flags |= Packet::CE;
        }
        true
    });
}
fn window(p: &Pair) -> f64 {
    p.sender.controller().send_limits().cwnd
}

#[test]
fn only_new_data_is_ecn_capable() {
    for (spec, capable) in [
        ("newreno(ecn=on)", true),
        ("newreno", false),
        ("jersey", true),
        ("jersey(ecn=off)", false),
    ] {
        let mut p = Pair::new(spec);
        assert!(p.wire.iter().all(|d| d.has(Packet::ECT) == capable), "{spec}");
        round(&mut p, |_| false);
        let lost = p.wire[0].seq;
        p.round(|d| d.seq != lost);
        let copy = p.wire.iter().find(|d| d.seq == lost).copied().unwrap();
        assert!(copy.has(Packet::RETRANSMISSION) && !copy.has(Packet::ECT), "{spec}");
        p.wire.clear();
        p.timeout();
        assert!(p.wire.iter().all(|d| !d.has(Packet::ECT)), "{spec}");
    }
}

#[test]
fn receiver_echoes_until_cwr() {
    let mut p = Pair::new("newreno(ecn=on)");
    let mut echoes = |seq: u64, flags: u8| {
        let mut packet = Packet { seq, flags: Packet::ECT | flags, ..p.wire[0] };
        packet.sack[0] = (960, 0);
        p.receiver.on_packet(p.now, &packet).unwrap().has(Packet::ECE)
    };
    assert!(!echoes(1, 0));
    assert!(echoes(2, Packet::CE));
    assert!(echoes(3, 0), "on every acknowledgement");
    assert!(echoes(9, 0), "duplicates too");
    assert!(!echoes(4, Packet::CWR));
    assert!(echoes(5, Packet::CWR | Packet::CE), "a new mark on the notice itself");
    assert!(!echoes(6, Packet::CWR));
    assert!(!echoes(2, Packet::CE), "what is below the window says nothing");
}

#[test]
fn receiver_without_ecn_sends_no_echo() {
    let mut p = Pair::new("newreno");
    let packet = Packet { flags: Packet::CE, ..p.wire[0] };
    assert!(!p.receiver.on_packet(p.now, &packet).unwrap().has(Packet::ECE));
}

/// Every packet of three windows is marked: one reduction per window, and one CWR.
#[test]
fn the_sender_reacts_once_per_window_and_says_so() {
    let mut p = Pair::new("newreno(ecn=on)");
    for _ in 0..3 {
        round(&mut p, |_| false);
    }
    assert_eq!((window(&p), p.wire.len()), (32.0, 32));
    round(&mut p, |_| true);
    // The first echo halves FlightSize 31; no packets leave before half of the flight is drained.
    assert_eq!((window(&p), p.sender.counters().marks), (15.5, 1));
    let notices: Vec<bool> = p.wire.iter().map(|d| d.has(Packet::CWR)).collect();
    assert_eq!(notices.iter().filter(|n| **n).count(), 1);
    assert!(notices[0], "on the first new packet");
    round(&mut p, |_| false);
    assert_eq!(p.sender.counters().marks, 1, "the notice ended the echo");
    let before = window(&p);
    assert!(before > 15.5, "and growth goes on: {before}");
    for reactions in 2..5 {
        round(&mut p, |_| true);
        assert_eq!(p.sender.counters().marks, reactions);
    }
    assert_eq!(p.sender.counters().retransmissions, 0);
}

#[test]
fn ack_with_an_echo_does_not_grow_the_window() {
    let mut p = Pair::new("newreno(ecn=on)");
    round(&mut p, |_| false);
    round(&mut p, |_| true);
    // 8 echoes: the first halves FlightSize 7, the others do not reduce it.
    assert_eq!(window(&p), 3.5);
}

#[test]
fn loss_and_marks_of_one_window_reduce_once() {
    let mut p = Pair::new("newreno(ecn=on)");
    for _ in 0..3 {
        round(&mut p, |_| false);
    }
    let lost = p.wire[0].seq;
    p.after_ms(50);
    // The acknowledgements that reveal the loss echo a mark, too, from the third on.
    let mut n = 0;
    p.deliver_changed(|d| {
        n += 1;
        d.flags |= if n >= 4 { Packet::CE } else { 0 };
        d.seq != lost
    });
    // Half of the 32 in flight, without the two of limited transmit.
    assert_eq!((window(&p), p.sender.counters().marks), (16.0, 0));
    let notice = p.wire.iter().find(|d| d.has(Packet::CWR)).copied().unwrap();
    assert!(!notice.has(Packet::RETRANSMISSION), "a new packet carries the notice");
    for _ in 0..3 {
        round(&mut p, |_| false);
    }
    assert_eq!(p.sender.counters().marks, 0);
}

/// RFC 3168 section 6.1.2: a window of one cannot be reduced, so the next packet waits.
#[test]
fn mark_at_a_window_of_one_waits_for_the_timer() {
    let mut p = Pair::new("newreno(ecn=on,initial-window=1)");
    assert_eq!(p.wire.len(), 1);
    round(&mut p, |_| true);
    assert_eq!((window(&p), p.sender.counters().marks), (1.0, 1));
    assert!(p.wire.is_empty(), "the next packet waits");
    let due = p.now + Duration::from_secs(1);
    p.now = due;
    p.tell(crate::endpoints::interface::SenderInput::Timeout);
    assert_eq!(p.wire.len(), 1, "for the minimum of the timer, 1 s");
    assert!(p.wire[0].has(Packet::CWR | Packet::ECT));
    assert_eq!(p.sender.counters().timeouts, 0, "nothing was lost");
    assert_eq!(window(&p), 1.0);
    round(&mut p, |_| false);
    assert_eq!(window(&p), 2.0, "and slow start goes on");
}

#[test]
fn receiver_stamps_take_the_place_of_the_third_block() {
    let mut p = Pair::new("jersey(estimator=new-jersey,recovery=sack,ecn=off)");
    let mut last = None;
    for seq in [2, 4, 6, 8] {
        p.after_ms(7);
        last = p.receiver.on_packet(p.now, &Packet { seq, ..p.wire[0] });
    }
    let ack = last.unwrap();
    assert_eq!(ack.sack[..2], [(7, 8), (5, 6)]);
    assert_eq!(ack.arrived(), p.now);
    // A clock value is never taken for a SACK block.
    let mut strange = ack;
    strange.set_arrived(narrows_base::Time::from_nanos((1 << 32) | 4));
    p.tell(crate::endpoints::interface::SenderInput::Packet(strange));
    assert_eq!(p.sender.acknowledged(), 1);
    assert!(p.sender.counters().retransmissions == 0);
}

/// A controller that exposes the arrival times that it gets.
#[derive(Clone, Default)]
struct Witness(Option<f64>);
impl narrows_congestion::Controller for Witness {
    fn on_ack(&mut self, ack: &narrows_congestion::Ack) {
        self.0 = ack.arrived.map(narrows_base::Time::as_secs_f64);
    }
    fn send_limits(&self) -> narrows_congestion::SendLimits {
        narrows_congestion::SendLimits::unpaced(4.0)
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("arrived", self.0.unwrap_or(-1.0));
    }
}

#[test]
fn the_controller_is_told_when_its_packet_arrived() {
    for (receiver_stamps, seen) in [(true, 0.1), (false, -1.0)] {
        let config = TcpConfig { receiver_stamps, ecn: true, ..TcpConfig::preset(Preset::Rfc) };
        let protocol =
            FlowProtocol::custom("witness", config, |_| Box::new(Witness::default())).unwrap();
        let mut p = Pair::of(&protocol);
        p.after_ms(50);
        let packet = p.wire[0];
        let ack = p.receiver.on_packet(p.now, &packet).unwrap();
        // The acknowledgement is delayed.
        p.after_ms(70);
        p.tell(crate::endpoints::interface::SenderInput::Packet(ack));
        let mut watched = 0.0;
        p.sender.controller().watch(&mut |_, x| watched = x);
        assert_eq!(watched, seen);
    }
}

#[test]
fn a_delayed_acknowledgement_tells_of_the_last_arrival() {
    let mut p = Pair::new("jersey(estimator=new-jersey,ecn=off,ack-every=2)");
    p.after_ms(10);
    assert!(p.receiver.on_packet(p.now, &Packet { seq: 1, ..p.wire[0] }).is_none());
    let arrived = p.now;
    let due = p.receiver.next_timeout();
    let ack = p.receiver.on_timeout(due).unwrap();
    assert_eq!(ack.arrived(), arrived, "when the packet came, not when the timer did");
}

/// TCP-Jersey's explicit retransmit: if the window was not reduced, NewReno's inflation and deflation keep the flight
/// at the window.
#[test]
fn recovery_without_reduction_keeps_flight_and_window() {
    let mut p = Pair::new("jersey");
    for _ in 0..3 {
        round(&mut p, |_| false);
    }
    let first = p.wire[0].seq;
    let mut lost = vec![first, first + 5, first + 11];
    // One hole per round trip.
    for n in 0..3 {
        p.round(|d| match lost.iter().position(|l| *l == d.seq) {
            Some(i) => {
                lost.remove(i);
                false
            }
            None => true,
        });
        assert_eq!(window(&p), 32.0, "round {n}");
        // New data for each duplicate, the hole, and the segments of limited transmit.
        assert!((28..=35).contains(&p.wire.len()), "round {n}: {}", p.wire.len());
        assert!(p.wire.iter().all(|d| !d.has(Packet::CWR)), "nothing was reduced");
    }
    p.round(|_| true);
    assert!(p.receiver.next_expected() > first + 11);
    assert_eq!(p.sender.counters().retransmissions, 3);
    assert!(window(&p) > 32.0, "and growth goes on");
    assert_eq!(p.sender.counters().timeouts, 0);
}

#[test]
fn mark_on_third_duplicate_reduces_despite_a_discounted_loss() {
    // Packets behind the lost one are marked, from this one on.
    for (marked_from, reduced) in [(usize::MAX, false), (3, true), (20, true)] {
        let mut p = Pair::new("jersey");
        for _ in 0..3 {
            round(&mut p, |_| false);
        }
        let before = window(&p);
        let lost = p.wire[0].seq;
        let mut n = 0;
        p.after_ms(50);
        p.deliver_changed(|d| {
            d.flags |= if n >= marked_from { Packet::CE } else { 0 };
            n += 1;
            d.seq != lost
        });
        assert_eq!(window(&p) < before, reduced, "{marked_from}: {}", window(&p));
        assert_eq!(p.sender.counters().marks, u64::from(reduced));
        let notices = p.wire.iter().filter(|d| d.has(Packet::CWR)).count();
        assert!(notices <= usize::from(reduced), "{marked_from}: {notices}");
        for _ in 0..4 {
            round(&mut p, |_| false);
        }
        assert_eq!(p.sender.counters().marks, u64::from(reduced), "once");
        assert_eq!(p.sender.counters().timeouts, 0);
    }
}
