//! Timed scenarios of the RFC's sender side: reports every RTT of 100 ms, packets of 1000 bytes.

use super::*;
use crate::fuzz::report;
use narrows_base::{Settings, Spec};

struct Scenario {
    sender: TfrcSender,
    now: Time,
    rtt: Duration,
}

fn scenario(text: &str) -> Scenario {
    let spec = Spec::parse(text).unwrap();
    let settings = Settings::read(&spec, crate::tfrc::DESCRIPTOR.params).unwrap();
    let options = Options::read(&settings, &crate::Environment::default());
    let mut s = Scenario {
        sender: TfrcSender::new(&options),
        now: Time::ZERO,
        rtt: Duration::from_millis(100),
    };
    s.send(false);
    s
}

impl Scenario {
    fn send(&mut self, last_waiting: bool) {
        self.sender.on_sent(&Sent {
            now: self.now,
            bytes: 1000,
            outstanding: 1,
            retransmission: false,
            last_waiting,
        });
    }
    /// The sender sends for an RTT, then a report arrives.
    fn report(&mut self, p: f64, recv: f64) {
        self.report_of(p, recv, false);
    }
    fn report_of(&mut self, p: f64, recv: f64, limited: bool) {
        self.send(limited);
        self.now += self.rtt;
        self.send(limited);
        self.sender.on_ack(&report(self.now, Feedback::of(&[p, recv]), self.rtt));
    }
    /// The nofeedback timer expires.
    fn silence(&mut self) {
        self.now = self.sender.next_tick();
        self.sender.on_tick(self.now);
    }
    fn x(&self) -> f64 {
        self.sender.rate
    }
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-3
}

#[test]
fn rate_before_the_first_report_is_a_packet_per_second() {
    let mut s = scenario("tfrc");
    assert!(close(s.x(), 1000.0));
    assert_eq!(s.sender.next_tick(), Time::from_secs_f64(2.0));
    s.silence();
    assert!(close(s.x(), 500.0), "nothing came back of what was sent: half");
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    // W_init of 1000-byte packets is 4000 bytes (RFC 5348 section 4.2).
    assert!(close(s.x(), 4000.0 / 0.1), "{}", s.x());
}

#[test]
fn slow_start_doubles_up_to_twice_the_receive_rate() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    let mut expected = s.x();
    for _ in 0..5 {
        let sent = s.x();
        s.report(0.0, sent);
        expected *= 2.0;
        assert!(close(s.x(), expected), "{} {expected}", s.x());
    }
    // A bottleneck of 10^6 B/s: twice that, and no more, however often it is reported.
    for _ in 0..5 {
        s.report(0.0, 1e6);
    }
    assert!(close(s.x(), 2e6), "{}", s.x());
}

/// The limit is the largest receive rate of two round trips, not only the last.
#[test]
fn one_low_receive_rate_is_forgiven() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..8 {
        s.report(1e-6, 1e5);
    }
    assert!(close(s.x(), 2e5), "{}", s.x());
    s.report(1e-6, 1e4);
    assert!(close(s.x(), 2e5), "{}", s.x());
    for _ in 0..3 {
        s.report(1e-6, 1e4);
    }
    assert!(close(s.x(), 2e4), "{}", s.x());
}

#[test]
fn after_a_loss_the_rate_is_the_equations() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..5 {
        let sent = s.x();
        s.report(0.0, sent);
    }
    s.report(0.01, 1e6);
    // 112.33 packets per second at 1% and 100 ms: see the equation's own test.
    assert!(close(s.x(), 112_330.0), "{}", s.x());
    // And up again at once when p falls, unlike ns-2: 10^6 B/s arrive.
    s.report(0.0025, 1e6);
    assert!(s.x() > 230_000.0, "{}", s.x());
    let mut s = scenario("tfrc(min-rto=1s)");
    s.report(0.0, 0.0);
    s.report(0.01, 1e6);
    // t_RTO of 1 s rather than 0.4: 1 / (0.0081650 + 0.0018430).
    assert!(close(s.x(), 99_920.0), "{}", s.x());
}

