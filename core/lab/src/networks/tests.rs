use super::*;
use crate::execute::RunControl;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// The networks of `cargo xtask bench networks`.
fn all(seed: u64) -> Vec<BenchNetwork> {
    let mut items = draw::networks(seed, 600);
    items.extend(draw::access(seed, 300));
    items.extend(draw::routes(seed, 300));
    items.extend(draw::mixes(seed, 240));
    items.extend(draw::transfers(seed, 100));
    items.extend(draw::named());
    items
}

#[test]
fn every_drawn_item_can_run_and_has_unique_name() {
    for seed in [1, 1_000_003] {
        let items = all(seed);
        let keys: BTreeSet<String> = items.iter().map(BenchNetwork::key).collect();
        assert_eq!(keys.len(), items.len());
        for item in &items {
            item.plan("rrtp").unwrap();
        }
    }
}

/// Each class of the distribution must be frequent enough to be a row.
#[test]
fn every_kind_of_network_is_drawn() {
    let items = draw::networks(1, 600);
    let count = |class: &str| items.iter().filter(|i| i.classes.contains(&class)).count();
    for class in [
        "codel",
        "fq-codel",
        "pie",
        "red",
        "dualpi2",
        "no loss",
        "single losses",
        "bursts in packets",
        "bursts in time",
        "jitter > RTT/10",
        "reordering",
        "return path < rate",
        "cellular model",
        "rate steps",
        "rate walks",
        "two rates in turn",
        "policer",
        "outages",
        "web beside",
        "queue < 1/4 BDP",
        "queue 1/4 to 1 BDP",
        "queue 1 to 4 BDP",
    ] {
        assert!(count(class) >= 5, "{class}: {}", count(class));
    }
}

#[test]
fn quick_set_is_part_of_full_and_sets_differ() {
    let describe =
        |items: Vec<BenchNetwork>| items.iter().map(BenchNetwork::describe).collect::<Vec<_>>();
    let full = draw::networks(1, 30);
    let quick = draw::networks(1, 10);
    assert_eq!(describe(full)[..10], describe(quick)[..]);
    assert_ne!(describe(draw::mixes(1, 5)), describe(draw::mixes(2, 5)));
}

fn measure(protocol: &str, stop: bool) -> Result<Option<NetworkScores>, String> {
    let asked = NetworkScorecard { protocol: protocol.into(), networks: 1, seed: 1 };
    let stop = AtomicBool::new(stop);
    asked.measure(&RunControl { stop: &stop, progress: &|_| (), jobs: 2 })
}

/// CUBIC does as much harm as CUBIC, and is listed once.
#[test]
fn scorecard_of_cubic_compares_it_once() {
    let scores = measure(" cubic", false).unwrap().unwrap();
    assert_eq!(scores.protocols, ["cubic", "bbr3", "rrtp"]);
    let sections = scores.sections();
    let rows = || sections.iter().flat_map(|s| &s.scores);
    let value = |label: &str| {
        let row = rows().find(|row| row.label == label).unwrap();
        row.estimate(&scores.results, "cubic").value
    };
    assert_eq!(value("no more harm than CUBIC"), 1.0);
    assert_eq!(value("others' rate / with CUBIC"), 1.0);
    assert!((0.0..=1.0).contains(&value("goodput / best, mean")));
    for row in rows().filter(|row| row.label == "goodput / best, mean") {
        let all = scores.protocols.iter().map(|p| row.estimate(&scores.results, p).value);
        assert_eq!(all.fold(0.0, f64::max), 1.0, "the best has 1");
    }
}

#[test]
fn scorecard_refuses_unknown_and_several_protocols() {
    let refusal = |protocol: &str| measure(protocol, false).err().unwrap();
    assert!(refusal("vegsa").contains("did you mean 'vegas'?"), "{}", refusal("vegsa"));
    assert!(refusal("vegas,reno").contains("one protocol"), "{}", refusal("vegas,reno"));
    assert!(measure("vegas", true).unwrap().is_none(), "interrupted");
}
