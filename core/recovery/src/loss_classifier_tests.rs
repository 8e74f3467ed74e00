//! Each rule's classification of losses of known cause.

use super::*;
use narrows_base::Duration;

fn tracker(classifier: &str) -> LossTracker {
    LossTracker::new(read(&Spec::parse(classifier).unwrap()).unwrap())
}

/// The classifications of losses, for packets sent every 10 ms with these trip times in milliseconds; `None` is lost.
fn classifications(classifier: &str, trips: &[Option<u64>]) -> Vec<bool> {
    let mut tracker = tracker(classifier);
    let mut classifications = Vec::new();
    let mut next = 0;
    for (i, trip) in trips.iter().enumerate() {
        let sent = Time::ZERO + Duration::from_millis(10 * i as u64);
        if let Some(trip) = trip {
            tracker.on_arrival(sent + Duration::from_millis(*trip), sent, (next, i as u64));
            next = i as u64 + 1;
            classifications.extend(tracker.classified().map(|j| j.2));
        }
    }
    classifications
}

/// A queue that grows to 100 ms, loses one there, drains, and the radio loses one.
fn trips_of_a_radio_loss() -> Vec<Option<u64>> {
    let mut trips = vec![Some(50); 40];
    trips.extend((0..50).map(|i| Some(50 + 2 * i)));
    trips.push(None);
    trips.extend([Some(150), Some(150)]);
    trips.extend((0..10).map(|i| Some(150 - 10 * i)));
    trips.extend([Some(50); 30]);
    trips.push(None);
    trips.extend([Some(50); 5]);
    trips
}

#[test]
fn spike_tells_a_full_queue_from_an_empty_one() {
    assert_eq!(classifications("spike", &trips_of_a_radio_loss()), [false, true]);
    assert_eq!(classifications("none", &trips_of_a_radio_loss()), [false, false]);
}

#[test]
fn spike_ends_lower_than_it_begins() {
    let mut trips = vec![Some(0), Some(120), None, Some(50), None, Some(39), None, Some(59)];
    assert_eq!(classifications("spike", &trips), [false, true, true]);
    trips.extend([None, Some(61)]);
    assert_eq!(classifications("spike", &trips), [false, true, true, false]);
}

#[test]
fn biaz_counts_the_time_that_lost_packets_took() {
    // Evenly spaced arrivals: missing packets leave a gap of their own length.
    let even = [Some(5), Some(5), None, Some(5), None, None, Some(5)];
    assert_eq!(classifications("biaz", &even), [true, true]);
    // The queue was full: no gap, as the packets behind waited there; or a gap that is too long.
    assert_eq!(classifications("biaz", &[Some(30), Some(30), None, Some(20)]), [false]);
    assert_eq!(classifications("biaz", &[Some(30), Some(30), None, Some(41)]), [false]);
    assert_eq!(classifications("biaz(phi=2.25)", &[Some(30), Some(30), None, Some(41)]), [true]);
    assert_eq!(classifications("biaz(sigma=1.25)", &even), [false, false]);
}

#[test]
fn zigzag_is_harder_on_single_losses() {
    let mut trips: Vec<_> = (0..200).map(|i| Some(if i % 2 == 0 { 40 } else { 60 })).collect();
    // At the mean, one missing packet is congestion, four are radio losses.
    trips.extend([None, Some(50), None, None, None, None, Some(50), None, Some(20)]);
    assert_eq!(classifications("zigzag", &trips), [false, true, true]);
}

#[test]
fn the_books_name_radio_losses_until_trimmed() {
    let mut tracker = tracker("spike");
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    for (now, sent, gap) in
        [(50, 0, (0, 0)), (60, 10, (1, 1)), (160, 40, (2, 4)), (190, 140, (5, 9))]
    {
        tracker.on_arrival(at(now), at(sent), gap);
    }
    let radio: Vec<u64> = (0..12).filter(|n| tracker.is_radio(*n)).collect();
    assert_eq!(radio, [5, 6, 7, 8], "2 and 3 were lost in a spike");
    tracker.trim_below(7);
    assert!(!tracker.is_radio(6) && tracker.is_radio(8));
    // A peer that skips numbers without end.
    for i in 0..10_000_u64 {
        tracker.on_arrival(at(200 + i), at(150 + i), (9 + 2 * i, 10 + 2 * i));
    }
    assert!(tracker.radio.len() <= MAX_RANGES);
}

#[test]
fn an_unknown_rule_is_refused_with_the_names() {
    let error = read(&Spec::parse("spiky").unwrap()).err().unwrap().to_string();
    assert!(error.contains("spike"), "{error}");
}
