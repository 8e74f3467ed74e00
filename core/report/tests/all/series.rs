//! Time series explain themselves.

use narrows_base::Duration;
use narrows_congestion::CONTROLLERS;
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::{Outcome, Question, catalogue};
use narrows_report::variables;
use narrows_scenario::Plan;
use narrows_sim::protocol::every;
use std::collections::BTreeSet;
use std::path::Path;

/// Every protocol, two flows each, beside another and through a
/// queue that keeps an average of its own.
fn all_protocols() -> Outcome {
    let names: Vec<&str> = every().map(|p| p.name).collect();
    let question = Question {
        link: "2Mbit/s,30ms,loss=1%,aqm=red".into(),
        protocols: names.join(","),
        flows: 2,
        against: Some("reno:1".into()),
        duration: Duration::from_secs(10),
        seeds: 1,
        ..Question::default()
    };
    let plan = Plan::new(question.scenario(Path::new("")).unwrap().0).unwrap();
    let runs = execute(&plan, &RunControl::quiet(2)).unwrap();
    collect(&plan, OutcomeMetadata::default(), &runs, None)
}

/// What no controller defines has a definition in the engine's list or the laboratory's.
#[test]
fn every_column_of_every_protocol_has_unit_and_meaning() {
    let outcome = all_protocols();
    let mut columns = BTreeSet::new();
    for table in outcome.results.iter().flat_map(|r| &r.series) {
        columns.extend(table.columns.iter().map(|c| c.0));
    }
    for expected in ["cwnd", "queue_average", "jain", "bandwidth_bps", "tear_state"] {
        assert!(columns.contains(expected), "nothing shows {expected}, so this tests too little");
    }
    for column in columns {
        let variable = variables::listed(column);
        assert!(
            variable.is_some_and(|v| !v.meaning.is_empty()),
            "{column} has no meaning in the list"
        );
    }
}

/// Every name has one meaning in all crates.
#[test]
fn no_column_is_defined_twice() {
    let listed = CONTROLLERS.iter().flat_map(|e| e.variables);
    for v in listed.chain(narrows_sim::COLUMNS).chain(variables::OWN) {
        assert_eq!(variables::listed(v.name), Some(*v), "{}", v.name);
    }
}

#[test]
fn list_of_controllers_explains_their_series() {
    for entry in CONTROLLERS.iter() {
        let (items, detailed) =
            catalogue::chosen(Some("controllers"), Some(entry.descriptor.name)).unwrap();
        let text = catalogue::text(&items, detailed);
        let json = catalogue::json(&items);
        for (i, v) in entry.variables.iter().enumerate() {
            let line = text.lines().find(|l| l.trim_start().starts_with(v.name));
            let line = line.unwrap_or_else(|| panic!("{}: no {}", entry.descriptor.name, v.name));
            assert!(line.contains(v.meaning) && line.contains(v.unit), "{line}");
            assert!(v.states.iter().all(|s| line.contains(s)), "{line}");
            assert_eq!(json[0]["variables"][i]["meaning"], v.meaning);
        }
    }
}
