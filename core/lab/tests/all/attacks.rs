//! Networks on which `narrows attack` found rrtp to perform badly: it must not become notably worse there.

use narrows_lab::execute::{RunControl, execute};
use narrows_lab::measure::MEASURES;
use narrows_scenario::{Plan, scenario_file};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

enum Margin {
    AtLeast(f64),
    AtMost(f64),
}
use Margin::{AtLeast, AtMost};

/// Means over the file's seeds, with a margin of about a half; the measured values are beside them.
const BOUNDS: [(&str, &str, Margin); 7] = [
    ("jitter-then-a-longer-path", "goodput_bps", AtLeast(2.5e6)), // 5.0 Mbit/s
    ("bursts-and-jitter-on-a-fast-path", "goodput_bps", AtLeast(1.5e6)), // 5.56 Mbit/s
    ("thin-return-path-beside-bbr", "goodput_bps", AtLeast(160e3)), // 317 kbit/s
    ("eight-flows-on-a-short-path", "queue_loss_rate", AtMost(0.33)), // 0.323
    ("eight-flows-on-a-short-path", "offered_over_delivered", AtMost(1.5)), // 1.48
    ("renos-on-a-short-path", "queue_loss_rate", AtMost(0.015)),  // 0.009
    ("policer", "queue_loss_rate", AtMost(0.06)),                 // 0.039
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/attacks")
}

/// The mean of a measure over the seeds, of the flows under attack.
fn mean(name: &str, measure: &str) -> f64 {
    let plan = Plan::new(scenario_file::load(&folder().join(format!("{name}.toml"))).unwrap());
    let plan = plan.unwrap();
    let runs = execute(&plan, &RunControl::quiet(2)).unwrap();
    let at = MEASURES.iter().position(|m| m.name == measure).unwrap();
    let values: Vec<f64> =
        runs[0].iter().map(|r| r.as_ref().unwrap().groups[0].measures[at]).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn networks_found_by_attack_get_no_worse() {
    for (name, measure, bound) in &BOUNDS {
        let value = mean(name, measure);
        match bound {
            AtLeast(min) => assert!(value >= *min, "{name}: {measure} {value}, not {min}"),
            AtMost(max) => assert!(value <= *max, "{name}: {measure} {value}, not {max}"),
        }
    }
}

#[test]
fn every_attack_that_is_kept_has_a_bound() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let bounded: BTreeSet<String> = BOUNDS.iter().map(|(name, ..)| name.to_string()).collect();
    assert_eq!(files, bounded);
}
