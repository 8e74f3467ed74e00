//! The sender's choice of new parts, repeats and drops.

use super::*;
use crate::packet::ask;

const LATENCY: Duration = Duration::from_millis(200);
const PATH: PathMeasurements = PathMeasurements {
    srtt: Duration::from_millis(40),
    min_rtt: Duration::from_millis(40),
    loss: 0.0,
};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}
fn asked(first: u32, attempt: u8) -> Vec<u8> {
    ask(&[NackRange { first, more: 0, attempt }])
}
/// The numbers of the parts that leave now.
fn leaving(sender: &mut MediaLayerSender, now: Time) -> Vec<u32> {
    let all = std::iter::from_fn(|| sender.next(now, PATH));
    all.map(|leaving| match read(&leaving.message) {
        Some(MediaMessage::Data(data)) => data.number,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn requested_repeats_go_first_once_per_attempt() {
    let mut sender = MediaLayerSender::new(LATENCY);
    (0..3).for_each(|_| sender.on_datagram(at(0), b"datagram", 100));
    assert_eq!(leaving(&mut sender, at(0)), [0, 1, 2]);
    sender.on_datagram(at(50), b"datagram", 100);
    sender.on_message(&asked(1, 1));
    sender.on_message(&asked(1, 1));
    // Numbers that have not left yet, or do not exist, cannot be repeated.
    sender.on_message(&asked(3, 1));
    sender.on_message(&asked(4000, 1));
    assert_eq!(leaving(&mut sender, at(50)), [1, 3]);
    sender.on_message(&asked(1, 2));
    assert_eq!(leaving(&mut sender, at(100)), [1]);
    assert_eq!(sender.sent().repeats, 2);
}

#[test]
fn late_repeats_are_not_sent() {
    let mut sender = MediaLayerSender::new(LATENCY);
    sender.on_datagram(at(0), b"datagram", 100);
    assert_eq!(leaving(&mut sender, at(0)), [0]);
    sender.on_message(&asked(0, 1));
    let queue = PathMeasurements { srtt: Duration::from_millis(100), ..PATH };
    assert_eq!(sender.next(at(145), queue), None);
    sender.on_message(&asked(0, 2));
    assert_eq!(leaving(&mut sender, at(145)), [0]);
    sender.on_message(&asked(0, 3));
    assert!(leaving(&mut sender, at(201)).is_empty());
}

#[test]
fn oldest_datagram_is_dropped_early_to_allow_repeats() {
    let mut sender = MediaLayerSender::new(LATENCY);
    (0..10).for_each(|n| sender.on_datagram(at(20 * n), b"datagram", 100));
    // Of 200 ms, 50 are left for a repeat: parts older than 150 ms are dropped.
    assert_eq!(sender.longest_wait(PATH), Duration::from_millis(150));
    assert_eq!(leaving(&mut sender, at(200)), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(sender.sent().dropped.all(), 3);
}

#[test]
fn long_datagram_is_split_and_oversized_one_refused() {
    let mut sender = MediaLayerSender::new(LATENCY);
    sender.on_datagram(at(0), &[7; 200], HEAD + 90);
    sender.on_datagram(at(0), &[7; 90 * MAX_PARTS + 1], HEAD + 90);
    let parts: Vec<_> = std::iter::from_fn(|| sender.next(at(0), PATH)).collect();
    let found: Vec<_> = parts
        .iter()
        .map(|p| match read(&p.message) {
            Some(MediaMessage::Data(d)) => (d.part, d.last_part, d.payload.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((found, sender.sent().refused), (vec![(0, 2, 67), (1, 2, 67), (2, 2, 66)], 1));
}

/// A receiver that requests all parts again and again causes only half as many bytes in addition, in the long run.
#[test]
fn repeats_are_bounded_whatever_is_asked_for() {
    let mut sender = MediaLayerSender::new(Duration::from_secs(10));
    let mut left = 0;
    let mut attempt = 0;
    for round in 0..200u64 {
        (0..20).for_each(|_| sender.on_datagram(at(round * 10), &[7; 1000], 1400));
        attempt = (attempt + 1) % 250;
        for first in (0..20 * round as u32).step_by(200) {
            sender.on_message(&ask(&[NackRange { first, more: 199, attempt }]));
        }
        left += std::iter::from_fn(|| sender.next(at(round * 10), PATH)).count();
    }
    assert!(left <= 4000 + 2000 + 64, "{left}");
}

#[test]
fn memory_is_bounded_while_sending_is_blocked() {
    let mut sender = MediaLayerSender::new(Duration::from_secs(1000));
    (0..100_000).for_each(|_| sender.on_datagram(at(1), &[7; 1400], 1400));
    assert!(sender.kept.len() <= MAX_KEPT && sender.bytes <= MAX_BYTES);
    assert!(sender.sent().dropped.all() > 60_000);
}

/// One packet every 5 ms. No packet can leave for 150 ms because of `cause`; then all that are not too old leave.
fn after_a_pause(cause: Cause) -> (u64, DropsByCause) {
    let mut sender = MediaLayerSender::new(Duration::from_millis(100));
    let path = PathMeasurements {
        srtt: Duration::from_millis(10),
        min_rtt: Duration::from_millis(10),
        loss: 0.0,
    };
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    for ms in 0..150 {
        if ms % 5 == 0 {
            sender.on_datagram(at(ms), b"media", 100);
        }
        sender.on_waited(cause, Duration::from_millis(1));
    }
    while sender.next(at(150), path).is_some() {}
    (sender.sent().parts, sender.sent().dropped)
}

#[test]
fn datagrams_survive_an_outage_but_not_a_low_rate() {
    assert_eq!(after_a_pause(Cause::Silence), (30, DropsByCause::default()));
    let (left, dropped) = after_a_pause(Cause::Rate);
    assert_eq!((left, dropped), (17, DropsByCause { rate: 13, ..DropsByCause::default() }));
}

#[test]
fn a_repeat_that_cannot_be_asked_for_again_leaves_twice() {
    for (age, times) in [(20, 1), (60, 2)] {
        let mut sender = MediaLayerSender::new(Duration::from_millis(100));
        let path = PathMeasurements {
            srtt: Duration::from_millis(50),
            min_rtt: Duration::from_millis(50),
            loss: 0.0,
        };
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        sender.on_datagram(at(0), b"media", 100);
        assert!(sender.next(at(0), path).is_some());
        sender.on_message(&ask(&[NackRange { first: 0, more: 0, attempt: 1 }]));
        let left = (age..100).filter(|ms| sender.next(at(*ms), path).is_some()).count();
        assert_eq!(left, times);
    }
}
