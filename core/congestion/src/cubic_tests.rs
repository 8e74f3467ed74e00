use crate::scenario::{IdealPath, build, build_in};
use crate::scenario_path::SimplePath;
use crate::{Controller, Environment};
use narrows_base::{Duration, Time};

fn with_window(spec: &str, window: f64) -> Box<dyn Controller> {
    let environment =
        Environment { initial_window: window, initial_ssthresh: window, ..Environment::default() };
    build_in(spec, &environment)
}

/// A window of `n` ACKs per RTT, for `seconds`.
fn ride(s: &mut IdealPath, seconds: f64) {
    let end = s.now + Duration::from_secs_f64(seconds);
    while s.now < end {
        s.gap = Duration::from_secs_f64(s.rtt.as_secs_f64() / s.window());
        s.acks(1);
    }
}

/// RFC 9438 section 4.9.2: the cubic continues where it was, as if no packet had been lost.
#[test]
fn spurious_loss_keeps_the_cubic() {
    let mut s = IdealPath::new(with_window("cubic", 1000.0));
    s.recovery();
    ride(&mut s, 4.0);
    let window = s.window();
    let ssthresh = s.ssthresh();
    s.recovery();
    assert!(s.window() < 0.75 * window);
    s.spurious(true);
    assert_eq!((s.window(), s.ssthresh()), (window, ssthresh));
    let mut other = IdealPath::new(with_window("cubic", 1000.0));
    other.recovery();
    ride(&mut other, 4.0);
    for s in [&mut s, &mut other] {
        ride(s, 3.0);
    }
    assert!((s.window() / other.window() - 1.0).abs() < 1e-3, "{} {}", s.window(), other.window());
}

/// Equation 1 against the walk: after a loss at 1000 segments, K = cbrt(300/0.4) = 9.09 s.
#[test]
fn the_window_follows_the_cubic_from_a_loss_and_back() {
    let mut s = IdealPath::new(with_window("cubic", 1000.0));
    s.recovery();
    assert_eq!((s.window(), s.ssthresh()), (700.0, Some(700.0)));
    let k = narrows_base::math::cbrt(300.0 / 0.4);
    for seconds in [2.0, 5.0, 9.0, 12.0, 15.0] {
        let t = seconds - s.now.as_secs_f64();
        ride(&mut s, t);
        // The window reaches the target of one RTT ahead within about that RTT.
        let want = 0.4 * (seconds - k) * (seconds - k) * (seconds - k) + 1000.0;
        assert!((s.window() - want).abs() < 0.01 * want, "{seconds}: {} {want}", s.window());
    }
}

#[test]
fn on_short_paths_it_grows_like_reno() {
    // alpha = 0.529 segments per RTT until the old window is reached again.
    let mut s = IdealPath::new(with_window("cubic", 20.0));
    s.rtt = Duration::from_millis(10);
    s.recovery();
    assert_eq!(s.window(), 14.0);
    ride(&mut s, 0.1);
    assert!((s.window() - (14.0 + 10.0 * 0.529)).abs() < 0.5, "{}", s.window());
    ride(&mut s, 0.1);
    assert!(s.window() > 24.0, "as fast as Reno above the old window: {}", s.window());
}

#[test]
fn a_shrinking_flow_lowers_its_plateau() {
    for (spec, plateau) in [("cubic", 700.0 * 0.85), ("cubic(fast-convergence=off)", 700.0)] {
        let mut s = IdealPath::new(with_window(spec, 1000.0));
        s.recovery();
        s.recovery();
        assert!((s.window() - 490.0).abs() < 1e-9);
        let mut w_max = 0.0;
        s.controller.watch(&mut |name, value| {
            if name == "w_max" {
                w_max = value;
            }
        });
        assert!((w_max - plateau).abs() < 1e-9, "{spec}: {w_max}");
    }
}

#[test]
fn timeout_restarts_at_one_then_avoids_congestion() {
    let mut s = IdealPath::new(with_window("cubic", 100.0));
    s.timeout();
    assert_eq!((s.window(), s.ssthresh()), (1.0, Some(70.0)));
    s.timeout();
    assert_eq!(s.ssthresh(), Some(70.0));
    s.acks(69);
    assert_eq!(s.window(), 70.0);
    ride(&mut s, 5.0);
    // K = 0: 70 + 0.4 5^3 = 120, or Reno's 50 rounds of 0.529 and then 1.
    assert!((115.0..130.0).contains(&s.window()), "{}", s.window());
}

/// FlightSize includes packets that arrived behind a hole, so 0.7 of it may exceed the window. Then a second
/// consecutive loss would not reduce it. After a lost retransmission, a timeout would set ssthresh to a multiple of
/// the path's capacity.
#[test]
fn loss_reduces_the_window_regardless_of_sacked_bytes() {
    let mut s = IdealPath::new(with_window("cubic", 100.0));
    s.extra_flight = 1500;
    s.recovery();
    assert_eq!((s.window(), s.ssthresh()), (70.0, Some(70.0)));
    s.timeout();
    assert!((s.ssthresh().unwrap() - 49.0).abs() < 1e-9, "{:?}", s.ssthresh());
}

#[test]
fn idle_time_does_not_grow_the_window() {
    let mut s = IdealPath::new(with_window("cubic", 1000.0));
    s.recovery();
    ride(&mut s, 3.0);
    let before = s.window();
    s.now += Duration::from_secs(60);
    let bytes = 1000;
    let outstanding = 1;
    s.controller.on_sent(&crate::Sent::new(s.now, bytes, outstanding));
    s.acks(10);
    assert!(s.window() - before < 1.0, "{before} {}", s.window());
    s.window_limited = false;
    ride(&mut s, 60.0);
    s.window_limited = true;
    s.acks(10);
    assert!(s.window() - before < 2.0, "{before} {}", s.window());
}

/// 10 Mbit/s, 40 ms: 51 segments fill the path, 400 more fit the queue.
fn deep_buffer(spec: &str) -> SimplePath {
    let mut path = SimplePath::new(build(spec));
    path.queue_limit = 400;
    path.run(Time::from_secs_f64(2.5));
    path
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    let on = deep_buffer("cubic");
    assert_eq!(on.dropped, 0);
    assert!(on.controller.send_limits().ssthresh.unwrap() < 450.0);
    assert!(deep_buffer("cubic(hystart=off)").dropped > 50);
}

#[test]
fn hystart_takes_back_a_false_alarm() {
    let mut s = IdealPath::new(build("cubic"));
    ride(&mut s, 0.35);
    s.rtt = Duration::from_millis(120);
    ride(&mut s, 0.2); // the round that was under way, and eight samples of the next
    let before = s.window();
    ride(&mut s, 0.1);
    assert!(s.window() < 1.4 * before, "conservative: {} {before}", s.window());
    s.rtt = Duration::from_millis(100);
    ride(&mut s, 0.3);
    assert!(s.window() > 3.0 * before, "slow start again: {} {before}", s.window());
    assert_eq!(s.ssthresh(), Some(f64::INFINITY));
}
