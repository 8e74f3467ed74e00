//! The 22 test cases of the draft's appendix, in its order. Where the draft leaves figures open, they are chosen here.

use super::{Bbr3, Bbr3State, fresh};
use crate::Environment;
use crate::scenario_path::{Policer, SimplePath};
use narrows_base::Duration;

/// Packets per second at 10 Mbit/s.
const CAPACITY: f64 = 1250.0;
/// A little more than the time between two ACKs.
const STEP: Duration = Duration::from_millis(1);
/// Longer than the RTT.
const ACK_PERIOD: Duration = Duration::from_millis(50);

pub(super) type Path = SimplePath<Bbr3>;

/// 10 Mbit/s, 40 ms, an unlimited queue.
fn path() -> Path {
    SimplePath::new(Box::new(fresh(&Environment::default())))
}

pub(super) fn path_in(state: Bbr3State) -> Path {
    let mut path = path();
    reach(&mut path, state);
    path
}

/// A path on which a probe has lost packets, so that `inflight_longterm` is set.
fn bounded_path() -> Path {
    let mut path = path();
    path.queue_limit = 10;
    reach(&mut path, Bbr3State::Up);
    reach(&mut path, Bbr3State::Cruise);
    assert!(path.controller.in_flight.long_term.is_finite());
    path
}

fn reach(path: &mut Path, state: Bbr3State) {
    let began = path.now;
    while path.controller.state != state {
        assert!(path.now.since(began) < Duration::from_secs(60), "{state:?} is not reached");
        path.run(path.now + STEP);
    }
}

/// Runs until the state changes; returns the new one.
pub(super) fn leave(path: &mut Path) -> Bbr3State {
    let left = path.controller.state;
    let began = path.now;
    while path.controller.state == left {
        assert!(path.now.since(began) < Duration::from_secs(30), "{left:?} does not end");
        path.run(path.now + STEP);
    }
    path.controller.state
}

/// Runs until the state changes, which is at the first ACK with no more than this in flight.
fn leave_below(path: &mut Path, limit: fn(&Bbr3) -> f64) -> Bbr3State {
    let left = path.controller.state;
    let mut steps_below = 0;
    while path.controller.state == left {
        let is_below = path.outstanding() as f64 <= limit(&path.controller);
        steps_below = if is_below { steps_below + 1 } else { 0 };
        assert!(steps_below <= 2, "{left:?} lasts");
        path.run(path.now + STEP);
    }
    assert!(path.outstanding() as f64 <= limit(&path.controller) + 1.0);
    path.controller.state
}

/// The application makes this share of the path's capacity.
fn limit_application(path: &mut Path, share: f64) {
    path.app_gap = Duration::from_secs_f64(1.0 / (share * CAPACITY));
}

fn assert_within_2_percent(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() <= 0.02, "{value}, expected {expected}");
}

/// Case 1.
#[test]
fn startup_at_bandwidth_plateau_drains() {
    let mut path = path();
    assert_eq!(leave(&mut path), Bbr3State::Drain);
    let bbr = &path.controller;
    assert_within_2_percent(bbr.bandwidth.max(), CAPACITY);
    assert!(bbr.full.rounds == 3 && bbr.full.now && bbr.full.reached);
}

/// Case 2.
#[test]
fn startup_with_losses_drains_when_application_limited() {
    let mut path = path();
    limit_application(&mut path, 0.6);
    path.run(path.now + Duration::from_secs(2));
    assert_eq!(path.controller.state, Bbr3State::Startup);
    path.lose = |number| number % 4 == 0;
    let state = leave(&mut path);
    let full = &path.controller.full;
    assert!(state == Bbr3State::Drain && full.now && full.reached, "{state:?} {full:?}");
}

/// Case 3. A flow that has drained the queue goes through Down at once.
#[test]
fn drain_with_bdp_in_flight_ends() {
    let mut path = path_in(Bbr3State::Drain);
    assert_eq!(path.controller.state.pacing_gain(), 0.5);
    let state = leave_below(&mut path, |bbr| bbr.target(1.0));
    assert!(state.probes_bandwidth(), "{state:?}");
}

/// Case 4. With the draft's example, 10% less bandwidth, a pacing gain of 0.5 drains the queue within a round; at half
/// the bandwidth it cannot. The condition of section 5.3.2 is met at the start of the fourth round.
#[test]
fn drain_of_overestimated_path_ends_after_three_rounds() {
    let mut path = path_in(Bbr3State::Drain);
    path.change_rate(0.5 * path.rate_bps);
    let began = path.controller.rounds.count;
    assert_eq!(leave(&mut path), Bbr3State::Down);
    let bbr = &path.controller;
    assert_eq!(bbr.rounds.count, began + 4);
    assert!(path.outstanding() as f64 > bbr.target(1.0));
}

