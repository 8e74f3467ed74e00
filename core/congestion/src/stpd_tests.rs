use super::{Gains, PRODUCT, Supervisor, fuzzy};
use crate::scenario::{IdealPath, build, lost};
use crate::scenario_path::SimplePath;
use narrows_base::{Duration, Time};

#[test]
fn at_three_packets_the_gains_are_those_that_s0_prints() {
    let Gains { kp, kd } = Supervisor::Table(fuzzy()).gains(3);
    assert!((kp - 0.368).abs() < 5e-4, "{kp}");
    assert!((kd - 0.033).abs() < 5e-4, "{kd}");
}

#[test]
fn kp_falls_and_kd_rises_with_the_product() {
    let supervisor = Supervisor::Table(fuzzy());
    for x in 1..400 {
        let a = supervisor.gains(x);
        let b = supervisor.gains(x + 1);
        assert!(b.kp < a.kp && b.kd >= a.kd, "{x}");
    }
    assert_eq!(supervisor.gains(240).kp, 0.0085 / 2.0);
    assert_eq!(PRODUCT.map(|t| t.name)[4], "extremely large");
}

/// Section 11.5: with loop delay m + 1 the proportional loop is stable below
/// Ku = 2 sin(pi / (2 (2m + 1))).
#[test]
fn kp_stays_below_the_limit_of_stability() {
    let supervisor = Supervisor::Table(fuzzy());
    for m in 1..400 {
        let limit = 2.0 * (std::f64::consts::PI / (2.0 * (2.0 * m as f64 + 1.0))).sin();
        assert!(supervisor.gains(m).kp < 0.9 * limit, "{m}");
    }
}

/// Ziegler and Nichols' rule fills paths of any length without losses, as the fuzzy rules do. Below three packets its
/// derivative gain is above the limit of stability.
#[test]
fn gains_by_frequency_response_keep_a_path_full() {
    for ms in [10, 80, 160] {
        let mut path = SimplePath::new(build("stpd(supervisor=ziegler-nichols)"));
        path.delay = Duration::from_millis(ms);
        path.run(Time::from_secs_f64(30.0));
        let bdp = path.rate_bps * path.delay.as_secs_f64() / 8000.0;
        let window = path.window();
        assert!((bdp..1.1 * bdp + 4.0).contains(&window), "{ms} ms: {window}");
        assert_eq!(path.dropped, 0, "{ms} ms");
    }
}

#[test]
fn error_moves_the_window_proportionally_and_by_its_change() {
    let mut s = IdealPath::new(build("stpd(supervisor=fixed,kp=0.1,kd=0.2,startup=pd)"));
    s.acks(1); // no queue: err = 1, no derivative yet
    assert!((s.window() - 4.1).abs() < 1e-12);
    s.rtt = Duration::from_millis(200); // 4 packets, half of them queued: err = -1
    s.acks(1);
    assert!((s.window() - (4.1 - 0.1 - 0.4)).abs() < 1e-12, "{}", s.window());
}

#[test]
fn loss_leaves_the_window_and_a_timeout_begins_anew() {
    let mut s = IdealPath::new(build("stpd"));
    s.acks(16);
    s.recovery();
    assert_eq!(s.window(), 20.0);
    s.timeout();
    assert_eq!(s.window(), 1.0);
    s.acks(3);
    assert_eq!(s.window(), 4.0, "slow start again");
}

/// Slow start, a round in which other flows can react, two rounds at a quarter, and growth as in slow start.
#[test]
fn the_path_is_drained_once_after_slow_start() {
    let mut s = IdealPath::new(build("stpd"));
    s.acks(16);
    assert_eq!(s.window(), 20.0);
    // Scenario: as many packets were sent since as the window has.
    s.rtt = Duration::from_millis(200);
    s.acks(1);
    s.acks(19);
    assert_eq!(s.window(), 20.0, "held for the round in which others see the queue");
    s.acks(1);
    assert_eq!(s.window(), 5.0);
    s.rtt = Duration::from_millis(100);
    s.acks(24);
    assert_eq!(s.window(), 5.0, "what was in flight, and a round at a quarter");
    s.acks(1);
    assert_eq!(s.window(), 5.0);
    s.acks(14);
    assert_eq!(s.window(), 19.0, "one packet per acknowledgement");
    s.acks(2);
    assert!(s.window() > 20.0 && s.window() < 20.1, "control: {}", s.window());
    // A timeout restarts, but the path has been measured.
    s.timeout();
    s.acks(7);
    s.rtt = Duration::from_millis(200);
    s.acks(2);
    assert!(s.window() < 8.0 && s.window() >= 7.0, "control, not held: {}", s.window());
}

