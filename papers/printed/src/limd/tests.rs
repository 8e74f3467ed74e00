//! The RRTP thesis's bounded LIMD, epoch by epoch.

use super::*;
use narrows_congestion::fuzz::report;
use narrows_congestion::{Arrival, SlowStartRestart};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Told 800 kbit/s, a hundred packets of 1000 bytes per second, and a round trip of 100 ms.
fn limd_with(rise: &str) -> Box<dyn Controller> {
    let hints = PathHints {
        rate: Some(Rate::from_bps(800_000)),
        rtt: Some(Duration::from_millis(100)),
        loss: None,
    };
    let environment = Environment { hints, ..Environment::default() };
    let spec = narrows_base::Spec::parse(&format!("limd(rise={rise})")).unwrap();
    build(&Settings::read(&spec, DESCRIPTOR.params).unwrap(), &environment)
}
fn lasthop() -> Box<dyn Controller> {
    let hints = PathHints {
        rate: Some(Rate::from_bps(800_000)),
        rtt: Some(Duration::from_millis(100)),
        loss: None,
    };
    build_lasthop(&Settings::defaults(&[]), &Environment { hints, ..Environment::default() })
}

fn rate(c: &dyn Controller) -> f64 {
    c.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0
}

/// An epoch with this ratio of gaps; packets are sent at the controller's rate.
fn epoch(c: &mut dyn Controller, number: u64, ratio: f64) -> f64 {
    let left = 1.0 / rate(c);
    let feedback = Feedback::of(&[ratio * left, left, 0.0, number as f64]);
    c.on_ack(&report(at(100 * number), feedback, Duration::from_millis(100)));
    rate(c)
}

/// The rate after a pair that left so many milliseconds apart, and was acknowledged at 100 ms and at `second`.
fn paired(apart: u64, second: u64) -> f64 {
    let mut c = build_lasthop(&Settings::defaults(&[]), &Environment::default());
    assert_eq!(c.send_limits().cwnd, 2.0);
    for (seq, sent, now) in [(0, at(0), at(100)), (1, at(apart), at(second))] {
        c.on_packet_outcome(&PacketOutcome::arrived(now, seq, sent, 1000));
        c.on_ack(&report(now, Feedback::default(), now.since(sent)));
    }
    rate(&*c)
}

/// The RRTP thesis, section 3.2: 1000 bytes in max(X, Y).
#[test]
fn first_pair_sets_rate_by_larger_interval() {
    assert!((paired(0, 108) - 125.0).abs() < 0.1);
    assert!((paired(10, 108) - 100.0).abs() < 0.1, "closer than they left");
    assert!((paired(6, 108) - 125.0).abs() < 0.1, "less than twice as far apart");
}

/// The RRTP thesis: factors .95, .90, .80, .60, .50 and .50, above the lower bound of half the given rate, which is
/// halved when beta has reached .5.
#[test]
fn signs_of_congestion_in_a_row_cut_ever_deeper() {
    let mut c = limd_with("printed");
    let mut rates = Vec::new();
    for number in 1..=8 {
        rates.push(epoch(&mut *c, number, 1.2));
    }
    let expected = [95.0, 85.5, 68.4, 50.0, 25.0, 12.5, 6.25, 3.125];
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate - expected).abs() < 0.1, "{rates:?}");
    }
}

#[test]
fn repeated_epoch_in_a_report_keeps_the_rate() {
    let mut c = limd_with("printed");
    assert!((epoch(&mut *c, 1, 1.2) - 95.0).abs() < 0.1);
    assert!((epoch(&mut *c, 1, 1.2) - 95.0).abs() < 0.1);
}

