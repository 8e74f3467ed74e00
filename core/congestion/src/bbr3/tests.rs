use super::cases::{leave, path_in};
use super::{AckSample, Bbr3State, fresh};
use crate::scenario::build;
use crate::scenario_path::SimplePath;
use crate::{CongestionEvent, Controller, SpuriousLosses};
use narrows_base::{Duration, Time};

fn seconds(s: f64) -> Time {
    Time::from_secs_f64(s)
}

#[test]
fn alone_it_uses_the_path_with_a_short_queue() {
    let mut path = SimplePath::new(build("bbr3"));
    path.run(seconds(5.0));
    path.most_waiting = 0;
    let used = path.utilisation(seconds(30.0));
    assert!(used > 0.94, "{used}");
    // A probe adds a quarter of the BDP, 51 packets, in each of three rounds.
    assert!(path.most_waiting < 50, "{}", path.most_waiting);
}

#[test]
fn loss_below_its_threshold_does_not_slow_it() {
    let mut path = SimplePath::new(build("bbr3"));
    path.lose = |number| number % 100 == 99;
    let used = path.utilisation(seconds(30.0));
    assert!(used > 0.85, "{used}");
}

/// Purpose of version 3: with a buffer of 0.1 BDP, version 1 loses a tenth of its packets.
#[test]
fn shallow_buffer_bounds_bytes_in_flight() {
    let lost = |name: &str| {
        let mut path = SimplePath::new(build(name));
        path.queue_limit = 5;
        path.run(seconds(5.0));
        let dropped = path.dropped;
        let delivered = path.delivered;
        let used = path.utilisation(seconds(35.0));
        assert!(used > 0.85, "{name} {used}");
        (path.dropped - dropped) as f64 / (path.delivered - delivered) as f64
    };
    let three = lost("bbr3");
    let one = lost("bbr");
    assert!(three < 0.02, "{three} beside {one}");
}

#[test]
fn min_rtt_is_probed_with_half_a_bdp_in_flight() {
    let mut path = SimplePath::new(build("bbr3"));
    // A standing queue that it did not make: the path gets longer.
    path.run(seconds(3.0));
    path.delay = Duration::from_millis(80);
    path.least_window = f64::INFINITY;
    path.run(seconds(14.0));
    assert!((15.0..40.0).contains(&path.least_window), "{}", path.least_window);
    let used = path.utilisation(seconds(30.0));
    assert!(used > 0.9, "the longer RTT is believed after ten seconds: {used}");
}

#[test]
fn a_rate_that_rises_is_found_within_a_few_probes() {
    let mut path = SimplePath::new(build("bbr3"));
    path.rate_bps = 2e6;
    path.run(seconds(10.0));
    path.rate_bps = 20e6;
    path.run(seconds(25.0));
    let used = path.utilisation(seconds(35.0));
    assert!(used > 0.85, "{used}");
}

#[test]
fn a_rate_that_falls_is_followed() {
    let mut path = SimplePath::new(build("bbr3"));
    path.queue_limit = 50;
    path.run(seconds(10.0));
    path.rate_bps = 2e6;
    path.run(seconds(20.0));
    let dropped = path.dropped;
    let delivered = path.delivered;
    let used = path.utilisation(seconds(40.0));
    assert!(used > 0.9, "{used}");
    let lost = (path.dropped - dropped) as f64 / (path.delivered - delivered) as f64;
    assert!(lost < 0.03, "{lost}");
}

/// Section 5.5.5: an application-limited sample counts only if it is not below the estimate, since it may be below the
/// path's capacity. The sample of the present cycle is visible once the cycle before is discarded.
#[test]
fn application_limited_rate_counts_only_above_the_estimate() {
    let sample = |rate: f64, app_limited: bool| AckSample {
        now: seconds(1.0),
        rate,
        delivered: 1.0,
        prior_delivered: 0,
        newly_delivered: 1,
        app_limited,
        tx_in_flight: 1.0,
        lost: 0.0,
        outstanding: 1.0,
        window_limited: false,
    };
    let after = |rate: f64, app_limited: bool| {
        let mut bbr = fresh(&crate::Environment::default());
        bbr.update_congestion(&sample(100.0, false));
        bbr.bandwidth.advance();
        bbr.update_congestion(&sample(rate, app_limited));
        bbr.bandwidth.advance();
        bbr.bandwidth.max()
    };
    assert_eq!(after(60.0, false), 60.0, "measured on the path");
    assert_eq!(after(60.0, true), 0.0, "not a rate of the path");
    assert_eq!(after(100.0, true), 100.0, "no less than the estimate");
    assert_eq!(after(120.0, true), 120.0, "more than it");
}

#[test]
fn partly_spurious_recovery_keeps_the_reduction() {
    let mut path = path_in(Bbr3State::Up);
    path.lose = |number| number % 10 == 0;
    assert_eq!(leave(&mut path), Bbr3State::Down);
    let reduced = path.controller.in_flight.long_term;
    let spurious = SpuriousLosses { now: path.now, packets: 1, undo: false };
    path.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
    assert_eq!(path.controller.state, Bbr3State::Down);
    assert_eq!(path.controller.in_flight.long_term, reduced);
}

#[test]
fn startup_ended_by_spurious_losses_continues() {
    let mut bbr = fresh(&crate::Environment::default());
    bbr.save_model();
    bbr.losses_end_state();
    bbr.full.reached = true;
    bbr.in_flight.long_term = 9.0;
    bbr.state = Bbr3State::Drain;
    bbr.undo_losses();
    assert_eq!(bbr.state, Bbr3State::Startup);
    assert!(!bbr.full.reached && bbr.in_flight.long_term.is_infinite());
    bbr.in_flight.long_term = 9.0;
    bbr.undo_losses();
    assert_eq!(bbr.in_flight.long_term, 9.0, "an episode is undone once");
}