/// Case 5.
#[test]
fn up_at_bandwidth_plateau_goes_down() {
    let mut path = path_in(Bbr3State::Up);
    let began = path.controller.rounds.count;
    assert_eq!(leave(&mut path), Bbr3State::Down);
    let bbr = &path.controller;
    assert!(path.dropped == 0 && bbr.full.now && bbr.full.rounds == 3);
    assert!((3..=4).contains(&(bbr.rounds.count - began)));
}

/// Case 6. By section 5.5.10.2, losses of a limited application leave `inflight_longterm` as it is.
#[test]
fn up_with_losses_goes_down_when_application_limited() {
    let mut path = path_in(Bbr3State::Up);
    limit_application(&mut path, 0.8);
    path.run(path.now + Duration::from_millis(100));
    path.lose = |number| number % 10 == 0;
    assert_eq!(leave(&mut path), Bbr3State::Down);
    let bbr = &path.controller;
    assert!(bbr.cycle.too_high && !bbr.full.now && bbr.in_flight.long_term.is_infinite());
}

/// Case 7, for 36 rounds: after 5 s a probe for the smallest RTT ends either state.
#[test]
fn probe_without_losses_continues_while_application_limited() {
    for state in [Bbr3State::Startup, Bbr3State::Up] {
        let mut path = path_in(state);
        limit_application(&mut path, 0.8);
        for _ in 0..1500 {
            path.run(path.now + STEP);
            assert_eq!(path.controller.state, state);
        }
    }
}

/// Case 8.
#[test]
fn down_with_headroom_cruises() {
    for mut path in [path_in(Bbr3State::Cruise), bounded_path()] {
        reach(&mut path, Bbr3State::Up);
        reach(&mut path, Bbr3State::Down);
        assert_eq!(path.controller.state.pacing_gain(), 0.9);
        let state = leave_below(&mut path, |bbr| {
            bbr.with_headroom().min(bbr.budgeted(bbr.bandwidth.max() * bbr.rtt()))
        });
        assert_eq!(state, Bbr3State::Cruise);
    }
}

/// Case 9. The RTT is long, so that the time is up before the rounds for Reno are. A delay that falls postpones the
/// probe for the smallest RTT.
#[test]
fn down_with_full_pipe_refills_after_wait() {
    let mut path = path();
    path.delay = Duration::from_millis(100);
    reach(&mut path, Bbr3State::Refill);
    path.delay = Duration::from_millis(99);
    reach(&mut path, Bbr3State::Down);
    let began = path.now;
    let wait = path.controller.cycle.wait;
    path.change_rate(0.9 * path.rate_bps);
    assert_eq!(leave(&mut path), Bbr3State::Refill);
    let late = path.now.since(began + wait);
    assert!(path.now > began + wait && late < Duration::from_millis(10), "{late:?}");
}

/// Case 10.
#[test]
fn min_rtt_probe_lasts_200_ms_and_a_round() {
    let mut path = path_in(Bbr3State::Cruise);
    let mut measured = path.now;
    while path.controller.state != Bbr3State::ProbeRtt {
        measured = path.controller.min_rtt.probe.map_or(measured, |(_, at)| at);
        path.run(path.now + STEP);
    }
    let since = path.now.since(measured).as_secs_f64();
    assert!((5.0..5.01).contains(&since), "{since}");
    assert_eq!(path.controller.state.cwnd_gain(), 0.5);
    assert_eq!(path.window(), path.controller.probe_rtt_cwnd());
    while path.controller.min_rtt.done_at.is_none() {
        path.run(path.now + STEP);
    }
    let began = path.now;
    let round = path.controller.rounds.count;
    assert_eq!(leave(&mut path), Bbr3State::Cruise);
    assert!(path.now.since(began) >= Duration::from_millis(200));
    assert!(path.controller.rounds.count > round);
    let used = path.utilisation(path.now + Duration::from_secs(1));
    assert!(used > 0.95, "{used}");
}

/// Case 11.
#[test]
fn min_rtt_probe_is_skipped_after_idle_time() {
    let mut path = path_in(Bbr3State::Cruise);
    let resumed = path.now + Duration::from_secs(6);
    path.pause(resumed);
    path.run(path.now + Duration::from_secs(5));
    assert_eq!(path.outstanding(), 0);
    path.run(resumed);
    assert!(path.controller.idle_restart);
    for _ in 0..1000 {
        path.run(path.now + STEP);
        assert!(path.controller.state != Bbr3State::ProbeRtt);
    }
    assert!(!path.controller.idle_restart);
}

