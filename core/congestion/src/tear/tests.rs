//! Sender and receiver sides of both variants: reports, and arbitrary packets of a peer.

use super::*;
use crate::{Arrival, Feedback, find};
use narrows_base::{Duration, Spec, Time};
use proptest::prelude::*;

const SPECS: [&str; 6] = [
    "tear",
    "tear(weights=shifts,discount=off,yield=off,ssthresh=2)",
    "tear(ssthresh=1000000000)",
    "tear-wireless",
    "tear-wireless(thresholds=fixed)",
    "tear-wireless(thresholds=fixed,r1=60s,r2=1ms,weights=tear)",
];

fn receiver(spec: &str) -> Box<dyn ReceiverSide> {
    let spec = Spec::parse(spec).unwrap();
    let entry = find(&spec.name).unwrap();
    (entry.receiver.unwrap())(&entry.read(&spec).unwrap(), &Environment::default())
}
fn sender(spec: &str) -> Box<dyn Controller> {
    let spec = Spec::parse(spec).unwrap();
    let entry = find(&spec.name).unwrap();
    entry.build(&entry.read(&spec).unwrap(), &Environment::default())
}
fn arrival(ms: u64, seq: u64, rtt: f64) -> Arrival {
    let now = Time::ZERO + Duration::from_millis(ms);
    Arrival {
        now,
        seq,
        sent: now,
        bytes: 1000,
        marked: false,
        feedback: Feedback::of(&[rtt, rtt / 8.0, rtt]),
    }
}

#[test]
fn every_packet_is_reported_until_a_rate_is_known() {
    let mut receiver = receiver("tear");
    for seq in 0..3 {
        let a = arrival(seq * 10, seq, 0.0);
        assert!(receiver.on_arrival(&a));
        assert_eq!(receiver.feedback(a.now).number(0), 0.0, "no RTT, no rate");
    }
    let a = arrival(30, 3, 0.1);
    assert!(receiver.on_arrival(&a));
    assert!(receiver.feedback(a.now).number(0) > 10.0);
}

/// The receiver requests less than the mean while the queue that caused the loss exists; the literal thesis does not.
#[test]
fn full_queue_loss_lowers_the_rate_until_it_drains() {
    let rates = |spec: &str| {
        let mut receiver = receiver(spec);
        // Rounds without a queue, then with one, then three packets behind a hole.
        let mut tell = |seq: u64, rtt: f64| {
            let a = arrival(seq * 5, seq, rtt);
            receiver.on_arrival(&a);
            receiver.feedback(a.now).number(0)
        };
        (0..400).for_each(|seq| _ = tell(seq, 0.125));
        (400..600).for_each(|seq| _ = tell(seq, 0.25));
        let before = tell(600, 0.25);
        let after = (602..605).map(|seq| tell(seq, 0.25)).last().unwrap();
        (after / before, tell(605, 0.125) / before)
    };
    let (full, gone) = rates("tear");
    assert!(full < 0.75 && gone > 0.9, "{full} {gone}");
    let (full, _) = rates("tear(yield=off)");
    assert!(full > 0.9, "{full}");
}

/// A growing window is reported once per RTT, a falling rate at once.
#[test]
fn reports_are_rare_and_bad_news_travels_at_once() {
    let mut receiver = receiver("tear");
    let mut reports = Vec::new();
    for seq in 0..4000 {
        let a = arrival(seq * 5, seq, 0.125);
        // Every 310th is lost.
        if seq % 310 != 309 && receiver.on_arrival(&a) {
            reports.push((seq * 5, receiver.feedback(a.now).number(0)));
        }
    }
    let early = reports.windows(2).filter(|w| w[1].0 - w[0].0 < 125);
    let early: Vec<bool> = early.map(|w| w[1].1 < w[0].1).collect();
    assert!(early.len() > 3 && early.iter().all(|fell| *fell), "{reports:?}");
    let max = 4000 * 5 / 125 + early.len();
    assert!(reports.len() <= max && reports.len() > max * 9 / 10, "{}", reports.len());
}

/// The ACK vector holds only a few holes.
#[test]
fn four_holes_are_reported() {
    let mut receiver = receiver("tear-wireless");
    for seq in 0..50 {
        let a = arrival(seq, seq, 0.5);
        if receiver.on_arrival(&a) {
            receiver.feedback(a.now);
        }
    }
    let wants: Vec<bool> =
        (0..4).map(|i| receiver.on_arrival(&arrival(51 + i, 51 + 2 * i, 0.5))).collect();
    assert_eq!(wants, [false, false, false, true]);
}

