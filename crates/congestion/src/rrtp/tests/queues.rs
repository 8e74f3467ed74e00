//! What is a queue, and whose it is.

use super::Bottleneck;
use crate::PathHints;

/// Round trips that vary by themselves look like a queue until the window has been seen not to move them.
#[test]
fn jitter_is_no_queue() {
    for jitter in [0.01, 0.02, 0.04] {
        let mut b = Bottleneck { jitter, ..Bottleneck::new(PathHints::default()) };
        b.run(5.0);
        let rate = b.run(15.0);
        assert!(rate > 880.0, "{jitter}: {rate}");
        assert!(b.mean_delay() < 0.03, "{jitter}: {}", b.mean_delay());
        let noise = b.watch("noise_s");
        assert!(noise < jitter, "{jitter}: {noise}");
    }
}

/// Where jitter is longer than the path, no cut is judged by what a round happens to bring, and a single loss is no
/// congestion once the jitter is known: 692 packets per second in the mean of twelve runs, 637 where it is, 476 where cuts
/// are judged, 436 where both are.
#[test]
fn jitter_longer_than_the_path_hides_room_from_few_runs() {
    let rate = |stream| {
        let (radio, random, draw) = (100, true, stream);
        let path = Bottleneck::new(PathHints::default());
        let mut b = Bottleneck { jitter: 0.06, radio, random, stream, draw, ..path };
        b.run(5.0);
        b.run(20.0)
    };
    let mean = (1..=12).map(rate).sum::<f64>() / 12.0;
    assert!(mean > 650.0, "{mean}");
}

#[test]
fn alone_it_fills_the_link_and_not_the_queue_whatever_the_radio_loses() {
    for radio in [0, 100, 20] {
        let mut b = Bottleneck { radio, ..Bottleneck::new(PathHints::default()) };
        b.run(3.0);
        assert!(b.default_mode(), "1/{radio}");
        let rate = b.run(10.0);
        let share = if radio == 0 { 1.0 } else { 1.0 - 1.0 / radio as f64 };
        assert!(rate > 0.98 * share * 1000.0, "1/{radio}: {rate}");
        assert!(b.mean_delay() < 0.008, "1/{radio}: {}", b.mean_delay());
    }
}

#[test]
fn who_stays_although_we_hold_back_is_met_with_a_window_until_it_leaves() {
    let mut b = Bottleneck::new(PathHints::default());
    b.run(5.0);
    assert!(b.default_mode());
    // Somebody fills the queue and does not yield.
    b.other = 70;
    b.run(7.0);
    assert!(b.competitive());
    let rate = b.run(20.0);
    assert!(rate > 200.0, "its part of what is left: {rate}");
    b.other = 0;
    // The question is asked each 24 rounds at the latest.
    b.run(24.0);
    assert!(b.default_mode(), "nobody is there any more");
    assert!(b.run(26.0) > 980.0);
}

/// Between two processes of one machine round trips of 10 µs to 0.6 ms are their turns on a processor.
/// Taken for a queue they leave windows of a few packets, each sent and answered by itself.
#[test]
fn on_a_path_of_microseconds_the_turns_of_hosts_are_no_queue() {
    let mut b = Bottleneck::new(PathHints::default());
    (b.rtt, b.per_second) = (20e-6, 1e6);
    b.run(0.2);
    assert_eq!(b.watch("min_rtt_s"), 1e-3);
}