#[test]
fn silence_halves_the_rate() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..4 {
        let sent = s.x();
        s.report(0.0, sent);
    }
    // Before the first loss X itself.
    for _ in 0..3 {
        let before = s.x();
        s.send(false);
        s.silence();
        assert!(close(s.x(), before / 2.0));
    }
    // After it the limit is the receive rate: twice X_recv before, X_recv now.
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..4 {
        s.report(0.0001, 1e5);
    }
    assert!(close(s.x(), 2e5));
    let set = s.now;
    s.send(false);
    s.silence();
    assert_eq!(s.now.since(set), Duration::from_millis(400), "4R without a report");
    assert!(close(s.x(), 1e5), "{}", s.x());
    s.send(false);
    s.silence();
    assert!(close(s.x(), 5e4), "{}", s.x());
    for _ in 0..40 {
        s.send(false);
        s.silence();
    }
    assert!(close(s.x(), 1000.0 / 64.0), "one packet in 64 s at least: {}", s.x());
}

/// Section 4.4: without feedback after an idle time, the rate does not fall below the recover rate W_init/R.
#[test]
fn idleness_keeps_the_recover_rate() {
    for p in [0.0, 0.0001] {
        let mut s = scenario("tfrc");
        s.report(0.0, 0.0);
        for _ in 0..6 {
            let sent = s.x();
            s.report(p, sent);
        }
        s.now += Duration::from_millis(1);
        for _ in 0..50 {
            s.silence(); // Nothing is sent in between.
        }
        assert!(s.x() >= 40_000.0 - 1.0, "p {p}: {}", s.x());
        assert!(s.x() <= 2.0 * 40_000.0 + 1.0, "p {p}: {}", s.x());
    }
}

/// Section 8.2: a sender that its application limits keeps its rate, though little arrives.
#[test]
fn a_data_limited_sender_keeps_its_rate() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..6 {
        s.report(0.001, 2e5);
    }
    let before = s.x();
    for _ in 0..30 {
        s.report_of(0.001, 1e3, true);
    }
    assert!(close(s.x(), before), "{} {before}", s.x());
    // A sender that is not limited, and of which as little arrives, falls to twice that.
    for _ in 0..30 {
        s.report_of(0.001, 1e3, false);
    }
    assert!(close(s.x(), 2e3), "{}", s.x());
}

/// Section 4.3 step 4: a loss while data-limited halves the kept values, and 0.85 of X_recv counts.
#[test]
fn a_loss_while_data_limited_is_heeded() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..6 {
        s.report(0.0001, 1e5);
    }
    for _ in 0..3 {
        s.report_of(0.0001, 1e5, true);
    }
    assert!(close(s.x(), 2e5));
    s.report_of(0.0002, 1e5, true);
    assert!(close(s.x(), 0.85e5), "{}", s.x());
}

/// Section 4.5: X_inst = X R_sqmean / sqrt(R_sample).
#[test]
fn a_longer_round_trip_slows_the_pacing_at_once() {
    let mut s = scenario("tfrc");
    s.report(0.0, 0.0);
    for _ in 0..20 {
        s.report(0.001, 1e6);
    }
    assert!(close(s.sender.paced, s.x()));
    s.rtt = Duration::from_millis(400);
    s.report(0.001, 1e6);
    // R_sqmean moves a tenth of the way from sqrt(0.1) to sqrt(0.4): a factor of 1.1 over 2.
    assert!(close(s.sender.paced, s.x() * 0.55), "{} {}", s.sender.paced, s.x());
    let mut s = scenario("tfrc(oscillation=off)");
    s.report(0.0, 0.0);
    s.rtt = Duration::from_millis(400);
    s.report(0.001, 1e6);
    assert!(close(s.sender.paced, s.x()));
}

#[test]
fn memory_and_rates_are_bounded_whatever_is_reported() {
    for text in ["tfrc", "tfrc(oscillation=off)", "tfrc(min-rto=1s)"] {
        let mut s = scenario(text);
        let mut stream = narrows_base::RandomKey::from_seed(3).stream();
        for _ in 0..5000 {
            let a = stream.bits();
            let b = stream.bits();
            s.rtt = Duration::from_nanos(stream.bits() >> (stream.bits() % 64));
            s.now += Duration::from_nanos(stream.bits() >> 40);
            s.sender.on_ack(&report(
                s.now,
                Feedback::from_words(&[a as u32, b as u32, (a >> 32) as u32]),
                s.rtt,
            ));
            if stream.chance(0.3) {
                s.send(stream.chance(0.5));
            }
            if stream.chance(0.1) && s.sender.next_tick() < Time::from_secs_f64(1e9) {
                s.silence();
            }
            assert!(s.sender.recv_set.len() <= MAX_RATES);
            assert!(s.x() >= 1000.0 / 64.0 - 1e-9 && s.x().is_finite(), "{}", s.x());
            assert!(s.sender.send_limits().pacing_rate.unwrap().as_bps() > 0);
        }
    }
}
