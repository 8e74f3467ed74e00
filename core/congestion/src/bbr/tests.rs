use super::{DESCRIPTOR, fresh};
use crate::scenario::{IdealPath, build};
use crate::scenario_path::SimplePath;
use crate::{
    CongestionEvent, Controller as _, Dialect, Environment, PathEvent, PathHints, Sent,
    SpuriousLosses,
};
use narrows_base::{Duration, RandomKey, Settings, Spec, Time};

/// 10 Mbit/s, 40 ms: the path holds 51 packets.
fn path(spec: &str) -> SimplePath {
    SimplePath::new(build(spec))
}

fn watched(path: &SimplePath, wanted: &str) -> f64 {
    let mut found = f64::NAN;
    path.controller.watch(&mut |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}

fn seconds(s: f64) -> Time {
    Time::from_secs_f64(s)
}

#[test]
fn startup_drain_probe() {
    let mut path = path("bbr");
    let mut states = Vec::new();
    for ms in 1..1500 {
        path.run(seconds(f64::from(ms) * 1e-3));
        let state = watched(&path, "bbr_state") as u8;
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
    assert_eq!(states, [0, 1, 2]);
    assert!((watched(&path, "bandwidth_bps") - 10e6).abs() < 120e3);
    assert!((watched(&path, "min_rtt_s") - 0.0408).abs() < 1e-4);
}

#[test]
fn it_fills_the_path_with_a_short_queue() {
    let mut path = path("bbr");
    path.run(seconds(2.0));
    path.most_waiting = 0;
    let utilisation = path.utilisation(seconds(9.0));
    assert!(utilisation > 0.97, "{utilisation}");
    assert!(path.most_waiting < 30, "{}", path.most_waiting);
    assert!(path.window() < 2.0 * 51.0 + 16.0);
}

#[test]
fn queue_drains_every_ten_seconds_to_measure_min_rtt() {
    let mut path = path("bbr");
    path.run(seconds(3.0));
    path.delay = Duration::from_millis(60); // a longer route: only PROBE_RTT finds out
    path.run(seconds(9.0));
    assert!((watched(&path, "min_rtt_s") - 0.0408).abs() < 1e-4);
    path.least_window = f64::INFINITY;
    path.run(seconds(12.0));
    assert_eq!(path.least_window, 4.0);
    path.run(seconds(14.0));
    assert!((watched(&path, "min_rtt_s") - 0.0608).abs() < 3e-3, "{}", watched(&path, "min_rtt_s"));
    let utilisation = path.utilisation(seconds(19.0));
    assert!(utilisation > 0.97, "{utilisation}");
}

#[test]
fn random_loss_hardly_matters() {
    let mut path = path("bbr");
    path.lose = |number| RandomKey::from_seed(3).draw(number) < 0.01;
    path.run(seconds(1.0));
    let utilisation = path.utilisation(seconds(9.0));
    assert!(utilisation > 0.95, "{utilisation}");
}

#[test]
fn a_repair_conserves_packets_and_gives_the_window_back() {
    let mut s = IdealPath::new(build("bbr"));
    s.acks(200);
    let before = s.window();
    s.recovery();
    assert!((before..=before + 1.0).contains(&s.window()), "{before} {}", s.window());
    s.timeout();
    assert_eq!(s.window(), 1.0);
    s.acks(1);
    assert_eq!(s.window(), 4.0);
}

#[test]
fn a_policer_is_found_out() {
    let run = |spec: &str| {
        let mut path = path(spec);
        path.rate_bps = 20e6;
        // A policer without bucket, approximately: every second packet is dropped once it is empty.
        path.lose = |number| number > 300 && number % 2 == 0;
        let mut policed = 0.0;
        for tenth in 1..60 {
            path.run(seconds(f64::from(tenth) * 0.1));
            policed = watched(&path, "policed").max(policed);
        }
        policed
    };
    assert_eq!(run("bbr"), 1.0);
    assert_eq!(run("bbr(policer=off)"), 0.0);
}

#[test]
fn the_phase_of_probing_is_drawn_from_the_environment() {
    let phases: std::collections::BTreeSet<u64> = (0..64)
        .map(|seed| {
            let environment = crate::Environment {
                random_key: RandomKey::from_seed(seed),
                ..crate::Environment::default()
            };
            let mut path = SimplePath::new(crate::scenario::build_in("bbr", &environment));
            path.run(seconds(0.9));
            (watched(&path, "pacing_gain") * 100.0) as u64
        })
        .collect();
    assert!(phases.contains(&125) && phases.contains(&100), "{phases:?}");
}

/// Linux: packets that wait for the pacer are in flight, but not in the network. The RTT of the handshake is the first
/// smallest one.
#[test]
fn linux_counts_packets_that_wait_for_the_pacer() {
    let read = |dialect| {
        let settings = Settings::read(&Spec::named("bbr"), DESCRIPTOR.params).unwrap();
        let environment = Environment { dialect, ..Environment::default() };
        let mut bbr = fresh(&settings, &environment);
        let hints = PathHints { rtt: Some(Duration::from_millis(40)), ..PathHints::default() };
        bbr.on_path_event(Time::ZERO, &PathEvent::Hints(hints));
        let min_rtt = bbr.min_rtt;
        bbr.bandwidth.update(1, 1000.0);
        bbr.pacing = bbr.paced(1000.0, 1.0);
        let bytes = (bbr.packet_bits / 8.0) as u32;
        for outstanding in 7..=10 {
            bbr.on_sent(&Sent::new(Time::ZERO, bytes, outstanding));
        }
        (min_rtt, bbr.in_network(10, Time::ZERO), bbr.burst())
    };
    let (min_rtt, in_network, burst) = read(Dialect::Linux);
    assert_eq!((min_rtt, in_network), (Duration::from_millis(40), 10.0 + burst - 4.0));
    let (min_rtt, in_network, burst) = read(Dialect::Rfc);
    assert_eq!((min_rtt, in_network), (Duration::MAX, 10.0 + burst));
}

/// `bbr_undo_cwnd`.
#[test]
fn undone_losses_restart_search_for_full_pipe() {
    for (undo, state) in [(true, 0.0), (false, 2.0)] {
        let mut path = path("bbr");
        for ms in 1..150 {
            let now = seconds(f64::from(ms) * 1e-2);
            path.run(now);
            let spurious = SpuriousLosses { now, packets: 0, undo };
            path.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
        }
        assert_eq!(watched(&path, "bbr_state"), state);
    }
}
