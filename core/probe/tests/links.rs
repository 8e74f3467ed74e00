//! The estimates on twelve simulated links, ten seeds each: as near as they are to be.

use narrows_base::{Duration, Time};
use narrows_link::LinkConfig;
use narrows_link::trace::Trace;
use narrows_probe::ecn::EcnVerdict;
use narrows_probe::simulated::{CheckedEstimate, LINKS, SimulatedPath, judge};
use narrows_probe::{FULL_BYTES, MAX_BYTES, PathEstimate};
use narrows_scenario::BottleneckLink;
use std::path::Path;
use std::sync::Arc;

const SEEDS: u64 = 10;

fn configs(text: &str) -> (LinkConfig, LinkConfig) {
    let link = BottleneckLink::parse(text, Path::new("")).unwrap();
    let rtt = link.base_rtt();
    (link.forward.config(rtt, FULL_BYTES, false), link.reverse.config(rtt, FULL_BYTES, false))
}

fn each(fill: bool) -> Vec<(&'static str, u64, PathEstimate, CheckedEstimate)> {
    let mut all = Vec::new();
    for link in LINKS {
        let (up, down) = configs(link.link);
        for seed in 1..=SEEDS {
            let estimate = SimulatedPath::new(&up, &down, seed).unwrap().probe(fill).unwrap();
            for judged in judge([&up, &down], link.loss, &estimate) {
                all.push((link.name, seed, estimate, judged));
            }
        }
    }
    all
}

/// The table of `docs/probe.md`: for each link and quantity the largest error of any seed; relative for rate, policer and
/// buffer, in seconds for the RTT, absolute for the loss.
fn print_largest_errors(all: &[(&str, u64, PathEstimate, CheckedEstimate)]) {
    for link in LINKS {
        let mut line = link.name.to_string();
        for what in ["rtt", "rate", "loss", "policer", "buffer"] {
            let of = all.iter().filter(|(name, _, _, j)| *name == link.name && j.what == what);
            let errors = of.filter(|(.., j)| j.found.high.is_finite()).map(|(.., j)| {
                let error = (j.found.value - j.truth).abs();
                if ["rtt", "loss"].contains(&what) { error } else { error / j.truth }
            });
            line += &format!(", {what} {:.5}", errors.fold(0.0, f64::max));
        }
        println!("{line}");
    }
}

#[test]
fn estimates_are_near_the_truth_and_intervals_contain_it() {
    let all = each(true);
    print_largest_errors(&all);
    for (name, seed, estimate, judged) in &all {
        assert!(judged.near, "{name}, seed {seed}: {judged:?}\n{}", estimate.link());
    }
    for what in ["rate", "rtt", "loss", "policer", "buffer"] {
        let of: Vec<_> = all.iter().filter(|j| j.3.what == what).collect();
        let held = of.iter().filter(|j| j.3.held).count();
        for (name, seed, _, judged) in of.iter().filter(|j| !j.3.held) {
            println!("not held: {name} {seed} {judged:?}");
        }
        assert!(10 * held >= 9 * of.len(), "{what}: {held} of {}", of.len());
    }
}

#[test]
fn without_filling_a_queue_the_rest_is_known_as_well() {
    for (name, seed, estimate, judged) in each(false) {
        assert!(judged.near, "{name}, seed {seed}: {judged:?}\n{}", estimate.link());
        assert!(estimate.up.buffer.is_none() && estimate.down.buffer.is_none());
    }
}

/// Whether a queue marks, or drops those that could be marked; and whether a mark would arrive at all.
#[test]
fn treatment_of_ecn_is_detected() {
    let probe = |aqm: &str, clears: bool| {
        let (up, down) =
            configs(&format!("10Mbit/s,20ms,queue=1000p,aqm={aqm},reverse-rate=2Mbit/s"));
        let path = SimulatedPath::new(&up, &down, 1).unwrap();
        let mut path = if clears { path.clearing_ecn() } else { path };
        path.probe(true).unwrap()
    };
    let of = |e: &PathEstimate| {
        (e.up.ecn.verdict(), e.up.ecn.queue_marks(), e.up.buffer.unwrap().managed)
    };
    let marks = probe("codel", false);
    assert_eq!(of(&marks), (EcnVerdict::Passes, true, true));
    assert!(marks.link().contains("aqm=codel,"), "{}", marks.link());
    // It is stopped by marks, as it would be by drops.
    assert!(marks.up.ecn.filling.1 < 20 && marks.up.ecn.filling.0 < 3000, "{:?}", marks.up.ecn);
    let drops = probe("codel(ecn=off)", false);
    assert_eq!(of(&drops), (EcnVerdict::Passes, false, true));
    assert!(drops.link().contains("aqm=codel(ecn=off)"), "{}", drops.link());
    assert_eq!(of(&probe("codel", true)), (EcnVerdict::Cleared, false, true));
    let full = probe("droptail", false);
    assert_eq!(of(&full), (EcnVerdict::Passes, false, false));
}

