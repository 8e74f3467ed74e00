//! The limits of a sender, measured over whole simulations.

use narrows_base::{Duration, Spec};
use narrows_lab::Question;
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::measure::MEASURES;
use narrows_scenario::Plan;
use narrows_sim::SourceSpec;
use std::path::Path;

/// The largest share and its measure, per protocol.
fn limits(link: &str, source: &str, protocols: &str) -> Vec<(&'static str, f64)> {
    let question = Question {
        link: link.into(),
        protocols: protocols.into(),
        source: SourceSpec::read(&Spec::parse(source).unwrap()).unwrap(),
        duration: Duration::from_secs(20),
        seeds: 1,
        ..Question::default()
    };
    let plan = Plan::new(question.scenario(Path::new("")).unwrap().0).unwrap();
    let control = RunControl::quiet(1);
    let runs = execute(&plan, &control).unwrap();
    let of = |values: &[f64]| {
        let shares: Vec<(&'static str, f64)> = (MEASURES.iter().zip(values))
            .filter(|(m, _)| m.name.ends_with("_limited"))
            .map(|(m, v)| (m.name, *v))
            .collect();
        let sum: f64 = shares.iter().map(|s| s.1).sum();
        assert!((0.9..=1.0 + 1e-9).contains(&sum), "the rest is the opening: {shares:?}");
        shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    };
    runs.iter().map(|seeds| of(&seeds[0].as_ref().unwrap().groups[0].measures)).collect()
}

/// A path of 6 MB, of which Linux's send buffer holds 2.75 MB.
#[test]
fn send_buffer_limits_a_path_longer_than_it() {
    let found = limits("200Mbit/s,125ms", "bulk", "cubic,cubic(receive-window=1000),rrtp");
    assert_eq!(found[0].0, "sndbuf_limited", "{found:?}");
    assert_eq!(found[1].0, "rwnd_limited", "{found:?}");
    assert!(!["sndbuf_limited", "rwnd_limited"].contains(&found[2].0), "{found:?}");
    assert!(found[..2].iter().all(|f| f.1 > 0.7), "{found:?}");
}

#[test]
fn window_rate_and_application_are_told_apart() {
    let found = limits("10Mbit/s,20ms", "bulk", "sack,bbr");
    assert_eq!([found[0].0, found[1].0], ["cwnd_limited", "pacing_limited"], "{found:?}");
    let found = limits("10Mbit/s,20ms", "cbr(rate=1Mbit/s)", "sack,rrtp");
    assert!(found.iter().all(|f| f.0 == "app_limited" && f.1 > 0.9), "{found:?}");
}

/// The endpoint spreads a window over the round trip, at a rate above the window's: the window stays the limit.
#[test]
fn paced_window_counts_as_window() {
    let found = limits("10Mbit/s,20ms", "bulk", "rrtp+reno,rrtp+cubic,rrtp+bbr");
    let names: Vec<&str> = found.iter().map(|f| f.0).collect();
    assert_eq!(names, ["cwnd_limited", "cwnd_limited", "pacing_limited"], "{found:?}");
}

/// The limits of a transfer end with it: an application that has written all its data is no limit afterwards.
#[test]
fn time_after_a_transfer_does_not_count() {
    let found = limits("10Mbit/s,20ms", "transfer(size=5MB)", "sack");
    assert_eq!(found[0].0, "cwnd_limited", "{found:?}");
}