#[test]
fn steady_epochs_rise_only_with_the_probe() {
    let mut printed = limd_with("printed");
    let mut probing = limd_with("probe");
    for number in 1..=10 {
        epoch(&mut *printed, number, 1.0);
        epoch(&mut *probing, number, 1.0);
    }
    assert!((rate(&*printed) - 100.0).abs() < 0.1, "{}", rate(&*printed));
    // Five steps of a tenth; the upper bound moves with the receiving rate.
    assert!(rate(&*probing) > 140.0, "{}", rate(&*probing));
}

#[test]
fn draining_queue_lets_the_rate_rise_to_its_bound() {
    let mut c = limd_with("printed");
    assert!((epoch(&mut *c, 1, 1.2) - 95.0).abs() < 0.1);
    let after = epoch(&mut *c, 2, 0.9);
    assert!(after > 100.0 && after < 117.0, "{after}");
    // Beta is reset.
    assert!((epoch(&mut *c, 3, 1.2) / after - 0.95).abs() < 1e-3);
}

fn lose(c: &mut dyn Controller, sent: u64, now: u64, radio: bool) -> f64 {
    let sent = at(sent);
    let now = at(now);
    let seq = 1;
    let bytes = 1000;
    let lost = true;
    let marked = false;
    c.on_packet_outcome(&PacketOutcome { now, seq, sent, bytes, lost, marked, radio });
    rate(c)
}

/// P1 is lost, and P3 leaves with the acknowledgement of P2: that is no pair, or the rate would be one packet per RTT.
#[test]
fn packets_a_round_trip_apart_set_no_rate() {
    let mut c = build_lasthop(&Settings::defaults(&[]), &Environment::default());
    for (seq, sent, now) in [(1, at(0), at(108)), (2, at(108), at(216)), (3, at(216), at(324))] {
        c.on_packet_outcome(&PacketOutcome::arrived(now, seq, sent, 1000));
        c.on_ack(&report(now, Feedback::default(), now.since(sent)));
    }
    assert!(c.send_limits().pacing_rate.is_none_or(|rate| rate.as_bps() > 100_000));
}

/// Sections 3.4.1 and 4.4.2: all of the rate returns after a round trip, less what signs of congestion took meanwhile.
#[test]
fn rate_returns_a_round_trip_after_congestion() {
    let mut c = limd_with("printed");
    assert!((lose(&mut *c, 100, 201, false) - 50.0).abs() < 0.1);
    assert!((epoch(&mut *c, 3, 1.0) - 50.0).abs() < 0.1);
    assert!((epoch(&mut *c, 4, 1.0) - 100.0).abs() < 0.1);
    let mut signs = limd_with("printed");
    lose(&mut *signs, 100, 201, false);
    epoch(&mut *signs, 3, 1.2);
    assert!((epoch(&mut *signs, 4, 1.0) - 95.0).abs() < 0.1);
}

/// A timeout is the more severe form: slow start from a packet per round trip.
#[test]
fn rate_doubles_each_epoch_after_timeout() {
    let mut c = limd_with("printed");
    lose(&mut *c, 100, 201, false);
    let srtt = Duration::from_millis(100);
    c.on_congestion_event(&CongestionEvent::SlowStartRestart(SlowStartRestart {
        now: at(400),
        flight: 5,
        timeout: true,
        backoffs: 1,
        min_rtt: srtt,
        srtt,
    }));
    assert!((rate(&*c) - 10.0).abs() < 0.1);
    assert!((epoch(&mut *c, 5, 1.0) - 20.0).abs() < 0.1);
    assert!((lose(&mut *c, 500, 501, false) - 10.0).abs() < 0.1, "a loss in slow start");
    for (number, expected) in [(6, 10.0), (7, 40.0), (8, 80.0), (8, 80.0), (10, 160.0)] {
        let got = epoch(&mut *c, number, 1.0);
        assert!((got - expected).abs() < 0.1, "epoch {number}: {got}");
    }
    assert!((epoch(&mut *c, 11, 1.2) - 152.0).abs() < 0.1);
    assert!((epoch(&mut *c, 12, 1.0) - 152.0).abs() < 0.1);
}

