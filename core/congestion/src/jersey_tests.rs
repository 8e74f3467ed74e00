use super::RateEstimate;
use crate::scenario::{IdealPath, build};
use crate::scenario_path::SimplePath;
use narrows_base::{Duration, Time};

fn estimate() -> RateEstimate {
    RateEstimate { k: 1.0, per_second: 0.0, last: None }
}
const RTT: Duration = Duration::from_millis(100);

/// ACKs every 5 ms in an RTT of 100 ms: 200 segments/s, 20 in a round trip.
fn steady(spec: &str) -> IdealPath {
    let mut s = IdealPath::new(build(spec));
    s.acks(4000);
    s
}
fn mark(s: &mut IdealPath) {
    let recovery = crate::RecoveryEvent {
        now: s.now,
        cause: crate::RecoveryCause::EcnCe,
        flight: 10,
        outstanding: 10,
        min_rtt: s.min_rtt,
        srtt: s.rtt,
    };
    s.controller.on_congestion_event(&crate::CongestionEvent::RecoveryStart(recovery));
    s.controller.on_congestion_event(&crate::CongestionEvent::RecoveryEnd(recovery));
}

/// Gain T/(T + RTT), fixed point L/T.
#[test]
fn estimate_approaches_the_ack_rate_by_its_gain() {
    let mut e = estimate();
    e.acked(Time::ZERO, 1, RTT);
    assert_eq!(e.per_second, 0.0, "one ACK says nothing");
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    e.acked(at(25), 2, RTT);
    assert!((e.per_second - 2.0 / 0.125).abs() < 1e-9);
    let rate = 2.0 / 0.025;
    for n in 2..200_u64 {
        let before = e.per_second;
        e.acked(at(25 * n), 2, RTT);
        let moved = (e.per_second - before) - (rate - before) * 25.0 / 125.0;
        assert!(moved.abs() < 1e-9, "{n}: {moved}");
    }
    assert!((e.per_second - rate).abs() < 1e-9);
}

#[test]
fn more_round_trips_in_the_average_make_it_slower() {
    let after_a_second = |k: f64| {
        let mut e = RateEstimate { k, ..estimate() };
        for n in 0..=100 {
            e.acked(Time::ZERO + Duration::from_millis(10 * n), 1, RTT);
        }
        e.per_second
    };
    assert!((after_a_second(1.0) - 100.0).abs() < 0.1);
    // 100 updates, each keeping 1/(1 + 0.01) of the distance.
    let left = (0..100).fold(100.0, |left, _| left / 1.01);
    assert!((after_a_second(10.0) - (100.0 - left)).abs() < 0.01);
}

#[test]
fn duplicates_count_as_arrivals_once() {
    let rate = |advances: &[u64]| {
        let mut s = IdealPath::new(build("jersey"));
        s.acks(1);
        for advance in advances {
            let ack = s.ack(*advance, *advance == 0);
            s.controller.on_ack(&ack);
        }
        let mut seen = 0.0;
        s.controller.watch(&mut |name, x| {
            if name == "bandwidth_bps" {
                seen = x;
            }
        });
        seen
    };
    // Three duplicates, then an ACK for four: each a segment's arrival.
    assert_eq!(rate(&[0, 0, 0, 4]).to_bits(), rate(&[1, 1, 1, 1]).to_bits());
}

#[test]
fn mark_sets_the_window_to_the_rate_estimate() {
    let mut s = steady("jersey");
    let before = s.window();
    assert!(before > 21.0, "{before}");
    mark(&mut s);
    assert!((s.window() - 20.0).abs() < 0.01, "{}", s.window());
    assert_eq!(s.ssthresh(), Some(s.window()));
    s.acks(20);
    assert!((s.window() - 21.0).abs() < 0.05, "congestion avoidance goes on: {}", s.window());
}

#[test]
fn a_mark_in_slow_start_ends_it() {
    let mut s = IdealPath::new(build("jersey"));
    s.acks(60);
    assert_eq!(s.window(), 64.0, "still in slow start");
    mark(&mut s);
    assert!(s.window() < 21.0, "{}", s.window());
    let after = s.window();
    s.acks(1);
    assert_eq!(s.window(), after + 1.0 / after);
}

#[test]
fn a_mark_widens_the_window_only_where_it_is_assigned() {
    for (spec, widens) in [("jersey", false), ("jersey(assign=always)", true)] {
        let mut s = steady(spec);
        s.timeout();
        mark(&mut s);
        assert_eq!(s.window() > 19.0, widens, "{spec}");
    }
}