/// The printed link can be read by the commands.
#[test]
fn the_link_reads_back() {
    for link in LINKS {
        let (up, down) = configs(link.link);
        let estimate = SimulatedPath::new(&up, &down, 1).unwrap().probe(true).unwrap();
        let found = BottleneckLink::parse(&estimate.link(), Path::new("")).unwrap();
        let off = found.base_rtt().as_secs_f64() - estimate.base_rtt.value;
        assert!(off.abs() < 2e-5, "{}", estimate.link());
        assert_eq!(found.forward.aqm.is_some(), up.queue.aqm.is_some(), "{}", estimate.link());
        let back = found.reverse.aqm.is_some_and(|aqm| aqm.name != "droptail");
        assert_eq!(back, estimate.down.buffer.is_some_and(|b| b.managed), "{}", estimate.link());
    }
}

/// Each end checks every train as a server does; a refused one leaves no estimate. Busy hosts send less than planned.
#[test]
fn no_train_is_refused_at_any_rate_and_delay() {
    for rate in ["100kbit/s", "1Mbit/s", "10Mbit/s", "80Mbit/s", "200Mbit/s", "1Gbit/s", "10Gbit/s"]
    {
        for delay in ["1ms", "10ms", "100ms", "1000ms"] {
            for (fill, share) in [(false, 1.0), (false, 0.4), (true, 1.0), (true, 0.4)] {
                let (up, down) = configs(&format!("{rate},{delay}"));
                let mut path = SimulatedPath::new(&up, &down, 1).unwrap().sending_only(share);
                let case = format!("{rate}, {delay}, fill {fill}, {share} of each train");
                let estimate = path.probe(fill).unwrap_or_else(|| panic!("{case}: no estimate"));
                for way in [&estimate.up, &estimate.down] {
                    assert!(way.sent_bytes <= MAX_BYTES, "{case}: {way:?}");
                    // If round trips use all the time, there is no steady load.
                    let known = way.loss.is_some() || delay == "1000ms";
                    assert!(known, "{case}: nothing known of losses");
                }
            }
        }
    }
}

/// The rate of the path changes every second, by a trace. In each second, the recording carries as much within 5%.
#[test]
fn a_recorded_path_has_the_rate_of_the_path() {
    let rates = [6.0, 2.0, 9.0, 4.0, 1.0, 7.0, 3.0];
    let mut text = String::new();
    let mut bits = 0.0;
    for (second, rate) in rates.into_iter().enumerate() {
        for ms in 0..1000 {
            bits += rate * 1000.0;
            while bits >= 12_000.0 {
                bits -= 12_000.0;
                text += &format!("{}\n", second * 1000 + ms + 1);
            }
        }
    }
    let trace = Arc::new(Trace::parse(&text).unwrap());
    let (up, down) = configs("5Mbit/s,20ms,queue=4000p,reverse-rate=3Mbit/s");
    let up = LinkConfig { trace: Some(trace.clone()), ..up };
    let mut path = SimulatedPath::new(&up, &down, 1).unwrap();
    let estimate = path.probe(false).unwrap();
    let [there, back] = path.record(&estimate).unwrap();
    let played = Trace::parse(&there.text).unwrap();
    let length = played.period();
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let each = |trace: &Trace, from: u64| trace.bytes_between(at(from), at(from + 1000));
    // The recording begins somewhere in the path's seconds.
    let error = |from: u64| {
        let starts =
            (0..4).map(|s| s * 1000).take_while(|s| s + 1000 < length.as_nanos() / 1_000_000);
        let errors = starts.map(|s| {
            let truth = each(&trace, from + s);
            (each(&played, s) - truth).abs() / truth
        });
        errors.fold(0.0, f64::max)
    };
    let best = (0..7000).step_by(5).map(error).fold(1.0, f64::min);
    assert!(best < 0.05 && length > Duration::from_millis(3500), "{best}, {length:?}");
    // The other direction has one rate, and the load found it.
    assert!((2.94e6..3.06e6).contains(&back.rate) && back.waited > 0.9, "{back:?}");
    let played = Trace::parse(&back.text).unwrap();
    assert!((2.94e6..3.06e6).contains(&played.mean_bps()), "{}", played.mean_bps());
    // A link that plays it has the path's rate for a burst, and for a load.
    let config = LinkConfig { trace: Some(Arc::new(played)), ..down };
    let mut again = SimulatedPath::new(&config, &config, 2).unwrap();
    let rate = again.probe(false).unwrap().up.rate.value;
    assert!((2.7e6..3.3e6).contains(&rate), "{rate}");
}
