use super::estimate::Round;
use super::*;
use crate::Dispersion;
use crate::scenario::{IdealPath, build, build_in};
use crate::scenario_path::SimplePath;
use narrows_base::{Duration, Time};

fn at(s: f64) -> Time {
    Time::from_secs_f64(s)
}

/// A path of 10 Mbit/s with packets of 1000 bytes, as in the scenario.
fn path() -> SimplePath {
    SimplePath::new(build("rrtp"))
}

fn watch(path: &SimplePath, name: &str) -> f64 {
    let mut found = f64::NAN;
    path.controller.watch(&mut |n, value| found = if n == name { value } else { found });
    found
}

#[test]
fn alone_it_fills_the_path_with_a_short_queue() {
    let mut path = path();
    path.run(at(3.0));
    path.most_waiting = 0;
    let used = path.utilisation(at(20.0));
    assert!(used > 0.93, "{used}");
    assert!(watch(&path, "rrtp_mode") == 1.0 && watch(&path, "mode_reason") == 3.0);
    // A probe adds a quarter of the BDP for a round trip.
    assert!(path.most_waiting < 40, "{}", path.most_waiting);
}

#[test]
fn a_rate_that_falls_and_rises_is_followed() {
    let mut path = path();
    path.run(at(5.0));
    path.rate_bps = 2e6;
    path.run(at(7.0));
    path.most_waiting = 0;
    let used = path.utilisation(at(15.0));
    assert!(used > 0.85 && path.most_waiting < 30, "{used} {}", path.most_waiting);
    path.rate_bps = 20e6;
    path.run(at(18.0));
    let used = path.utilisation(at(25.0));
    assert!(used > 0.85, "{used}");
}

/// A longer path is no shared queue: long before the old base RTT has expired, the sender fills the path again.
#[test]
fn a_path_that_becomes_longer_is_filled_again() {
    let mut path = path();
    path.run(at(5.0));
    path.delay = Duration::from_millis(80);
    path.run(at(10.0));
    assert_eq!(watch(&path, "mode_reason"), 8.0);
    let used = path.utilisation(at(20.0));
    assert!(used > 0.85, "{used}");
}

#[test]
fn a_hinted_rate_is_used_at_once() {
    let hints = PathHints {
        rate: Some(Rate::from_bps_f64(10e6)),
        rtt: Some(Duration::from_millis(40)),
        loss: None,
    };
    let environment = Environment { hints, ..Environment::default() };
    let path = SimplePath::new(build_in("rrtp", &environment));
    assert!(watch(&path, "rrtp_mode") == 1.0 && watch(&path, "mode_reason") == 2.0);
    let limits = path.controller.send_limits();
    let rate = limits.pacing_rate.unwrap().as_bps() as f64;
    assert!(rate > 7e6 && limits.cwnd > 30.0, "{limits:?}");
}

/// Jitter may end the startup early. It goes on if its last flight then arrives at more than the rate that was set, but
/// not with more losses than the link's.
#[test]
fn a_startup_that_jitter_ended_goes_on() {
    let goes_on = |round: Round, dropped: bool| {
        let mut rrtp = Rrtp::new(&Environment::default());
        rrtp.end_startup(1000.0);
        let view = RoundView {
            round,
            bandwidth: 1000.0,
            queued: false,
            dropped,
            unexplained: false,
            empty: false,
        };
        rrtp.on_round(&IdealPath::new(build("rrtp")).ack(1, false), &view);
        matches!(rrtp.policy, Policy::Startup(_))
    };
    let flight = Round { gain: 2.0, delivered: 100.0, rate: 2000.0, ..Round::default() };
    assert!(goes_on(flight, false));
    assert!(!goes_on(flight, true));
    assert!(!goes_on(Round { rate: 1400.0, ..flight }, false));
    assert!(!goes_on(Round { gain: 1.25, ..flight }, false));
}

/// A slow path is not filled by the first flight; a peer without probes, such as a server, does not pay a round trip.
#[test]
fn first_flight_is_one_train_until_the_expected_dispersion() {
    let window = |expects_dispersion, rate: Option<f64>| {
        let environment = Environment {
            initial_window: 10.0,
            packet_bytes: 1000,
            expects_dispersion,
            ..Environment::default()
        };
        let mut rrtp = Rrtp::new(&environment);
        if let Some(bits) = rate {
            let second = Duration::from_secs(1);
            let rtt = Duration::from_millis(100);
            let dispersion = Dispersion { rtt, bits, took: second };
            rrtp.on_path_event(at(0.0), &PathEvent::Dispersion(dispersion));
        }
        rrtp.send_limits().cwnd
    };
    assert_eq!(window(false, None), 10.0);
    assert_eq!(window(true, None), 4.0);
    // 0.1 and 10 Mbit/s: BDPs of 1.25 and 125 packets.
    assert_eq!(window(true, Some(1e5)), 4.0);
    assert_eq!(window(true, Some(1e7)), 10.0);
}