/// The sender's words reach the receiver's numbers.
#[test]
fn the_halves_understand_each_other() {
    let mut s = sender("tear");
    let rtt = Duration::from_millis(250);
    let now = Time::ZERO + rtt;
    let feedback = Feedback::of(&[12.0]);
    let mut ack = crate::fuzz::report(now, feedback, rtt);
    ack.estimate.rttvar = Duration::from_millis(125);
    s.on_ack(&ack);
    let mut emulation = TcpEmulation::new(64.0, EpochHistory::new(smoothing::TEAR, false), None);
    let mut a = arrival(0, 0, 0.0);
    a.feedback = s.feedback_to_receiver();
    emulation.on_arrival(&a);
    assert_eq!(emulation.rtt(), Some(0.25));
    assert!((emulation.timeout() - 0.75 - 0.25).abs() < 1e-9, "3 RTTs and 2 DEV");
}

#[derive(Clone, Debug)]
enum Event {
    Packet { step: i64, late: u64, marked: bool, words: [u32; 4] },
    Wait,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let step = prop_oneof![6 => Just(1_i64), 2 => -5..5_i64, 1 => 2..30_i64, 1 => 0..1_i64 << 40];
    let word = prop_oneof![
        4 => (1e-4..3.0_f32).prop_map(f32::to_bits),
        1 => any::<u32>(),
        1 => Just(f32::MAX.to_bits()),
        1 => Just(f32::MIN_POSITIVE.to_bits()),
    ];
    let idle = prop_oneof![9 => Just(0_u32), 1 => any::<u32>()];
    let late = prop_oneof![4 => 0..50_000_000_u64, 1 => 0..u64::MAX];
    let gap = prop_oneof![6 => 0..30_000_000_u64, 1 => 0..10_u64.pow(12), 1 => Just(0)];
    let packet = (step, late, any::<u8>(), [word.clone(), word.clone(), word], idle).prop_map(
        |(step, late, marked, [a, b, c], idle)| Event::Packet {
            step,
            late,
            marked: marked < 8,
            words: [a, b, c, idle],
        },
    );
    proptest::collection::vec((gap, prop_oneof![9 => packet, 1 => Just(Event::Wait)]), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 150,
        ..Default::default()
    })]

    /// With any arrivals (duplicates, disorder, gaps up to 2^40, absurd times and words), the receiver's rate is
    /// finite, the sender's positive, ticks lie ahead, and the code does not panic.
    #[test]
    fn arbitrary_input_breaks_neither_sender_nor_receiver(events in events()) {
        for spec in SPECS {
            let mut receiver = receiver(spec);
            let mut sender = sender(spec);
            let mut now = Time::ZERO;
            let mut next = 0_u64;
            let mut top = 0;
            for (gap, event) in &events {
                now += Duration::from_nanos(*gap);
                let report = match event {
                    Event::Wait => receiver.next_tick() <= now && receiver.on_tick(now),
                    Event::Packet { step, late, marked, words } => {
                        let seq = next.saturating_add_signed(*step - 1).min(u64::MAX / 2 - 1);
                        next = next.max(seq + 1);
                        top = top.max(seq);
                        receiver.on_arrival(&Arrival {
                            now,
                            seq,
                            sent: Time::from_nanos(now.as_nanos().wrapping_sub(*late)),
                            bytes: 1000,
                            marked: *marked,
                            feedback: Feedback::from_words(words),
                        })
                    }
                };
                receiver.watch(&mut |name, value| assert!(value.is_finite(), "{spec}: {name} {value}"));
                if report {
                    let feedback = receiver.feedback(now);
                    let reported = f64::from(f32::from_bits(feedback.words()[0]));
                    prop_assert!(reported.is_finite() && reported >= 0.0, "{spec}: {reported}");
                    let rtt = Duration::from_nanos(*gap);
                    let mut ack = crate::fuzz::report(now, feedback, rtt);
                    ack.estimate.rttvar = rtt;
                    sender.on_ack(&ack);
                    prop_assert!(receiver.next_tick() > now, "{spec}: a tick that never goes away");
                }
                let rate = sender.send_limits().pacing_rate.map_or(0, |r| r.as_bps());
                prop_assert!(rate >= 1000, "{spec}: {rate} bit/s is less than a packet in 8 s");
                prop_assert!(sender.feedback_to_receiver().words().iter().all(|w| f32::from_bits(*w).is_finite()));
            }
        }
    }
}
