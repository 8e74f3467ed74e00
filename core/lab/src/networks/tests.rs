use super::*;
use crate::execute::RunControl;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// The networks of `cargo xtask bench networks`.
fn all(seed: u64) -> Vec<BenchNetwork> {
    let counts = [
        (BenchPart::Networks, 600),
        (BenchPart::Access, 300),
        (BenchPart::Routes, 300),
        (BenchPart::Mixes, 240),
        (BenchPart::Transfers, 100),
    ];
    let drawn = counts.iter().flat_map(|(part, count)| draw::numbered(*part, seed, 0..*count));
    let pairs = (0..8).flat_map(|i| [None, Some("bbr")].map(|other| draw::pair(seed, i, other)));
    drawn.chain(pairs).chain(draw::named()).collect()
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

/// A network is found by the name under which the atlas lists it.
#[test]
fn drawn_network_is_found_by_its_address() {
    for item in all(7).iter().filter(|item| item.part != BenchPart::Named).step_by(37) {
        let found = draw::find(&item.address(7)).unwrap();
        assert_eq!(found.key(), item.key());
        assert_eq!(found.describe(), item.describe());
        assert_eq!(found.seed, item.seed);
    }
    assert_eq!(draw::find("mixes/7/5").unwrap().name, "005");
    for wrong in [
        "",
        "mixes/7",
        "mixes/7/",
        "mixes/x/1",
        "mixes/7/-1",
        "mixes/7/1e3",
        "named/7/1",
        "pairs/7/1",
    ] {
        let line = draw::find(wrong).unwrap_err().to_string();
        assert!(line.starts_with(&format!("there is no network '{wrong}': PART/SEED")), "{line}");
    }
    assert!(draw::find("networks/7/99999999999999999999").is_err());
}

/// Each class of the distribution must be frequent enough to be a row.
#[test]
fn every_kind_of_network_is_drawn() {
    let items = draw::networks(1, 0..600);
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
    let full = draw::networks(1, 0..30);
    let quick = draw::networks(1, 0..10);
    assert_eq!(describe(full)[..10], describe(quick)[..]);
    assert_ne!(describe(draw::mixes(1, 0..5)), describe(draw::mixes(2, 0..5)));
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
