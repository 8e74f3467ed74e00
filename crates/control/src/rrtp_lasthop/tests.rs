//! S3's dedicated channel as timed stories.

use super::*;
use crate::{Advice, Arrival};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Told 800 kbit/s: a hundred packets per second.
fn told() -> Box<dyn Controller> {
    let profile = Profile {
        rate: Some(Rate::from_bps(800_000)),
        rtt: Some(Duration::from_millis(100)),
        loss: None,
    };
    let environment = Environment { profile, ..Environment::default() };
    let settings = Settings::read(&narrows_base::Spec::named("rrtp-lasthop"), &[]).unwrap();
    build(&settings, &environment)
}

fn advise(c: &mut dyn Controller, ms: u64, came: f64, left: f64) -> f64 {
    let rtt = Duration::from_millis(100);
    let advice = Advice::of(&[came, left]);
    c.on_advice(&Advised { now: at(ms), advice, rtt, srtt: rtt, rttvar: Duration::ZERO });
    c.allowance().rate.unwrap().as_bps() as f64 / 8000.0
}

fn lose(c: &mut dyn Controller, sent: u64, now: u64, radio: bool) -> f64 {
    let (sent, now) = (at(sent), at(now));
    c.on_fate(&Fate { now, seq: 1, sent, bytes: 1000, lost: true, marked: false, radio });
    c.allowance().rate.unwrap().as_bps() as f64 / 8000.0
}

#[test]
fn what_was_told_is_kept_within_the_dead_band_and_left_beyond_it() {
    let mut c = told();
    assert!((advise(&mut *c, 100, 0.0104, 0.01) - 100.0).abs() < 0.1, "r = 1.04");
    // The channel halves: packets come each 20 ms. The rate is the receive rate, said once or twice.
    assert!((advise(&mut *c, 200, 0.02, 0.01) - 50.0).abs() < 0.1);
    assert!((advise(&mut *c, 300, 0.02, 0.01) - 50.0).abs() < 0.1);
    assert!((advise(&mut *c, 400, 0.02, 0.02) - 50.0).abs() < 0.1);
}

#[test]
fn a_probe_finds_that_the_channel_became_faster() {
    let mut c = told();
    let mut rates = Vec::new();
    for epoch in 0..40 {
        let rate = c.allowance().rate.unwrap().as_bps() as f64 / 8000.0;
        // Everything arrives as it leaves.
        rates.push(advise(&mut *c, 100 * epoch, 1.0 / rate, 1.0 / rate));
    }
    assert!((rates[10] - 100.0).abs() < 0.1, "{rates:?}");
    assert!(rates[39] > 150.0, "{rates:?}");
}

#[test]
fn radio_losses_change_nothing_and_congestion_halves_once_a_round_trip() {
    let mut c = told();
    assert!((lose(&mut *c, 100, 210, true) - 100.0).abs() < 0.1);
    assert!((lose(&mut *c, 110, 220, false) - 50.0).abs() < 0.1);
    assert!((lose(&mut *c, 120, 230, false) - 50.0).abs() < 0.1, "the same congestion");
    assert!((lose(&mut *c, 230, 340, false) - 25.0).abs() < 0.1);
}

#[test]
fn the_receiver_tells_short_gaps_when_they_differ_and_the_long_follow() {
    let mut half = Half::default();
    let mut told = Vec::new();
    let mut now = 0;
    for seq in 0..240_u64 {
        now += if seq < 120 { 10 } else { 20 };
        let arrival = Arrival {
            now: at(now),
            seq,
            sent: at(10 * seq),
            bytes: 1000,
            marked: false,
            duplicate: false,
            advice: Advice::NONE,
        };
        // Every twelfth is lost: the time that it took is shared.
        if seq % 12 != 7 && half.on_arrival(&arrival) {
            told.push((seq, half.advice(arrival.now).number(0)));
        }
    }
    let tell = |n: u64| told.iter().rfind(|t| t.0 <= n).unwrap().1;
    assert!((tell(119) - 0.010).abs() < 1e-4, "{told:?}");
    assert!(tell(135) > 0.015, "the short average is there within an epoch: {told:?}");
    assert!((tell(239) - 0.020).abs() < 5e-4, "{told:?}");
}