/// Case 12. A period's ACK reports `CAPACITY * ACK_PERIOD` packets.
#[test]
fn startup_with_aggregated_acks_finds_bandwidth() {
    let mut path = path();
    path.ack_period = ACK_PERIOD;
    assert_eq!(leave(&mut path), Bbr3State::Drain);
    let bbr = &path.controller;
    assert_within_2_percent(bbr.bandwidth.max(), CAPACITY);
    assert_within_2_percent(bbr.extra.max.get(), CAPACITY * ACK_PERIOD.as_secs_f64());
    assert!(path.window() > 2.0 * bbr.product(1.0));
}

/// Case 13.
#[test]
fn cruise_with_aggregated_acks_uses_path() {
    let mut path = path_in(Bbr3State::Cruise);
    path.ack_period = ACK_PERIOD;
    path.run(path.now + Duration::from_millis(500));
    let used = path.utilisation(path.now + Duration::from_millis(1000));
    let bbr = &path.controller;
    assert_eq!(bbr.state, Bbr3State::Cruise);
    assert_within_2_percent(bbr.extra.max.get(), CAPACITY * ACK_PERIOD.as_secs_f64());
    assert_within_2_percent(path.window(), 2.0 * bbr.product(1.0) + bbr.extra.max.get());
    assert!(used > 0.98, "{used}");
}

/// Case 14. A BDP of 0.008 packets, first with an ACK per packet, then for two packets.
#[test]
fn path_with_bdp_below_a_packet_is_used() {
    let mut path = path();
    path.rate_bps = 64e3;
    path.delay = Duration::from_millis(1);
    reach(&mut path, Bbr3State::Cruise);
    path.least_window = f64::INFINITY;
    for ack_period in [Duration::ZERO, Duration::from_millis(250)] {
        let bandwidth = path.controller.bandwidth.max();
        assert_within_2_percent(bandwidth * path.controller.packet_bits, path.rate_bps);
        path.ack_period = ack_period;
        let used = path.utilisation(path.now + Duration::from_secs(20));
        assert!(used > 0.98, "{used}");
    }
    assert_eq!(path.least_window, 4.0);
}

/// Case 15. The rate grows by 1.25 · 0.99 in 1.5 rounds, from sending to the mean of a round's sample: tenfold in 17
/// rounds. While `inflight_longterm` is the limit, it grows by a step that doubles each round.
#[test]
fn tenfold_bandwidth_is_found_in_logarithmic_rounds() {
    for mut path in [path_in(Bbr3State::Cruise), bounded_path()] {
        let is_bounded = path.controller.in_flight.long_term.is_finite();
        path.change_rate(100e6);
        reach(&mut path, Bbr3State::Up);
        let began = path.controller.rounds.count;
        let mut doublings = path.controller.cycle.up_rounds;
        while path.controller.bandwidth.max() < 0.98 * 10.0 * CAPACITY {
            path.run(path.now + STEP);
            let bbr = &path.controller;
            assert_eq!(bbr.state, Bbr3State::Up);
            if bbr.cycle.up_rounds != doublings {
                doublings += 1;
                assert_eq!(bbr.cycle.up_rounds, doublings);
                let step = bbr.window.cwnd / bbr.cycle.acked_per_step;
                let doubled = f64::from(1 << (doublings - 1)).min(bbr.window.cwnd);
                assert!((1.0..1.05).contains(&(step / doubled)), "{step} {doubled}");
            }
        }
        let bbr = &path.controller;
        assert_within_2_percent(bbr.bandwidth.max(), 10.0 * CAPACITY);
        assert!(bbr.rounds.count - began <= 20, "{}", bbr.rounds.count - began);
        assert!(!is_bounded || doublings >= 8, "{doublings}");
    }
}

/// Case 16. Of three rounds with losses each keeps 0.7 of the short-term bandwidth.
#[test]
fn tenth_of_bandwidth_is_followed_within_two_cycles() {
    let mut path = path();
    path.rate_bps = 100e6;
    path.queue_limit = 200;
    reach(&mut path, Bbr3State::Cruise);
    path.change_rate(10e6);
    path.run(path.now + Duration::from_secs(1));
    assert_eq!(path.controller.state, Bbr3State::Cruise);
    assert!(path.controller.bandwidth.short_term() <= 0.35 * 10.0 * CAPACITY);
    for _ in 0..2 {
        reach(&mut path, Bbr3State::Up);
        reach(&mut path, Bbr3State::Down);
    }
    reach(&mut path, Bbr3State::Cruise);
    assert_within_2_percent(path.controller.bandwidth.max(), CAPACITY);
}

