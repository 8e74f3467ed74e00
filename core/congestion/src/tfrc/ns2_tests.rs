//! Timed scenarios of ns-2's sender side: RTT 100 ms, packets of 1000 bytes.

use super::*;
use crate::fuzz::report;
use narrows_base::{Settings, Spec};

struct Scenario {
    sender: Ns2TfrcSender,
    now: Time,
}

fn scenario(text: &str) -> Scenario {
    let spec = Spec::parse(text).unwrap();
    let settings = Settings::read(&spec, crate::tfrc::DESCRIPTOR.params).unwrap();
    let options = Options::read(&settings, &crate::Environment::default());
    assert!(options.ns2);
    let mut s = Scenario { sender: Ns2TfrcSender::new(&options), now: Time::ZERO };
    s.send();
    s
}

impl Scenario {
    fn send(&mut self) {
        self.sender.on_sent(&Sent::new(self.now, 1000, 1));
    }
    fn report(&mut self, p: f64, recv: f64, lost: f64, rtt_ms: u64) {
        self.now += Duration::from_millis(101);
        self.sender.on_ack(&report(
            self.now,
            Feedback::of(&[p, recv, lost]),
            Duration::from_millis(rtt_ms),
        ));
    }
    fn packets_per_second(&self) -> f64 {
        self.sender.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0
    }
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-3
}

#[test]
fn rate_starts_at_300_bytes_then_at_initial_window() {
    let mut s = scenario("tfrc(preset=ns2)");
    assert!(close(s.packets_per_second(), 0.3));
    assert_eq!(s.sender.next_tick(), Time::from_secs_f64(20.0 / 3.0));
    assert_eq!(s.sender.feedback_to_receiver().number(3), 1.0, "every packet is to be reported");
    s.report(0.0, 1000.0, 0.0, 100);
    assert!(s.packets_per_second() > 1e9, "a report in slow start releases a packet at once");
    s.send();
    assert!(close(s.sender.rate, 40_000.0) && close(s.packets_per_second(), 40.0));
    assert_eq!(
        (s.sender.feedback_to_receiver().number(2), s.sender.feedback_to_receiver().number(3)),
        (1.0, 0.0)
    );
}

/// The third report doubles to 80 packets per second; 8 packets make an RTT at that rate, so each
/// one speeds the pacing up by 40/8.
#[test]
fn slow_start_rises_packet_by_packet() {
    let mut s = scenario("tfrc(preset=ns2)");
    s.report(0.0, 1000.0, 0.0, 100);
    s.report(0.0, 40_000.0, 0.0, 100);
    s.report(0.0, 40_000.0, 0.0, 100);
    assert!(close(s.sender.rate, 80_000.0));
    for i in 1..=8 {
        s.send();
        assert!(close(s.packets_per_second(), 40.0 + 5.0 * f64::from(i)), "{i}");
    }
    s.send();
    assert!(close(s.packets_per_second(), 80.0));
    // Less than half arrives: the rate falls to the receive rate.
    s.report(0.0, 30_000.0, 0.0, 100);
    assert!(close(s.sender.rate, 30_000.0), "{}", s.sender.rate);
}

#[test]
fn below_the_equation_rate_rises_a_packet_per_rtt() {
    let mut s = scenario("tfrc(preset=ns2)");
    for _ in 0..3 {
        s.report(0.0, 40_000.0, 0.0, 100);
    }
    s.report(0.1, 40_000.0, 1.0, 100);
    let low = s.sender.rate;
    let rto = s.sender.ticks.rto;
    // One tick of 0.1 s: srtt 8/8 and rttvar 2/4 ticks, so 1 + 2 ticks.
    assert!(close(rto, 0.3), "{rto}");
    let fair = s.sender.options.equation.packets_per_second(0.1, 0.1, 0.3) * 1000.0;
    assert!(close(low, fair), "down to the equation at once: {low} {fair}");
    // 101 ms since the last change the first time that it counts; the step out of slow start is
    // no change, so the first rise is two round trips' worth at most.
    s.report(0.001, 40_000.0, 0.0, 100);
    assert!(close(s.sender.rate, low + 20_000.0), "{} {low}", s.sender.rate);
    let before = s.sender.rate;
    s.report(0.001, 40_000.0, 0.0, 100);
    assert!(close(s.sender.rate, before + 10_100.0), "{} {before}", s.sender.rate);
    for _ in 0..30 {
        s.report(0.001, 40_000.0, 0.0, 100);
    }
    assert!(close(s.sender.rate, 80_000.0), "twice what arrives at most: {}", s.sender.rate);
}

