//! Requirements on every controller of the list, under any sequence of events.

use crate::fuzz::{FuzzCase, variants};
use crate::list::CONTROLLERS;
use crate::scenario::build;
use crate::scenario_path::SimplePath;
use crate::{CongestionEvent, SlowStartRestart};
use narrows_base::descriptor::ParamKind;
use narrows_base::{Duration, RandomKey, Time, Variable};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Every file that defines a descriptor is on the list: compare the sources with it.
#[test]
fn every_descriptor_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut descriptors = Vec::new();
    for file in std::fs::read_dir(folder).expect("the crate has sources") {
        let path = file.expect("the folder can be read").path();
        if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let constants = text.split("\npub const ").skip(1);
            let is_descriptor = |text: &&str| {
                text.lines().next().is_some_and(|l| l.ends_with(": Descriptor = Descriptor {"))
            };
            for descriptor in constants.filter(is_descriptor) {
                let name =
                    descriptor.split("name: \"").nth(1).and_then(|rest| rest.split('"').next());
                descriptors.push(name.expect("a descriptor has a name").to_owned());
            }
        }
    }
    let mut listed: Vec<_> = CONTROLLERS.iter().map(|e| e.descriptor.name.to_owned()).collect();
    descriptors.sort();
    listed.sort();
    assert_eq!(descriptors, listed, "left: descriptors in src/, right: the list");
}

#[test]
fn cards_are_complete() {
    for descriptor in CONTROLLERS.iter().map(|e| e.descriptor) {
        for text in [descriptor.summary, descriptor.source, descriptor.senses, descriptor.sets] {
            assert!(!text.is_empty(), "{}", descriptor.name);
        }
        for p in descriptor.params {
            assert!(!p.origin.is_empty() && !p.help.is_empty(), "{}({})", descriptor.name, p.name);
            if let ParamKind::Number { min, max, default, .. } = p.kind {
                assert!((min..=max).contains(&default), "{}({})", descriptor.name, p.name);
            }
        }
    }
}

/// Every column of a series has its unit and meaning in the list, and the list has no column that no run could show.
#[test]
fn every_series_of_a_controller_is_explained() {
    let mut all: BTreeMap<&str, Variable> = BTreeMap::new();
    for entry in CONTROLLERS.iter() {
        let mut shown = BTreeSet::new();
        for seed in 0..40 {
            let mut random = RandomKey::from_seed(seed).stream();
            let bytes: Vec<u8> = (0..3000).map(|_| random.bits() as u8).collect();
            for settings in variants(entry) {
                shown.extend(FuzzCase::from_bytes(&bytes).put(entry, &settings));
            }
        }
        let listed: BTreeSet<&str> = entry.variables.iter().map(|v| v.name).collect();
        assert_eq!(listed.len(), entry.variables.len(), "{}: a name twice", entry.descriptor.name);
        assert_eq!(listed, shown, "{}: left: listed, right: shown", entry.descriptor.name);
        for v in entry.variables {
            assert!(!v.meaning.is_empty() && !v.meaning.ends_with('.'), "{}", v.name);
            assert_eq!(v.unit == "s", v.name.ends_with("_s"), "{}", v.name);
            assert_eq!(v.unit == "bit/s", v.name.ends_with("_bps"), "{}", v.name);
            let known = *all.entry(v.name).or_insert(*v);
            assert_eq!(known, *v, "one column, two meanings");
        }
    }
}

/// An application that sends a tenth of the path's capacity gives no measurement of it: the estimate of the bandwidth
/// stays, and a search for it does not end. A path that became slower is another case.
#[test]
fn little_data_does_not_make_a_path_slow() {
    let at = Time::from_secs_f64;
    let bandwidth = |path: &SimplePath| {
        let mut found = f64::NAN;
        path.controller.watch(&mut |name, value| {
            found = if name == "bandwidth_bps" { value } else { found };
        });
        found / 10e6
    };
    let tenth = Duration::from_millis(8);
    for name in ["bbr", "bbr3", "rrtp"] {
        let known = || {
            let mut path = SimplePath::new(build(name));
            path.run(at(3.0));
            path
        };
        let mut little = known();
        little.app_gap = tenth;
        little.run(at(8.0));
        assert!(bandwidth(&little) > 0.9, "{name}: {}", bandwidth(&little));
        let mut slow = known();
        slow.rate_bps = 5e6;
        slow.run(at(30.0));
        assert!(bandwidth(&slow) < 0.7, "{name}: {}", bandwidth(&slow));

        let mut begins = SimplePath::new(build(name));
        begins.app_gap = tenth;
        begins.run(at(3.0));
        begins.app_gap = Duration::ZERO;
        begins.run(at(3.2));
        let used = begins.utilisation(at(3.5));
        assert!(used > 0.8, "{name} begins with little data: {used}");
    }
}