#[test]
fn congestion_halves_once_per_rtt_and_radio_losses_never() {
    let mut c = limd_with("printed");
    assert!((lose(&mut *c, 100, 201, true) - 100.0).abs() < 0.1);
    assert!((lose(&mut *c, 110, 210, false) - 50.0).abs() < 0.1);
    assert!((lose(&mut *c, 120, 220, false) - 50.0).abs() < 0.1, "the same congestion");
    assert!((lose(&mut *c, 220, 330, false) - 25.0).abs() < 0.1);
}

/// As printed, a channel's sender follows the receive rate down, and up only while a queue empties.
#[test]
fn rate_on_a_dedicated_channel_is_divided_by_ratio() {
    let mut c = lasthop();
    assert!((epoch(&mut *c, 1, 1.25) - 80.0).abs() < 0.1);
    assert!((epoch(&mut *c, 2, 0.8) - 100.0).abs() < 0.1);
    for number in 3..=40 {
        assert!((epoch(&mut *c, number, 1.0) - 100.0).abs() < 0.1, "there is no probe");
    }
    assert!(c.send_limits().cwnd.is_infinite());
}

/// The RRTP thesis, section 4.4.2: an instantaneous recovery.
#[test]
fn congestion_on_a_dedicated_channel_halves_for_one_rtt() {
    let mut c = lasthop();
    assert!((lose(&mut *c, 100, 201, false) - 50.0).abs() < 0.1);
    assert!((epoch(&mut *c, 2, 1.0) - 50.0).abs() < 0.1);
    assert!((epoch(&mut *c, 4, 1.0) - 100.0).abs() < 0.1);
}

#[test]
fn a_rate_told_while_it_runs_replaces_its_own() {
    let mut c = limd_with("printed");
    for number in 1..=8 {
        epoch(&mut *c, number, 1.2);
    }
    let hints = PathHints { rate: Some(Rate::from_bps(1_600_000)), rtt: None, loss: None };
    c.on_path_event(at(1000), &PathEvent::Hints(hints));
    assert!((rate(&*c) - 200.0).abs() < 0.1);
    assert!((epoch(&mut *c, 9, 1.2) - 190.0).abs() < 0.1, "beta begins anew");
}

/// Gaps of 10 ms, then of 20 ms: the short average follows at once, and after five epochs is the long one.
#[test]
fn the_receiver_swaps_its_averages_after_five_epochs() {
    let mut r = LimdReceiver::new(false);
    let mut ms = 0;
    let mut reported = Vec::new();
    for seq in 0..200u64 {
        ms += if seq < 100 { 10 } else { 20 };
        let arrival = Arrival::new(at(ms), seq, at(10 * seq), 1000);
        if r.on_arrival(&arrival) {
            reported.push(r.feedback(at(ms)).number(0));
        }
    }
    assert!((reported[8] - 0.010).abs() < 1e-5, "{reported:?}");
    assert!(reported[10] > 0.015 && reported[10] < 0.018, "the short average: {reported:?}");
    assert!(reported[18] > 0.0195, "{reported:?}");
    // The long average alone would be here after fifty gaps of 20 ms: 0.016.
    assert!(r.long_gap() > 0.019, "{}", r.long_gap());
}

/// Rising trip times are reported once, with the packet that shows them.
#[test]
fn rising_trip_times_are_told_at_once() {
    let mut r = LimdReceiver::new(true);
    let mut reported = Vec::new();
    for seq in 0..40u64 {
        let queue = if seq < 20 { seq % 2 } else { 30 };
        let arrival = Arrival::new(at(10 * seq + 50 + queue), seq, at(10 * seq), 1000);
        if r.on_arrival(&arrival) && r.feedback(arrival.now).number(2) > 0.0 {
            reported.push(seq);
        }
    }
    assert_eq!(reported, [20], "with the packet that shows it, and not for a host's millisecond");
}