#[test]
fn conservative_mode_keeps_to_the_receive_rate_after_loss() {
    let mut s = scenario("tfrc(preset=ns2,conservative=on)");
    for _ in 0..3 {
        s.report(0.0, 40_000.0, 0.0, 100);
    }
    for _ in 0..20 {
        s.report(0.0001, 40_000.0, 0.0, 100);
    }
    assert!(close(s.sender.rate, 60_000.0), "{}", s.sender.rate);
    s.report(0.0001, 40_000.0, 1.0, 100);
    assert!(close(s.sender.rate, 40_000.0), "{}", s.sender.rate);
}

#[test]
fn silence_halves_and_a_gap_once_begun_is_kept() {
    let mut s = scenario("tfrc(preset=ns2)");
    for _ in 0..3 {
        s.report(0.0, 40_000.0, 0.0, 100);
    }
    s.report(0.01, 40_000.0, 1.0, 100);
    s.send();
    let gap = s.packets_per_second();
    s.report(0.1, 40_000.0, 1.0, 100);
    assert!(close(s.packets_per_second(), gap), "the new rate counts from the next packet on");
    s.send();
    assert!(s.packets_per_second() < gap);
    let before = s.sender.rate;
    let set = s.now;
    s.now = s.sender.next_tick();
    // max(2R, 2s/X) with X at the arrival of the report.
    assert!(s.now.since(set) >= Duration::from_millis(199));
    s.sender.on_tick(s.now);
    assert!(close(s.sender.rate, before / 2.0));
    assert!(s.packets_per_second() > 1e9, "and a packet leaves at once");
    assert_eq!(s.sender.feedback_to_receiver().number(3), 1.0);
}

/// The gap is (s/X) sqrt(RTT) / mean sqrt(RTT), both means with a gain of 1/20.
#[test]
fn spacing_follows_the_root_of_the_round_trip_time() {
    for (text, factor) in
        [("tfrc(preset=ns2)", 1.05 / 2.0), ("tfrc(preset=ns2,oscillation=off)", 1.0)]
    {
        let mut s = scenario(text);
        for _ in 0..3 {
            s.report(0.0, 40_000.0, 0.0, 100);
        }
        s.report(0.01, 1e6, 1.0, 100);
        s.report(0.05, 1e6, 0.0, 400);
        s.send();
        let expected = s.sender.rate * factor / 1000.0;
        assert!(close(s.packets_per_second(), expected), "{text}: {expected}");
    }
}

#[test]
fn rates_are_bounded_whatever_is_reported() {
    let mut s = scenario("tfrc(preset=ns2)");
    let mut stream = narrows_base::RandomKey::from_seed(4).stream();
    for _ in 0..5000 {
        let a = stream.bits();
        let b = stream.bits();
        s.now += Duration::from_nanos(stream.bits() >> 40);
        s.sender.on_ack(&report(
            s.now,
            Feedback::from_words(&[a as u32, b as u32, (a >> 32) as u32]),
            Duration::from_nanos(stream.bits() >> (stream.bits() % 64)),
        ));
        if stream.chance(0.5) {
            s.send();
        }
        if stream.chance(0.2) && s.sender.next_tick() < Time::from_secs_f64(1e9) {
            s.now = s.now.max(s.sender.next_tick());
            s.sender.on_tick(s.now);
        }
        assert!(s.sender.rate.is_finite() && s.sender.rate > 0.0);
        assert!(s.sender.send_limits().pacing_rate.unwrap().as_bps() > 0);
    }
}