/// The steps of `docs/adding-a-controller.md` into the list: the page's file compiles in its place, the page's line is
/// an entry, and its controller meets the requirements on every listed controller.
#[test]
fn the_worked_example_can_be_listed() {
    use crate::gentle;
    use crate::list::ControllerEntry;
    macro_rules! shown {
        ($entry:expr) => {
            ($entry, stringify!($entry))
        };
    }
    let (entry, line) = shown!(
        ControllerEntry::new(&gentle::DESCRIPTOR, gentle::build).with_variables(gentle::VARIABLES)
    );
    let dense = |text: &str| text.replace(char::is_whitespace, "");
    let page = include_str!("../../../docs/adding-a-controller.md");
    assert!(dense(page).contains(&(dense(line) + ",")), "the page should say {line}");
    for seed in 0..40 {
        let mut random = RandomKey::from_seed(seed).stream();
        let bytes: Vec<u8> = (0..3000).map(|_| random.bits() as u8).collect();
        for settings in variants(&entry) {
            FuzzCase::from_bytes(&bytes).put(&entry, &settings);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 200,
        ..Default::default()
    })]

    #[test]
    fn no_legal_events_break_any_controller(
        case in proptest::collection::vec(any::<u8>(), 0..3000).prop_map(|b| FuzzCase::from_bytes(&b)),
    ) {
        for entry in CONTROLLERS.iter() {
            for settings in variants(entry) {
                case.put(entry, &settings);
            }
        }
    }
}

/// Equal events give equal windows, to the bit: no hidden state, no unordered map, no clock.
#[test]
fn controllers_repeat_to_the_bit() {
    use crate::scenario::build;
    use crate::scenario_path::SimplePath;
    for entry in CONTROLLERS.iter() {
        if build(entry.descriptor.name).requirements().rrtp {
            continue; // This path repairs. The engine's tests run them.
        }
        // Without a rate it sends its initial window per RTT.
        let name = entry.descriptor.name;
        let spec = if name == "brutal" { "brutal(rate=9Mbit/s)" } else { name };
        let run = || {
            let mut path = SimplePath::new(build(spec));
            path.queue_limit = 20;
            path.lose = |number| narrows_base::RandomKey::from_seed(1).draw(number) < 0.003;
            path.run(Time::from_secs_f64(20.0));
            (path.window().to_bits(), path.delivered, path.dropped, path.goodput().to_bits())
        };
        assert_eq!(run(), run(), "{}", entry.descriptor.name);
        let (_, delivered, ..) = run();
        assert!(delivered > 5_000, "{} delivers only {delivered} of 25000", entry.descriptor.name);
    }
}

/// A copy of a running controller continues as the original would have: no state is shared or missing.
#[test]
fn a_copy_goes_on_as_its_original() {
    use crate::scenario::build;
    use crate::scenario_path::SimplePath;
    for entry in CONTROLLERS.iter() {
        if build(entry.descriptor.name).requirements().rrtp {
            continue; // As above.
        }
        let run = |copied: bool| {
            let mut path = SimplePath::new(build(entry.descriptor.name));
            path.queue_limit = 20;
            path.lose = |number| narrows_base::RandomKey::from_seed(1).draw(number) < 0.003;
            path.run(Time::from_secs_f64(5.0));
            if copied {
                let mut original = path.controller.clone();
                std::mem::swap(&mut original, &mut path.controller);
                // Later events of the original do not affect the copy.
                let restart = SlowStartRestart {
                    now: path.now,
                    flight: 10,
                    timeout: true,
                    backoffs: 1,
                    min_rtt: narrows_base::Duration::from_millis(50),
                    srtt: narrows_base::Duration::from_millis(60),
                };
                original.on_congestion_event(&CongestionEvent::SlowStartRestart(restart));
            }
            path.run(Time::from_secs_f64(10.0));
            (path.window().to_bits(), path.delivered, path.dropped)
        };
        assert_eq!(run(true), run(false), "{}", entry.descriptor.name);
    }
}
