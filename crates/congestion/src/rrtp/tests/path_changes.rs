//! A path that becomes another one.

use super::{Bottleneck, restart, told};
use crate::scenario::{Scenario, build};
use crate::{Ack, PathEvent, PathHints};
use narrows_base::random::mix;
use narrows_base::{Duration, Time};

/// A path that became longer is no queue either.
#[test]
fn a_longer_path_is_filled_again_within_seconds() {
    let mut b = Bottleneck { room: 100, ..Bottleneck::new(PathHints::default()) };
    b.run(6.0);
    assert!(b.default_mode());
    b.rtt = 0.15;
    b.run(9.0);
    let rate = b.run(14.0);
    assert!(rate > 900.0, "{rate}");
    assert!(b.mean_delay() < 0.02, "{}", b.mean_delay());
}

#[test]
fn a_slower_link_is_followed_and_a_faster_one_found() {
    let mut b = Bottleneck::new(PathHints::default());
    b.run(5.0);
    b.per_second = 400.0;
    b.run(9.0);
    assert!(b.run(15.0) > 390.0);
    assert!(b.mean_delay() < 0.02, "{}", b.mean_delay());
    b.per_second = 2000.0;
    b.run(20.0);
    let rate = b.run(22.0);
    assert!(rate > 1900.0, "{rate}");
}

/// What is in flight must drain; to wait for the round's end, or until larger rates are forgotten, takes seconds. So it is
/// in whichever round of the cycle it happens.
#[test]
fn a_link_that_becomes_ten_times_slower_is_followed_within_the_round() {
    for at in (0..20).map(|i| 5.0 + 0.025 * f64::from(i)) {
        let mut b = Bottleneck { room: 200, ..Bottleneck::new(PathHints::default()) };
        b.run(at);
        assert!(b.default_mode(), "{at}");
        b.per_second = 100.0;
        // Nine base round trips drain 50 packets.
        b.run(at + 0.65);
        let rate = b.run(at + 3.0);
        assert!(rate > 90.0, "{at}: {rate}");
        assert!(b.mean_delay() < 0.05, "{at}: {}", b.mean_delay());
    }
}

/// A cellular link is a different one each fifth of a second. Whoever asks whose the queue is takes its falls for others,
/// and keeps a window in which round trips of seconds stand; the question is asked ever more rarely meanwhile.
#[test]
fn a_link_that_varies_all_the_time_is_followed_down() {
    let mut b = Bottleneck { room: 400, ..Bottleneck::new(PathHints::default()) };
    let (mut state, mut there_was, mut delay) = (7, 0.0, 0.0);
    for i in 1..300 {
        state = mix(state);
        let factor = if state & 1 == 1 { 1.4 } else { 1.0 / 1.4 };
        b.per_second = (b.per_second * factor).clamp(50.0, 2000.0);
        there_was += 0.2 * b.per_second;
        b.run(0.2 * f64::from(i));
        delay += b.delays.iter().sum::<f64>();
    }
    let delay = delay / b.next as f64;
    assert!(delay < 0.06, "{delay}");
    assert!(b.delivered as f64 > 0.75 * there_was, "{} of {there_was}", b.delivered);
}

/// After a silence the path may be longer: a handover.
#[test]
fn after_a_silence_the_path_may_be_longer() {
    let mut b = Bottleneck { room: 100, ..Bottleneck::new(PathHints::default()) };
    b.run(5.0);
    b.rtt = 0.15;
    b.flying.clear();
    b.controller.on_congestion_event(&restart(Bottleneck::at(b.now)));
    b.run(6.5);
    let rate = b.run(7.5);
    assert!(rate > 900.0, "{rate}");
}

/// What is acknowledged after a silence left long before it, and is no rate that the climb must exceed.
#[test]
fn what_left_before_a_silence_does_not_end_the_climb_after_it() {
    let mut controller = build("rrtp");
    let mut scenario = Scenario::new(build("reno"));
    let mut now = Time::from_secs_f64(10.0);
    controller.on_congestion_event(&restart(now));
    let mut delivered = 400;
    for round in 0..8 {
        now += Duration::from_millis(50);
        let ack = scenario.ack(1, false);
        controller.on_ack(&Ack {
            now,
            rtt: Duration::from_millis(50),
            newly_delivered: delivered,
            round_start: true,
            window_limited: round > 0,
            rate: None,
            ..ack
        });
        delivered = controller.send_limits().cwnd as u64;
    }
    assert!(delivered >= 400, "{delivered}");
}

#[test]
fn a_profile_at_run_time_replaces_what_was_known() {
    let mut b = Bottleneck::new(PathHints::default());
    b.run(5.0);
    b.per_second = 3000.0;
    let now = Bottleneck::at(b.now);
    b.controller.on_path_event(now, &PathEvent::Hints(told(24_000_000)));
    b.run(5.2);
    let rate = b.run(5.5);
    assert!(rate > 2850.0, "{rate}");
}

/// Nothing passes for little more than a round trip, as at a satellite's handover: the path is the same after it, and what
/// was lost is no full queue's. Only while a probe's queue stands that cannot be told.
#[test]
fn a_moment_in_which_nothing_passes_costs_no_more_than_itself() {
    let stays = (0..20).filter(|i| {
        let mut b = Bottleneck::new(PathHints::default());
        let at = 5.0 + 0.025 * f64::from(*i);
        b.run(at);
        assert!(b.default_mode(), "{at}");
        b.radio = 1;
        b.run(at + 0.06);
        b.radio = 0;
        b.run(at + 0.12);
        b.run(at + 0.32) > 950.0 && b.default_mode()
    });
    let stays = stays.count();
    assert!(stays >= 16, "{stays} of 20");
}