/// Case 17. A bucket of a BDP, without a queue.
#[test]
fn policer_rate_is_used_without_continuous_losses() {
    let mut path = path();
    path.rate_bps = 100e6;
    path.policer = Some(Policer::new(10e6, 50.0));
    reach(&mut path, Bbr3State::Cruise);
    path.run(path.now + Duration::from_secs(1));
    assert!(path.controller.bandwidth.short_term() < 1.05 * CAPACITY);
    assert!(path.controller.in_flight.short_term <= 52.0);
    let dropped = path.dropped;
    let delivered = path.delivered;
    path.run(path.now + Duration::from_secs(30));
    let dropped = (path.dropped - dropped) as f64;
    let delivered = (path.delivered - delivered) as f64;
    let used = delivered / (30.0 * CAPACITY);
    let lost = dropped / (delivered + dropped);
    assert!(used > 0.95 && lost < 0.02 && path.timeouts == 0, "{used} {lost}");
}

/// Cases 18 and 19: packets arrive so much later that fast recovery, or that of the timer, begins.
#[test]
fn spurious_recovery_restores_model_and_restarts_probe() {
    for (packets, late_ms, timeouts) in [(8, 15, 0), (200, 1200, 1)] {
        let mut path = path_in(Bbr3State::Up);
        path.delay_next(packets, Duration::from_millis(late_ms));
        assert_eq!(leave(&mut path), Bbr3State::Down);
        path.delay_next(0, Duration::ZERO);
        assert_eq!(path.timeouts, timeouts);
        let bbr = &path.controller;
        let saved = bbr.before_losses.expect("saved at the losses");
        assert_eq!(saved.ended, Some(Bbr3State::Up));
        assert!(saved.bandwidth_short_term.is_infinite() && saved.short_term.is_infinite());
        assert!(saved.long_term.is_infinite() && bbr.in_flight.long_term.is_finite());
        while path.controller.before_losses.is_some() {
            path.run(path.now + STEP);
        }
        let bbr = &path.controller;
        assert_eq!(bbr.state, Bbr3State::Refill);
        assert!(bbr.bandwidth.short_term().is_infinite() && bbr.in_flight.short_term.is_infinite());
        assert!(bbr.in_flight.long_term.is_infinite() && path.window() >= bbr.target(2.0));
        assert_eq!(leave(&mut path), Bbr3State::Up);
    }
}

/// Case 20.
#[test]
fn min_rtt_probe_in_startup_returns_to_startup() {
    let mut path = path();
    limit_application(&mut path, 0.5);
    assert_eq!(leave(&mut path), Bbr3State::ProbeRtt);
    assert!(!path.controller.full.reached);
    assert_eq!(leave(&mut path), Bbr3State::Startup);
    path.app_gap = Duration::ZERO;
    assert_eq!(leave(&mut path), Bbr3State::Drain);
    assert_within_2_percent(path.controller.bandwidth.max(), CAPACITY);
}

/// Case 21.
#[test]
fn up_with_losses_lowers_long_term_bound_and_goes_down() {
    let mut path = bounded_path();
    path.queue_limit = 1000;
    reach(&mut path, Bbr3State::Up);
    path.run(path.now + Duration::from_millis(20));
    let before = path.controller.in_flight.long_term;
    let least = 0.7 * path.controller.product(1.0).min(path.window());
    path.lose = |number| number % 10 == 0;
    assert_eq!(leave(&mut path), Bbr3State::Down);
    let after = path.controller.in_flight.long_term;
    assert!(after < before && after >= least, "{before} {after} {least}");
    assert!(path.controller.cycle.too_high && !path.controller.full.now);
}

/// Case 22.
#[test]
fn refill_with_little_data_keeps_bandwidth() {
    let mut path = path_in(Bbr3State::Refill);
    let before = path.controller.bandwidth.clone();
    limit_application(&mut path, 0.1);
    assert_eq!(leave(&mut path), Bbr3State::Up);
    assert_eq!(path.controller.bandwidth.max, before.max);
    path.app_gap = Duration::ZERO;
    assert_eq!(leave(&mut path), Bbr3State::Down);
    assert_within_2_percent(path.controller.bandwidth.max(), CAPACITY);
}
