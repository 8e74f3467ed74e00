//! Scenarios with the digests of the command's engine, with which the page's module is compared.

use narrows_base::Duration;
use narrows_lab::Question;
use narrows_lab::networks::draw;
use narrows_scenario::{Plan, Scenario, scenario_file};
use narrows_sim::protocol::every;
use serde_json::json;
use std::path::Path;

/// The first networks of the development set of `bench networks`.
const NETWORKS: usize = 200;
/// Protocols on them, in turn.
const PROTOCOLS: [&str; 5] = ["cubic", "rrtp", "bbr3", "copa", "rrtp+bbr"];
/// Packets of a run: enough for slow start, losses and a long queue.
const PACKETS: f64 = 4000.0;
/// The link of the protocols, with losses, a queue that manages itself, and jitter.
const LINK: &str = "8Mbit/s,30ms,loss=0.5%,aqm=codel,jitter=2ms";

/// Writes the cases: every protocol on one link, and the networks.
///
/// # Errors
/// A network that does not parse, or the file.
pub fn write(file: &Path) -> Result<(), String> {
    let mut cases = Vec::new();
    for protocol in every() {
        let question = Question {
            link: LINK.into(),
            protocols: protocol.name.into(),
            duration: Duration::from_secs(5),
            ..Question::default()
        };
        let scenario = question.scenario(Path::new("")).map_err(|e| e.to_string())?.0;
        cases.push(case(protocol.name, scenario)?);
    }
    let networks = draw::networks(1, NETWORKS);
    for (number, (network, protocol)) in networks.iter().zip(PROTOCOLS.iter().cycle()).enumerate() {
        let plan = network.plan(protocol)?;
        let shorter = plan.scenario.duration.mul_f64((PACKETS / plan.work()).min(1.0));
        let mut scenario = plan.scenario;
        scenario.duration = shorter.max(Duration::from_millis(100));
        let end = scenario.duration;
        scenario.changes.retain(|change| change.at <= end);
        cases.push(case(&format!("network {number}"), scenario)?);
    }
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::write(file, json!(cases).to_string()).map_err(|e| format!("{}: {e}", file.display()))
}

fn case(name: &str, scenario: Scenario) -> Result<serde_json::Value, String> {
    let at = |e: &dyn std::fmt::Display| format!("{name}: {e}");
    let text = scenario_file::text(&scenario);
    let seed = scenario.seed;
    let plan = Plan::new(scenario).map_err(|e| at(&e))?;
    let run = narrows_sim::run(&plan.network(0, seed, false), &mut |_| true).map_err(|e| at(&e))?;
    let digest = format!("{:016x}", run.digest);
    Ok(json!({ "name": name, "scenario": text, "variant": 0, "seed": seed, "digest": digest }))
}