/// A loss while packets queue ends slow start, but not the drain.
#[test]
fn a_loss_to_a_short_queue_begins_the_drain() {
    for (start, drained) in [("stpd", true), ("stpd(startup=slow)", false)] {
        let mut s = IdealPath::new(build(start));
        s.acks(16);
        s.rtt = Duration::from_millis(110); // 20 packets, two of them queued: less than a quarter
        s.acks(2);
        assert_eq!(s.window(), 22.0, "{start}");
        let loss = lost(s.now, s.now, 1, crate::LossFoundBy::Sack);
        s.controller.on_congestion_event(&crate::CongestionEvent::Losses(loss));
        s.acks(40);
        assert_eq!(s.window() < 6.0, drained, "{start}: {}", s.window());
    }
}

#[test]
fn window_stays_if_the_sender_does_not_fill_it() {
    let mut s = IdealPath::new(build("stpd"));
    s.window_limited = false;
    s.acks(100);
    assert_eq!(s.window(), 4.0);
}

/// Section 11.8, F3.8: 1.5 Mbit/s, 20.2 ms one way, 14 packets of buffer: window 9.9 to 10.8 and utilisation 0.995 in
/// an earlier simulation; the ST-PD thesis claims 10 to 12, a queue near 1.
#[test]
fn one_flow_keeps_about_a_packet_queued() {
    for room in [14, 4] {
        let mut path = SimplePath::new(build("stpd"));
        path.rate_bps = 1.5e6;
        path.delay = Duration::from_micros(40_800);
        path.queue_limit = room;
        path.run(Time::from_secs_f64(10.0));
        let dropped = path.dropped;
        path.least_window = f64::INFINITY;
        path.most_waiting = 0;
        let utilisation = path.utilisation(Time::from_secs_f64(30.0));
        assert!(utilisation > 0.99, "{room}: {utilisation}");
        assert!((9.5..11.0).contains(&path.least_window), "{room}: {}", path.least_window);
        assert!((9.5..12.0).contains(&path.window()), "{room}: {}", path.window());
        assert!(path.most_waiting <= 3, "{room}: {}", path.most_waiting);
        assert_eq!(path.dropped, dropped, "none after the start");
    }
}

/// F4.21: GEO link; packets 2000 and 2001 are lost without effect on the window.
#[test]
fn long_path_fills_and_survives_two_losses() {
    let mut path = SimplePath::new(build("stpd"));
    path.rate_bps = 1.5e6;
    path.delay = Duration::from_millis(501);
    path.queue_limit = 100;
    path.lose = |number| number == 2000 || number == 2001;
    path.run(Time::from_secs_f64(30.0));
    let utilisation = path.utilisation(Time::from_secs_f64(60.0));
    assert!(utilisation > 0.99, "{utilisation}");
    assert!((94.0..99.0).contains(&path.window()), "{}", path.window());
    assert_eq!(path.timeouts, 0);
}

/// F4.8 with selective repair: an earlier simulation gives .990, .978, .951 and .845 over a run with its start. The
/// ST-PD thesis claims .94 to .95 at 1e-2 and .40 at 1e-1, with a recovery that it does not name.
#[test]
fn random_loss_costs_little() {
    type Lose = fn(u64) -> bool;
    let lose: [(Lose, f64); 4] = [
        (|n| narrows_base::RandomKey::from_seed(7).draw(n) < 1e-3, 0.990),
        (|n| narrows_base::RandomKey::from_seed(7).draw(n) < 1e-2, 0.978),
        (|n| narrows_base::RandomKey::from_seed(7).draw(n) < 3e-2, 0.951),
        (|n| narrows_base::RandomKey::from_seed(7).draw(n) < 1e-1, 0.845),
    ];
    for (lose, want) in lose {
        let mut path = SimplePath::new(build("stpd"));
        path.rate_bps = 1.5e6;
        path.delay = Duration::from_millis(161);
        path.queue_limit = 30;
        path.lose = lose;
        let utilisation = path.utilisation(Time::from_secs_f64(200.0));
        assert!((utilisation - want).abs() < 0.02, "{want}: {utilisation}");
        assert_eq!(path.timeouts, 0);
    }
}
