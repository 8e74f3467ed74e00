//! The RRTP thesis's dedicated channel as timed scenarios.

use super::*;
use crate::fuzz::report;
use crate::{Arrival, CumulativeAck, Feedback};
use narrows_base::Duration;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Told 800 kbit/s: a hundred packets per second.
fn told() -> Box<dyn Controller> {
    let hints = PathHints {
        rate: Some(Rate::from_bps(800_000)),
        rtt: Some(Duration::from_millis(100)),
        loss: None,
    };
    let environment = Environment { hints, ..Environment::default() };
    let settings = Settings::read(&narrows_base::Spec::named("rrtp-lasthop"), &[]).unwrap();
    build(&settings, &environment)
}

/// A report with feedback, where the round trip is 100 ms.
fn advise(c: &mut dyn Controller, ms: u64, came: f64, left: f64) -> f64 {
    advise_after(c, 100, ms, came, left)
}

fn advise_after(c: &mut dyn Controller, rtt_ms: u64, ms: u64, came: f64, left: f64) -> f64 {
    let feedback = Feedback::of(&[came, left]);
    c.on_ack(&report(at(ms), feedback, Duration::from_millis(rtt_ms)));
    c.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0
}

fn lose(c: &mut dyn Controller, sent: u64, now: u64, radio: bool) -> f64 {
    let (sent, now) = (at(sent), at(now));
    c.on_packet_outcome(&PacketOutcome {
        now,
        seq: 1,
        sent,
        bytes: 1000,
        lost: true,
        marked: false,
        radio,
    });
    c.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0
}

/// A round trip of `rtt` milliseconds ends.
fn hear(c: &mut dyn Controller, ms: u64, rtt: u64) {
    let rtt = Duration::from_millis(rtt);
    c.on_ack(&Ack {
        cumulative: CumulativeAck::of(10),
        counted: 10,
        newly_delivered: 10,
        sent_since: 10,
        flight: 10,
        outstanding: 10,
        prior_outstanding: 20,
        round: ms,
        round_start: true,
        ..Ack::of_packet(at(ms), rtt, rtt)
    });
}

#[test]
fn hinted_rate_is_kept_only_within_the_dead_band() {
    let mut c = told();
    assert!((advise(&mut *c, 100, 0.0104, 0.01) - 100.0).abs() < 0.1, "r = 1.04");
    hear(&mut *c, 110, 100);
    assert!((advise(&mut *c, 150, 0.02, 0.01) - 100.0).abs() < 0.1, "no queue, so no such channel");
    hear(&mut *c, 190, 150);
    // The channel's rate halves: a packet arrives each 20 ms. The new rate is the receive rate after one report or two.
    assert!((advise_after(&mut *c, 150, 200, 0.02, 0.01) - 50.0).abs() < 0.1);
    assert!((advise_after(&mut *c, 150, 300, 0.02, 0.01) - 50.0).abs() < 0.1);
    assert!((advise_after(&mut *c, 150, 400, 0.02, 0.02) - 50.0).abs() < 0.1);
}

#[test]
fn a_probe_finds_that_the_channel_became_faster() {
    let mut c = told();
    let mut rates = Vec::new();
    for epoch in 0..40 {
        let rate = c.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0;
        // Packets arrive at the sending rate.
        hear(&mut *c, 100 * epoch, 100);
        rates.push(advise(&mut *c, 100 * epoch, 1.0 / rate, 1.0 / rate));
    }
    assert!((rates[10] - 100.0).abs() < 0.1, "{rates:?}");
    assert!(rates[39] > 150.0, "{rates:?}");
}

#[test]
fn after_an_outage_the_rate_comes_back_by_doubling() {
    let mut c = told();
    hear(&mut *c, 100, 100);
    let [min_rtt, srtt] = [Duration::from_millis(100), Duration::from_secs(1)];
    let (flight, timeout, backoffs) = (1, true, 3);
    c.on_congestion_event(&CongestionEvent::SlowStartRestart(crate::SlowStartRestart {
        now: at(9000),
        flight,
        timeout,
        backoffs,
        min_rtt,
        srtt,
    }));
    let mut rates = Vec::new();
    for epoch in 0..15 {
        let rate = c.send_limits().pacing_rate.unwrap().as_bps() as f64 / 8000.0;
        hear(&mut *c, 10_000 + 100 * epoch, 100);
        // The channel still carries a hundred packets per second.
        let carried = rate.min(100.0);
        rates.push(advise(&mut *c, 10_000 + 100 * epoch, 1.0 / carried, 1.0 / rate));
    }
    assert!(rates[0] < 10.0 && rates[14] > 90.0, "{rates:?}");
}