#[test]
fn a_loss_without_a_mark_leaves_the_window() {
    let mut s = steady("jersey");
    let before = (s.window(), s.ssthresh());
    s.recovery();
    assert_eq!((s.window(), s.ssthresh()), before);
}

#[test]
fn a_timeout_starts_anew_below_the_optimum() {
    let mut s = steady("jersey");
    s.timeout();
    assert_eq!(s.window(), 1.0);
    assert!((s.ssthresh().unwrap() - 20.0).abs() < 0.01);
    let mut s = IdealPath::new(build("jersey"));
    s.timeout();
    assert_eq!(s.ssthresh(), Some(2.0), "nothing is known: two segments");
}

/// The receiver saw a packet every 5 ms; the ACKs arrived in bunches of ten.
#[test]
fn arrival_times_are_immune_to_bunched_acks() {
    let optimum = |spec: &str| {
        let mut s = IdealPath::new(build(spec));
        let mut min = f64::MAX;
        let mut max = 0.0_f64;
        for n in 0..4000_u64 {
            s.gap = Duration::ZERO;
            let mut ack = s.ack(1, false);
            ack.now = Time::ZERO + Duration::from_millis(50 * (n / 10));
            ack.arrived = Some(Time::from_secs_f64(777.0) + Duration::from_millis(5 * n));
            s.controller.on_ack(&ack);
            if n > 2000 {
                s.controller.watch(&mut |name, x| {
                    if name == "bandwidth_bps" {
                        min = min.min(x);
                        max = max.max(x);
                    }
                });
            }
        }
        (min, max)
    };
    let (min, max) = optimum("jersey(estimator=new-jersey)");
    assert!((min - 1.6e6).abs() < 80.0 && (max - 1.6e6).abs() < 80.0, "{min} {max}");
    let (min, max) = optimum("jersey");
    assert!(max - min > 0.4e6, "the ACKs' own times do not: {min} {max}");
}

#[test]
fn without_receiver_stamps_new_jersey_is_jersey() {
    let a = steady("jersey");
    let b = steady("jersey(estimator=new-jersey)");
    assert_eq!(a.window().to_bits(), b.window().to_bits());
}

/// By the paper: behind a plain queue there are no marks, so every loss looks like the radio's, and the window grows
/// despite losses.
#[test]
fn as_printed_losses_without_marks_never_reduce_the_window() {
    let mut path = SimplePath::new(build("jersey(unmarked=radio)"));
    path.queue_limit = 50;
    path.run(Time::from_secs_f64(20.0));
    assert!(path.dropped > 100, "{}", path.dropped);
    assert_eq!(
        (path.timeouts, path.least_window),
        (0, 5.0),
        "the first ACK grows, nothing falls below"
    );
    assert_eq!(path.window(), path.most_window);
}

/// 50 packets of path and 50 of queue: each loss to the full queue sets the window to the rate of the empty path.
#[test]
fn full_queue_loss_sets_the_window_of_an_empty_path() {
    let mut path = SimplePath::new(build("jersey"));
    path.queue_limit = 50;
    path.run(Time::from_secs_f64(20.0));
    path.least_window = f64::INFINITY;
    let dropped = path.dropped;
    let utilisation = path.utilisation(Time::from_secs_f64(60.0));
    assert!(utilisation > 0.98, "{utilisation}");
    assert!(path.dropped - dropped < 40, "{}", path.dropped - dropped);
    assert!((40.0..60.0).contains(&path.least_window), "{}", path.least_window);
}

/// A queue of a quarter of the path's packets; with the smallest RTT, 20 segments fit. A mark shows that routers warn,
/// so a later loss is attributed to the radio.
#[test]
fn unmarked_loss_is_congestion_only_with_a_queue() {
    let loss = |spec: &str, marked: bool, rtt_ms: u64| {
        let mut s = steady(spec);
        if marked {
            mark(&mut s);
        }
        s.acks(4000);
        s.rtt = Duration::from_millis(rtt_ms);
        s.acks(100);
        let before = s.window();
        s.recovery();
        (s.window(), before)
    };
    let (after, before) = loss("jersey", false, 125);
    assert!((after - 20.0).abs() < 0.1 && before > 24.0, "{before} to {after}");
    for (spec, marked, rtt) in
        [("jersey", false, 100), ("jersey", true, 125), ("jersey(unmarked=radio)", false, 125)]
    {
        let (after, before) = loss(spec, marked, rtt);
        assert_eq!(after, before, "{spec}, marked: {marked}, {rtt} ms");
    }
}
