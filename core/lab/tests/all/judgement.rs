//! The recommendations of `compare` for sixteen links and four aims, beside the expected protocols.

use narrows_lab::Question;
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::compare;
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::outcome::Recommendation;
use narrows_lab::recommendation::{AIMS, Aim, Obtain};
use narrows_scenario::Plan;
use narrows_sim::protocol::Preset;
use std::path::Path;

/// As `narrows compare --link LINK --for AIM` answers; `limit` names the protocols, seconds and seeds of a short run.
fn advice(link: &str, aim: Aim, limit: Option<&str>) -> Recommendation {
    let source = compare::source(aim.source()).unwrap();
    let mut q = Question::usual(link, Preset::Linux, &source, Path::new(""));
    q.link = link.into();
    q.source = source;
    q.protocols = aim.protocols().into();
    if let Some(protocols) = limit {
        q.protocols = protocols.into();
        q.duration = narrows_base::Duration::from_secs(20);
        q.seeds = 3;
    }
    let (scenario, link) = q.scenario(Path::new("")).unwrap();
    let plan = Plan::new(scenario).unwrap();
    let control = RunControl::quiet(2);
    let runs = execute(&plan, &control).unwrap();
    let link = link.to_string();
    let about = OutcomeMetadata { command: "compare", link, aim, ..OutcomeMetadata::default() };
    collect(&plan, about, &runs, Some(&control)).recommendation
}

/// On clean links nothing gains over the default; where losses are random, and where delays matter, others do.
#[test]
fn recommendation_for_clean_and_lossy_links_is_sensible() {
    let protocols = Some("cubic,vegas,bbr,rrtp");
    for link in ["20Mbit/s,5ms", "cable"] {
        let clean = advice(link, Aim::Bulk, protocols);
        assert_eq!((clean.protocol.as_str(), &clean.command), ("cubic", &None), "{link}: {clean}");
    }
    let lossy = advice("10Mbit/s,25ms,loss=1%", Aim::Bulk, protocols);
    assert!(["bbr", "rrtp"].contains(&lossy.protocol.as_str()), "{lossy}");
    assert!(lossy.to_string().contains("Beside one CUBIC flow on this link it gets "), "{lossy}");
}

/// Sixteen links, each with what is expected for bulk, calls, live and web: names of which one is right, or `none`.
const LINKS: [(&str, [&str; 4]); 16] = [
    ("wireless", ["bbr|copa|rrtp", "tear-wireless", "rrtp", "cubic|rrtp"]),
    ("geo", ["rrtp", "scream", "rrtp", "cubic|rrtp"]),
    ("geo-slow", ["cubic", "none", "none", "cubic|none"]),
    ("cdma", ["rrtp", "scream", "rrtp", "cubic|rrtp|none"]),
    ("wifi", ["bbr|copa|rrtp", "tfwc|tfrc", "rrtp", "cubic|rrtp"]),
    ("base-station", ["bbr|copa|rrtp", "tfwc", "rrtp", "cubic|copa|rrtp"]),
    ("dsl", ["cubic", "scream", "rrtp", "cubic|rrtp"]),
    ("lan", ["cubic", "tfwc", "rrtp|cubic", "cubic|rrtp"]),
    ("lte", ["cubic|rrtp", "scream", "cubic|rrtp", "cubic|rrtp"]),
    ("cable", ["cubic", "tfwc", "rrtp", "cubic"]),
    ("leo", ["cubic|rrtp", "tfwc", "cubic|rrtp", "cubic|rrtp"]),
    ("lfn", ["rrtp|bbr", "tear", "rrtp", "cubic|rrtp"]),
    ("100Mbit/s,5ms", ["cubic", "tfwc", "cubic", "cubic"]),
    ("1Gbit/s,5ms", ["cubic", "tfwc", "cubic|rrtp", "cubic"]),
    ("20Mbit/s,25ms,loss=0.5%", ["bbr|copa|rrtp", "tear-wireless", "rrtp|bbr", "cubic|rrtp"]),
    ("20Mbit/s,20ms,queue=10bdp", ["cubic", "tfrc|scream", "rrtp", "cubic"]),
];

/// `cargo test --release -p narrows-lab --test all judgement -- --ignored --nocapture` prints the table of
/// docs/scenarios.md; it takes some minutes.
#[test]
#[ignore = "minutes of simulation in a release build"]
fn recommendations_of_sixteen_links_are_as_expected() {
    let mut wrong = Vec::new();
    for (link, expected) in LINKS {
        let mut row = format!("| `{link}` |");
        for ((name, aim), expected) in AIMS.into_iter().zip(expected) {
            let said = advice(link, aim, None);
            let text = said.to_string();
            let protocol = if said.protocol.is_empty() { "none" } else { &said.protocol };
            let share = text.split_once("on this link it gets ").and_then(|t| t.1.split_once(' '));
            row +=
                &format!(" {protocol}{} |", share.map_or(String::new(), |s| format!(" ({})", s.0)));
            if !expected.split('|').any(|e| e == protocol) {
                wrong.push(format!("{link}, {name}: {text}"));
            }
            let is_of_linux = matches!(
                Obtain::of(protocol, Preset::Linux),
                Obtain::Linux(..) | Obtain::Kernel(..)
            );
            if is_of_linux && protocol != "cubic" {
                let share = share.and_then(|s| s.0.strip_suffix('%')?.parse::<f64>().ok());
                assert!(share.is_some_and(|s| s >= 80.0), "{link}, {name}: {text}");
            }
        }
        println!("{row}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