#[test]
fn radio_losses_keep_the_rate_congestion_halves_per_rtt() {
    let mut c = told();
    hear(&mut *c, 100, 100);
    assert!((lose(&mut *c, 100, 201, false) - 100.0).abs() < 0.1, "no queue shows");
    hear(&mut *c, 205, 200);
    assert!((lose(&mut *c, 100, 210, true) - 100.0).abs() < 0.1, "the receiver says radio");
    assert!((lose(&mut *c, 110, 220, false) - 50.0).abs() < 0.1);
    assert!((lose(&mut *c, 120, 230, false) - 50.0).abs() < 0.1, "the same congestion");
    assert!((lose(&mut *c, 230, 340, false) - 25.0).abs() < 0.1);
    hear(&mut *c, 500, 100);
    hear(&mut *c, 600, 100);
    assert!(
        (lose(&mut *c, 590, 610, false) - 95.0).abs() < 0.1,
        "it comes back; the queue is gone"
    );
}

#[test]
fn burst_loss_is_congestion_whatever_the_trip_times() {
    let mut c = told();
    hear(&mut *c, 100, 100);
    for i in 0..4 {
        assert!((lose(&mut *c, 110 + i, 211, true) - 100.0).abs() < 0.1, "until a round has ended");
    }
    hear(&mut *c, 220, 100);
    assert!((lose(&mut *c, 130, 231, true) - 50.0).abs() < 0.1);
}

#[test]
fn longer_path_is_accepted_after_draining_the_queue() {
    let mut c = told();
    hear(&mut *c, 0, 100);
    let window = |c: &dyn Controller| c.send_limits().cwnd;
    assert!((window(&*c) - 16.5).abs() < 0.1, "5/4 of 10 packets, and 4: {}", window(&*c));
    let mut least = f64::INFINITY;
    for second in 0..70 {
        hear(&mut *c, 1000 * second, 200);
        least = least.min(window(&*c));
    }
    assert!((least - 8.5).abs() < 0.1, "below the product that is known: {least}");
    assert!((window(&*c) - 29.0).abs() < 0.1, "5/4 of 20 packets, and 4: {}", window(&*c));
}

/// Hosts hand over packets when they please; the averages must be of the channel.
#[test]
fn packets_delayed_by_a_host_do_not_move_the_rate() {
    let mut c = told();
    let hints = PathHints { rate: Some(Rate::from_bps(16_000_000)), ..PathHints::default() };
    c.on_path_event(at(0), &PathEvent::Hints(hints));
    hear(&mut *c, 0, 100);
    let mut receiver = LasthopReceiver::default();
    for seq in 0..4000_u64 {
        // Two thousand packets per second, sent in groups of five and received in groups of seven.
        let sent = Time::ZERO + Duration::from_micros(500 * (seq / 5 * 5));
        let now = Time::ZERO + Duration::from_micros(50_000 + 500 * (seq / 7 * 7 + 6));
        let (bytes, marked, feedback) = (1000, false, Feedback::NONE);
        if receiver.on_arrival(&Arrival { now, seq, sent, bytes, marked, feedback }) {
            let told = receiver.feedback(now);
            for gap in [told.number(0), told.number(1)] {
                assert!((gap / 500e-6 - 1.0).abs() < 0.15, "{seq}: {gap}");
            }
            let rate = advise(&mut *c, seq / 2, told.number(0), told.number(1));
            assert!((1900.0..2100.0).contains(&rate), "{seq}: {rate}");
        }
    }
}

#[test]
fn changed_short_gap_is_reported_and_long_ones_follow() {
    let mut receiver = LasthopReceiver::default();
    let mut told = Vec::new();
    let mut now = 0;
    for seq in 0..240_u64 {
        now += if seq < 120 { 10 } else { 20 };
        let arrival = Arrival::new(at(now), seq, at(10 * seq), 1000);
        // Every twelfth is lost: the gap around it is divided.
        if seq % 12 != 7 && receiver.on_arrival(&arrival) {
            told.push((seq, receiver.feedback(arrival.now).number(0)));
        }
    }
    let apply = |n: u64| told.iter().rfind(|t| t.0 <= n).unwrap().1;
    assert!((apply(119) - 0.010).abs() < 1e-4, "{told:?}");
    assert!(apply(145) > 0.019, "the short average is there within two epochs: {told:?}");
    assert!((apply(239) - 0.020).abs() < 5e-4, "{told:?}");
}
