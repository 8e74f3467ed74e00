//! SCReAM's window by losses, marks and delay, on ideal paths.

use crate::scenario::{IdealPath, build, lost};
use crate::{Ack, CongestionEvent, LossFoundBy};
use narrows_base::Duration;

/// An acknowledgement of a packet that was sent at the full target rate and waited in the queue for this time.
fn acknowledge(s: &mut IdealPath, queue: Duration, marks: u32) {
    let rate = s.controller.send_limits().pacing_rate.map_or(1e6, |r| r.as_bps() as f64);
    s.gap = Duration::from_secs_f64(8000.0 / rate);
    s.rtt = s.min_rtt + queue;
    let flight = (rate * s.rtt.as_secs_f64() / 8000.0).max(1.0) as u64;
    s.controller.on_sent(&crate::Sent::new(s.now, 1000, flight));
    let ack = Ack { marks, outstanding: flight, forward_delay: Some(queue), ..s.ack(1, false) };
    s.controller.on_ack(&ack);
}

fn scenario(spec: &str, rtt_ms: u64) -> IdealPath {
    let mut s = IdealPath::new(build(spec));
    s.rtt = Duration::from_millis(rtt_ms);
    s.min_rtt = Duration::from_millis(rtt_ms);
    s
}

fn rate(s: &IdealPath) -> f64 {
    s.controller.send_limits().pacing_rate.expect("it paces").as_bps() as f64
}

fn lose(s: &mut IdealPath) {
    let loss = lost(s.now, s.now, 1, LossFoundBy::Sack);
    s.controller.on_congestion_event(&CongestionEvent::Losses(loss));
}

#[test]
fn loss_takes_three_tenths_once_per_round_trip() {
    let mut s = scenario("scream", 50);
    for _ in 0..3000 {
        acknowledge(&mut s, Duration::ZERO, 0);
    }
    let before = rate(&s);
    lose(&mut s);
    assert!((rate(&s) / before - 0.7).abs() < 0.01, "{}", rate(&s) / before);
    let after = rate(&s);
    lose(&mut s);
    assert_eq!(rate(&s), after);
}

#[test]
fn growth_per_rtt_is_a_packet_and_two_percent() {
    let mut s = scenario("scream", 50);
    acknowledge(&mut s, Duration::ZERO, 0);
    // Far from its beginning, where the window is some packets.
    while rate(&s) < 20e6 {
        acknowledge(&mut s, Duration::ZERO, 0);
    }
    let before = rate(&s);
    let began = s.now;
    while s.now.since(began) < Duration::from_secs(1) {
        acknowledge(&mut s, Duration::ZERO, 0);
    }
    // The packets in flight are a window over 1.2; 20 round trips.
    let window = before * 0.05 * 1.2 / 8000.0;
    let expected = (0..20).fold(window, |w, _| w + (1.0 + 0.02 * w) / 1.2) / window;
    assert!((rate(&s) / before / expected - 1.0).abs() < 0.02, "{} {expected}", rate(&s) / before);
}

#[test]
fn growth_slows_from_half_the_target_delay_on() {
    for (queue_ms, falls) in [(25, false), (45, true)] {
        let mut s = scenario("scream(competing=off)", 50);
        for _ in 0..2000 {
            acknowledge(&mut s, Duration::ZERO, 0);
        }
        let before = rate(&s);
        let began = s.now;
        while s.now.since(began) < Duration::from_secs(2) {
            acknowledge(&mut s, Duration::from_millis(queue_ms), 0);
        }
        // The longer round trip alone lowers the rate for the same window.
        let longer = 50.0 / (50.0 + queue_ms as f64);
        assert_eq!(rate(&s) < before * longer * 0.95, falls, "{queue_ms}: {}", rate(&s) / before);
    }
}

/// A classic mark reduces the window by a fifth, whatever the share.
#[test]
fn a_classic_mark_takes_a_fifth() {
    let mut s = scenario("scream", 50);
    for _ in 0..3000 {
        acknowledge(&mut s, Duration::ZERO, 0);
    }
    let before = rate(&s);
    acknowledge(&mut s, Duration::ZERO, 1);
    assert!((rate(&s) / before - 0.8).abs() < 0.02, "{}", rate(&s) / before);
}

/// Whatever the share p of marked packets, it settles at the same multiple of 1 / p packets per round trip, as a scalable
/// controller does. By the authors that is 2 / p; with the encoder's margin of 1.2, and a mean share of marks that
/// follows an increase fast, it is 0.3 of that.
#[test]
fn with_l4s_the_rate_follows_the_share_of_marks() {
    let settle = |period: u64| {
        let mut s = scenario("scream(l4s=on)", 25);
        let mut sum = (0.0, 0.0);
        for n in 0..400_000u64 {
            acknowledge(&mut s, Duration::ZERO, u32::from(n % period == 0));
            if n > 200_000 {
                sum = (sum.0 + rate(&s), sum.1 + 1.0);
            }
        }
        sum.0 / sum.1 * 0.025 / 8000.0 / (2.0 * period as f64)
    };
    for period in [10, 30, 100, 300] {
        let ratio = settle(period);
        assert!((0.25..0.4).contains(&ratio), "{period}: {ratio}");
    }
}

/// Beside a flow that fills the queue and loses packets the target rises; alone it falls again.
#[test]
fn the_target_rises_beside_flows_that_fill_the_queue() {
    let target = |s: &IdealPath| {
        let mut found = f64::NAN;
        s.controller.watch(&mut |name, x| {
            if name == "queueing_target_s" {
                found = x;
            }
        });
        found
    };
    let mut s = scenario("scream", 50);
    for n in 0..5000 {
        acknowledge(&mut s, Duration::from_millis(if n < 100 { 0 } else { 150 }), 0);
        if n % 500 == 0 {
            lose(&mut s);
        }
    }
    assert!(target(&s) > 0.15, "{}", target(&s));
    let began = s.now;
    while s.now.since(began) < Duration::from_secs(60) {
        acknowledge(&mut s, Duration::ZERO, 0);
    }
    assert!(target(&s) < 0.061, "{}", target(&s));
}
