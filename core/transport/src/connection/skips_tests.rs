//! Packet numbers skipped on purpose count as losses at neither end.

use super::pair_tests::{Net, Pair, config};
use crate::streams::Side;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{Arrival, Feedback, ReceiverSide};
use narrows_recovery::loss_classifier::{ArrivalWithGap, LossClassifier, LossTracker};
use narrows_recovery::protocol::STREAMS;
use std::sync::{Arc, Mutex};

/// Every controller that a connection can use.
fn protocols() -> impl Iterator<Item = String> {
    let names = STREAMS.iter().map(|e| e.name.to_string());
    let fixed = |n| if n == "rrtp+fixed" { "rrtp+fixed(rate=15Mbit/s)".into() } else { n };
    let own = ["rrtp", "rrtp-lasthop", "tear-reliable"].map(String::from);
    own.into_iter().chain(names.map(fixed))
}

/// A link without losses at any sending rate.
fn clean(swapped: f64) -> Net {
    Net { queue: u64::MAX, swapped, ..Net::good() }
}

/// No queue, so that the time threshold of loss detection is not reached.
fn reordering() -> Net {
    let rate = Rate::from_bps(1_000_000_000);
    Net { rate, delay: Duration::from_millis(50), ..clean(0.2) }
}

/// Both ends skip about every fourth number.
fn pair(protocol: &str, net: Net, seed: u64) -> Pair {
    let mut pair = Pair::new(&config(protocol), net, seed);
    for side in [Side::Client, Side::Server] {
        pair.end(side).path.sender.skip_often(3.0);
    }
    pair
}

/// Records the highest value of each variable of the server's receiver side.
fn note(pair: &Pair, most: &mut std::collections::BTreeMap<&'static str, f64>) {
    let Some(side) = pair.server.path.receiver.receiver_side() else { return };
    side.watch(&mut |name, x| {
        let entry = most.entry(name).or_insert(x);
        *entry = entry.max(x);
    });
}

/// The highest loss event rate of TFRC's receiver side.
fn loss_events(protocol: &str, most: &std::collections::BTreeMap<&'static str, f64>) -> f64 {
    if protocol.ends_with("tfrc") { most["receiver_loss_event_rate"] } else { 0.0 }
}

#[test]
fn a_clean_path_has_no_losses_under_any_controller() {
    for protocol in protocols() {
        let mut pair = pair(&protocol, clean(0.0), 1);
        let mut most = std::collections::BTreeMap::new();
        for bytes in [200_000, 1_000_000] {
            let until = pair.now + Duration::from_secs(120);
            let id = pair.client.open(true).unwrap();
            let mut left = bytes;
            let mut buffer = vec![0; 1 << 16];
            let done = pair.run(until, |p| {
                while left > 0 {
                    match p.client.write(id, &vec![1; left.min(4096)]).unwrap() {
                        0 => break,
                        n => left -= n,
                    }
                    if left == 0 {
                        p.client.finish(id).unwrap();
                    }
                }
                while p.server.accept().is_some() {}
                note(p, &mut most);
                // The reporting receiver never counts a number as missing.
                assert_eq!(p.server.path.receiver.missing(32), 0, "{protocol}");
                loop {
                    match p.server.read(id, &mut buffer) {
                        Ok(crate::streams::Read::Bytes(_)) => {}
                        Ok(crate::streams::Read::End) => break true,
                        _ => break false,
                    }
                }
            });
            assert!(done, "{protocol}: {:?}", pair.client.stats());
        }
        for side in [Side::Client, Side::Server] {
            let stats = pair.end(side).stats();
            assert_eq!((stats.counters.lost, stats.counters.episodes), (0, 0), "{protocol}");
            assert_eq!(stats.radio_losses, 0, "{protocol}");
        }
        // Skipped numbers are not counted as sent.
        let stats = pair.client.stats();
        let numbers = pair.client.path.sender.next_number();
        assert!(numbers > stats.counters.sent * 5 / 4, "{protocol}: {numbers}, {stats:?}");
        assert_eq!(loss_events(&protocol, &most), 0.0, "{protocol}");
        if protocol.contains("tear") && !protocol.contains("wireless") {
            // 4 is a gap, 5 fast recovery.
            assert!(most["tear_state"] < 4.0 || most["tear_state"] == 6.0, "{protocol} {most:?}");
        }
    }
}

/// Packets reordered by at most two places are within the reordering threshold, for any number of skipped numbers
/// between them.
#[test]
fn reordering_within_the_margin_is_no_loss_under_any_controller() {
    for protocol in protocols() {
        for seed in 0..2 {
            let mut pair = pair(&protocol, reordering(), seed);
            let mut p = std::collections::BTreeMap::new();
            pair.transfer(Side::Client, 1_000_000, 120.0).unwrap_or_else(|| panic!("{protocol}"));
            note(&pair, &mut p);
            let stats = pair.client.stats();
            assert_eq!((stats.counters.lost, stats.counters.episodes), (0, 0), "{protocol}");
            assert_eq!(loss_events(&protocol, &p), 0.0, "{protocol} seed {seed}");
        }
    }
}

