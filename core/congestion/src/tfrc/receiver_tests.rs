//! Timed scenarios of the receiver side: packets every 10 ms, RTT 100 ms, 1000 bytes.

use super::*;
use narrows_base::{Settings, Spec};
use proptest::prelude::*;

const RTT: f64 = 0.1;

struct Scenario {
    receiver: TfrcReceiver,
    now: Time,
    sent: u64,
    reports: Vec<(f64, Feedback)>,
    says: Feedback,
    gap: Duration,
}

fn options(text: &str) -> Options {
    let spec = Spec::parse(text).unwrap();
    let settings = Settings::read(&spec, crate::tfrc::DESCRIPTOR.params).unwrap();
    Options::read(&settings, &crate::Environment::default())
}

impl Scenario {
    fn new(text: &str) -> Scenario {
        Scenario {
            receiver: TfrcReceiver::new(&options(text)),
            now: Time::ZERO,
            sent: 0,
            reports: Vec::new(),
            says: Feedback::of(&[RTT, 4.0 * RTT]),
            gap: Duration::from_millis(10),
        }
    }
    fn report(&mut self) {
        let feedback = self.receiver.feedback(self.now);
        self.reports.push((self.now.as_secs_f64(), feedback));
    }
    fn wait(&mut self, until: Time) {
        while self.receiver.next_tick() <= until {
            self.now = self.receiver.next_tick().max(self.now);
            if self.receiver.on_tick(self.now) {
                self.report();
            }
        }
        self.now = until;
    }
    fn arrive(&mut self, seq: u64, marked: bool) {
        let arrival = Arrival {
            now: self.now,
            seq,
            sent: self.now,
            bytes: 1000,
            marked,
            feedback: self.says,
        };
        if self.receiver.on_arrival(&arrival) {
            self.report();
        }
    }
    /// Packets in order, without those for which `lose` is true.
    fn packets(&mut self, n: u64, lose: impl Fn(u64) -> bool) {
        for _ in 0..n {
            self.wait(self.now + self.gap);
            if !lose(self.sent) {
                self.arrive(self.sent, false);
            }
            self.sent += 1;
        }
    }
    fn p(&mut self) -> f64 {
        let top = self.receiver.detector.top();
        self.receiver.history.loss_event_rate(top)
    }
}

#[test]
fn every_packet_is_reported_until_the_rtt_is_known() {
    let mut s = Scenario::new("tfrc");
    s.says = Feedback::of(&[0.0]);
    s.packets(5, |_| false);
    assert_eq!(s.reports.len(), 5);
    s.says = Feedback::of(&[RTT]);
    s.packets(100, |_| false);
    let reports = &s.reports[5..];
    assert!((9..=11).contains(&reports.len()), "{}", reports.len());
    // 100 packets of 1000 B per second, ten or eleven of them in an RTT; no losses.
    let last = reports.last().unwrap().1;
    assert!((0.999e5..1.101e5).contains(&last.number(1)), "{}", last.number(1));
    assert_eq!(last.number(0), 0.0);
}

#[test]
fn a_report_that_is_owed_leaves_with_the_next_packet() {
    let mut s = Scenario::new("tfrc");
    s.packets(30, |_| false);
    s.wait(s.now + Duration::from_millis(150));
    let before = s.reports.len();
    s.wait(s.now + Duration::from_secs(3));
    assert_eq!(s.reports.len(), before, "nothing came, nothing is said");
    s.packets(1, |_| false);
    assert_eq!(s.reports.len(), before + 1);
    // One packet in more than 3 s: X_recv is measured since the last report.
    let rate = s.reports.last().unwrap().1.number(1);
    assert!(rate > 250.0 && rate < 333.0, "{rate}");
}

/// 100 packets per second without loss, then one loss: p is the equation's value for 10^5 B/s. The tolerance is the 5%
/// of the inverse, and the one packet in ten by which an RTT may exceed the mean.
#[test]
fn the_first_loss_gives_the_rate_that_was_received() {
    for preset in ["tfrc", "tfrc(preset=ns2)"] {
        let mut s = Scenario::new(preset);
        s.packets(200, |_| false);
        let reports = s.reports.len();
        s.packets(4, |seq| seq == 200);
        assert!(s.reports.len() > reports, "a new loss event is reported at once");
        let p = s.reports.last().unwrap().1.number(0);
        let rate = options(preset).equation.packets_per_second(p, RTT, 4.0 * RTT);
        assert!((0.95..1.1 * 1.05).contains(&(rate / 100.0)), "{preset}: p {p}, {rate} packets/s");
    }
}

/// Choi 2006, figures 6.2 and 6.4: periods of 100, 20 and 10; two adjacent losses are one event.
#[test]
fn periodic_losses_converge_to_the_period() {
    for preset in ["tfrc", "tfrc(preset=ns2)"] {
        for period in [100, 20, 10] {
            for run in 1..=2 {
                let mut s = Scenario::new(preset);
                // An RTT is shorter than every period, and a round passes with each report.
                s.gap = Duration::from_millis(15);
                for round in 0..period * 12 {
                    s.says = Feedback::of(&[RTT, 4.0 * RTT, round as f64]);
                    s.packets(1, |seq| seq % period < run && seq >= period);
                }
                let p = s.p();
                assert!((p * period as f64 - 1.0).abs() < 1e-6, "{preset} {period} {run}: {p}");
            }
        }
    }
}

