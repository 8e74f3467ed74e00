use crate::scenario::{IdealPath, build};
use crate::{PacketOutcome, Sent};
use narrows_base::{Duration, Time};

/// RTT 100 ms, packets of 1000 bytes.
struct Ride {
    scenario: IdealPath,
    seq: u64,
}
impl Ride {
    fn new(spec: &str) -> Ride {
        let mut scenario = IdealPath::new(build(spec));
        scenario.gap = Duration::ZERO;
        Ride { scenario, seq: 0 }
    }
    fn packets_per_s(&self) -> f64 {
        self.scenario.controller.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0
    }
    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            let now = self.scenario.now;
            self.scenario.controller.on_sent(&Sent::new(now, 1000, 5));
        }
    }
    fn ack(&mut self) {
        let ack = self.scenario.ack(1, false);
        self.scenario.controller.on_ack(&ack);
    }
    fn outcome(&mut self, sent: Time, lost: bool, marked: bool) {
        let now = self.scenario.now;
        let seq = self.seq;
        self.seq += 1;
        self.scenario.controller.on_packet_outcome(&PacketOutcome {
            now,
            seq,
            sent,
            bytes: 1000,
            lost,
            marked,
            radio: false,
        });
    }
    /// To the next tick, and over it.
    fn tick(&mut self) {
        self.scenario.now = self.scenario.controller.next_tick();
        self.scenario.controller.on_tick(self.scenario.now);
    }
    /// A round trip with packets as the rate wants them, and their ACKs.
    fn round(&mut self) {
        let packets = (self.packets_per_s() * 0.1 + 0.5) as u64;
        self.send(packets);
        self.ack();
        self.tick();
    }
}

#[test]
fn rate_starts_at_one_per_second_then_per_rtt() {
    let mut r = Ride::new("rap");
    assert_eq!(r.packets_per_s(), 1.0);
    r.send(1);
    r.ack();
    assert_eq!(r.packets_per_s(), 10.0);
}

#[test]
fn each_round_trip_adds_a_packet_per_round_trip() {
    let mut r = Ride::new("rap");
    r.ack();
    for n in 2..40 {
        let before = r.scenario.now;
        r.round();
        assert_eq!(r.scenario.now.since(before), Duration::from_millis(100));
        assert_eq!(r.packets_per_s(), 10.0 * f64::from(n));
    }
}

#[test]
fn source_below_half_its_rate_gets_no_increase() {
    let mut r = Ride::new("rap");
    r.ack();
    for _ in 0..9 {
        r.round();
    }
    assert_eq!(r.packets_per_s(), 100.0);
    for (packets, after) in [(4, 100.0), (0, 100.0), (5, 110.0)] {
        r.send(packets);
        r.ack();
        r.tick();
        assert_eq!(r.packets_per_s(), after, "{packets} of 10");
    }
}

#[test]
fn loss_halves_the_rate_once_per_flight() {
    for (lost, marked) in [(true, false), (false, true)] {
        let mut r = Ride::new("rap");
        r.ack();
        for _ in 0..9 {
            r.round();
        }
        let flight = r.scenario.now;
        r.scenario.now += Duration::from_millis(100);
        r.outcome(flight, lost, marked);
        assert_eq!(r.packets_per_s(), 50.0);
        r.scenario.now += Duration::from_millis(10);
        r.outcome(flight + Duration::from_millis(20), lost, marked);
        r.outcome(flight + Duration::from_millis(100), lost, marked);
        assert_eq!(r.packets_per_s(), 50.0, "left before the rate was halved");
        r.outcome(flight + Duration::from_millis(101), lost, marked);
        assert_eq!(r.packets_per_s(), 25.0);
        // And the next step is a round trip after that.
        let cut = r.scenario.now;
        r.ack();
        assert_eq!(r.scenario.controller.next_tick().since(cut), Duration::from_millis(100));
    }
}

#[test]
fn silence_halves_once_for_each_unacked_packet() {
    let mut r = Ride::new("rap");
    r.ack();
    for _ in 0..9 {
        r.round();
    }
    r.ack();
    // 1.2 SRTT after the last ACK; the step in between does not raise the rate.
    let last = r.scenario.now;
    r.tick();
    r.tick();
    assert_eq!(r.scenario.now.since(last), Duration::from_millis(120));
    assert_eq!(r.packets_per_s(), 50.0);
    r.tick();
    assert_eq!(r.packets_per_s(), 50.0, "a step; nothing new is out");
    for _ in 0..30 {
        r.send(1);
        let sent = r.scenario.now;
        while r.scenario.now.since(sent) < Duration::from_millis(120) {
            r.tick();
        }
    }
    assert!((r.packets_per_s() - 1.0 / 64.0).abs() < 1e-3, "never below one packet in 64 s");
    // The path works again: one ACK is enough for the rate to grow.
    r.ack();
    r.tick();
    assert!(r.packets_per_s() > 10.0, "{}", r.packets_per_s());
}

#[test]
fn fine_grain_follows_a_long_round_trip_at_once() {
    for (spec, slower) in [("rap", false), ("rap(fine-grain=on)", true)] {
        let mut r = Ride::new(spec);
        r.ack();
        for _ in 0..9 {
            r.round();
        }
        let before = r.packets_per_s();
        r.scenario.rtt = Duration::from_millis(200);
        r.ack();
        assert_eq!(r.packets_per_s() < 0.6 * before, slower, "{spec}");
    }
}