/// The MTU search loses probes on purpose, which the receiver side does not count as losses.
#[test]
fn lost_probes_are_no_losses_to_the_receiver_side() {
    for protocol in ["rrtp+tfrc", "tear-reliable"] {
        let net = Net { mtu: 1300, ..clean(0.0) };
        let mut pair = Pair::new(&config(protocol), net, 1);
        let mut most = std::collections::BTreeMap::new();
        for from in [Side::Client, Side::Server, Side::Client] {
            pair.transfer(from, 500_000, 120.0).unwrap_or_else(|| panic!("{protocol}"));
            note(&pair, &mut most);
        }
        assert!(pair.client.stats().datagram > 1270, "{protocol}: the search found the size");
        assert_eq!(loss_events(protocol, &most), 0.0, "{protocol}");
        if protocol == "tear-reliable" {
            assert!(most["tear_state"] < 4.0 || most["tear_state"] == 6.0, "{most:?}");
        }
    }
}

/// Lost MTU probes are no gaps for the receiver side and the loss classifier.
#[test]
fn probes_that_get_lost_are_no_holes() {
    let SeenNumbers { numbers, missing } = told(Net { mtu: 1300, ..clean(0.0) }, 1);
    assert!(numbers.len() > 700 && numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!(missing, 0);
}

/// ACK-only packets do not count for the other end's controller: the loss of one is no congestion signal for its data.
#[test]
fn lost_report_is_no_loss_to_the_receiver() {
    let mut pair = Pair::new(&config("rrtp+cubic"), clean(0.0), 1);
    let spy = Spy::default();
    let tracker = LossTracker::new(Box::new(spy.clone()));
    pair.server.path.receiver.replace_receiver_side(Some(Box::new(spy.clone())), Some(tracker), 0);
    pair.transfer(Side::Server, 100_000, 60.0).unwrap();
    // The client now sends only reports, and all are lost.
    pair.drop_short = Some((Side::Client, 100));
    let id = pair.server.open(true).unwrap();
    pair.server.write(id, &[1; 50_000]).unwrap();
    pair.run_for(1.0);
    pair.drop_short = None;
    pair.transfer(Side::Client, 100_000, 60.0).unwrap();
    let SeenNumbers { numbers, missing } = std::mem::take(&mut *spy.0.lock().unwrap());
    assert!(numbers.len() > 70 && numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!(missing, 0);
}

/// Arrivals and missing numbers seen by a receiver side and a loss classifier.
#[derive(Default)]
struct SeenNumbers {
    numbers: Vec<u64>,
    missing: u64,
}

#[derive(Clone, Default)]
struct Spy(Arc<Mutex<SeenNumbers>>);

impl ReceiverSide for Spy {
    fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        self.0.lock().unwrap().numbers.push(arrival.seq);
        false
    }
    fn feedback(&mut self, _now: Time) -> Feedback {
        Feedback::NONE
    }
}

impl LossClassifier for Spy {
    fn on_arrival(&mut self, seen: &ArrivalWithGap) -> bool {
        self.0.lock().unwrap().missing += seen.missing;
        false
    }
}

/// Arrivals seen by the server's receiver side and loss classifier while either end sends.
fn told(net: Net, seed: u64) -> SeenNumbers {
    let mut pair = pair("rrtp+cubic", net, seed);
    let spy = Spy::default();
    let tracker = LossTracker::new(Box::new(spy.clone()));
    pair.server.path.receiver.replace_receiver_side(Some(Box::new(spy.clone())), Some(tracker), 0);
    for from in [Side::Client, Side::Server, Side::Client] {
        pair.transfer(from, 500_000, 60.0).unwrap();
    }
    std::mem::take(&mut spy.0.lock().unwrap())
}

#[test]
fn a_receiver_half_and_a_rule_see_no_holes() {
    let SeenNumbers { numbers, missing } = told(clean(0.0), 1);
    assert!(numbers.len() > 700 && numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!(missing, 0);
}

#[test]
fn skipped_numbers_leave_no_lasting_holes_under_reordering() {
    for seed in 0..20 {
        let mut numbers = told(reordering(), seed).numbers;
        assert!(!numbers.is_sorted());
        // Each number arrives within three places of its order.
        for (place, number) in numbers.iter().enumerate() {
            assert!(number.abs_diff(place as u64) <= 3, "seed {seed}: {number} at {place}");
        }
        // No number is absent; a packet that a report overtook may appear twice.
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "seed {seed}");
    }
}

/// If the packet with SKIPPED is lost, the skipped number appears as missing beside it. That is still one loss event.
/// The sender's own counts are right.
#[test]
fn losses_are_counted_as_they_are_by_the_sender() {
    let net = Net { loss: 0.05, ..clean(0.0) };
    let mut pair = pair("rrtp+cubic", net, 3);
    pair.transfer(Side::Client, 3_000_000, 120.0).unwrap();
    let stats = pair.client.stats();
    let share = stats.counters.lost as f64 / stats.counters.sent as f64;
    assert!((0.04..0.06).contains(&share), "{share}: {stats:?}");
}

/// Skipped numbers cost less than a thousandth of the bytes of both directions.
#[test]
fn the_cost_in_bytes_is_below_a_thousandth() {
    let bytes = |often: Option<f64>| {
        let net = Net { rate: Rate::from_bps(200_000_000), queue: 1_000_000, ..Net::good() };
        let mut pair = Pair::new(&config("rrtp+bbr"), net, 1);
        if let Some(mean) = often {
            pair.client.path.sender.skip_often(mean);
        }
        pair.transfer(Side::Client, 30_000_000, 60.0).unwrap();
        let c = pair.client.stats();
        let s = pair.server.stats();
        (c.bytes_sent + s.bytes_sent) as f64
    };
    let with = bytes(None);
    let without = bytes(Some(1e12));
    println!("{with} bytes, {without} without");
    assert!(with / without < 1.001, "{with} and {without}");
}