/// With packets an RTT apart or more, every second lost: intervals of 2 (Choi 2006, figure 6.4b). Detected at once:
/// with three later packets to wait for, I_0 would be 6 long and count.
#[test]
fn alternate_losses_are_intervals_of_two() {
    let mut s = Scenario::new("tfrc(reorder=1)");
    s.gap = Duration::from_millis(120);
    s.packets(60, |seq| seq % 2 == 1);
    let p = s.p();
    assert!((p - 0.5).abs() < 1e-6, "{p}");
}

#[test]
fn losses_within_a_round_trip_are_one_event() {
    let mut s = Scenario::new("tfrc");
    s.packets(100, |_| false);
    s.packets(9, |seq| seq % 2 == 0);
    // 100, 102, 104 and 106 are missing; 107 is the highest received.
    assert_eq!(s.receiver.history.open(s.receiver.detector.top()), 7.0);
    s.packets(20, |seq| seq == 115);
    assert_eq!(s.receiver.history.open(s.receiver.detector.top()), 128.0 - 115.0);
}

#[test]
fn a_mark_counts_as_a_loss_at_once() {
    let mut s = Scenario::new("tfrc");
    s.packets(100, |_| false);
    let before = s.reports.len();
    s.wait(s.now + Duration::from_millis(1));
    s.arrive(100, true);
    assert_eq!(s.reports.len(), before + 1);
    assert!(s.reports[before].1.number(0) > 0.0);
    // A second one in the same round trip is the same event.
    let p = s.p();
    s.arrive(101, true);
    assert!(s.p() <= p);
}

/// A gap of 2^40 costs a few steps, and is many loss events, not one.
#[test]
fn huge_gaps_take_constant_memory() {
    for preset in ["tfrc", "tfrc(preset=ns2)"] {
        let mut s = Scenario::new(preset);
        s.packets(20, |_| false);
        for jump in [1 << 40, 1 << 62, u64::MAX / 2 - 10] {
            s.wait(s.now + Duration::from_secs(1));
            for i in 0..4 {
                s.arrive(jump + i, false);
            }
            let p = s.p();
            assert!(p.is_finite() && (0.0..=1.0).contains(&p), "{p}");
        }
        s.wait(s.now + Duration::from_secs(5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..Default::default() })]

    /// With any arrivals and any values of the sender side, words are finite and the work is bounded.
    #[test]
    fn no_arrivals_break_it(
        arrivals in prop::collection::vec(
            (0u64..300_000_000, prop_oneof![0u64..200, 0u64..u64::MAX / 2], any::<[u32; 4]>(), any::<u8>()),
            1..200,
        ),
        ns2 in any::<bool>(),
        sane in any::<bool>(),
    ) {
        let mut receiver = TfrcReceiver::new(&options(if ns2 { "tfrc(preset=ns2)" } else { "tfrc" }));
        let mut now = Time::ZERO;
        for (gap, seq, words, flags) in arrivals {
            now += Duration::from_nanos(gap);
            if receiver.next_tick() <= now && receiver.on_tick(now) {
                receiver.feedback(now);
            }
            let feedback = if sane { Feedback::of(&[RTT, 0.4, f64::from(flags)]) } else { Feedback::from_words(&words) };
            let is_due = receiver.on_arrival(&Arrival {
                now, seq, sent: Time::from_nanos(u64::from(words[0])), bytes: words[1] % 65_536,
                marked: flags & 1 == 1, feedback,
            });
            if is_due {
                let said = receiver.feedback(now);
                for w in said.words() {
                    let x = f32::from_bits(*w);
                    prop_assert!(x.is_finite() && x >= 0.0, "{said:?}");
                }
                prop_assert!(said.number(0) <= 1.0);
            }
        }
    }
}

/// Section 5.1: a late packet fills the hole, and the next one gets more time. ns-2 does neither.
#[test]
fn late_packet_cancels_its_loss_event() {
    for (text, taken_back) in [("tfrc", true), ("tfrc(preset=ns2,reorder=3)", false)] {
        let mut s = Scenario::new(text);
        s.packets(54, |seq| seq == 50);
        assert!(s.p() > 0.0, "{text}");
        s.arrive(50, false);
        assert_eq!(s.p() == 0.0, taken_back, "{text}");
        if !taken_back {
            continue;
        }
        // Twenty milliseconds late: a quarter of a round trip is waited for, three packets.
        s.packets(10, |seq| seq == 60);
        assert_eq!(s.p(), 0.0);
        s.packets(1, |_| false);
        assert!(s.p() > 0.0);
    }
}

/// If an event has two losses, it is undone only when both packets arrive.
#[test]
fn one_late_packet_of_two_leaves_the_loss_event() {
    let mut s = Scenario::new("tfrc");
    s.packets(56, |seq| seq == 50 || seq == 52);
    s.arrive(50, false);
    assert!(s.p() > 0.0);
    s.arrive(52, false);
    assert_eq!(s.p(), 0.0);
}
