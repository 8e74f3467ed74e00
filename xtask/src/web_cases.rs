//! Questions with the digests of the command's engine, with which the page's module is compared.

use crate::files::failed;
use narrows_base::Duration;
use narrows_lab::Question;
use narrows_lab::execute::{RunControl, combined};
use narrows_lab::networks::{BenchNetwork, BenchPart, draw, simulate};
use narrows_scenario::{Plan, Scenario};
use narrows_sim::protocol::every;
use serde_json::{Value, json};
use std::path::Path;

/// The first networks of the development set of `bench networks`.
const NETWORKS: usize = 200;
/// Protocols on them, in turn.
const PROTOCOLS: [&str; 5] = ["cubic", "rrtp", "bbr3", "copa", "rrtp+bbr"];
/// Packets of a run: enough for slow start, losses and a long queue.
const PACKETS: f64 = 4000.0;
/// Packets of a cell of the atlas, which is simulated to its end.
const CELL_PACKETS: f64 = 100_000.0;
/// Cells of each part of the atlas.
const CELLS: usize = 3;
/// The link of the protocols, with losses, a queue that manages itself, and jitter.
const LINK: &str = "8Mbit/s,30ms,loss=0.5%,aqm=codel,jitter=2ms";

/// Writes the cases: every protocol on one link, the beginning of networks, and cells of the atlas.
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
            seeds: 1,
            ..Question::default()
        };
        let scenario = question.scenario(Path::new("")).map_err(|e| e.to_string())?.0;
        let options = json!([
            ["link", LINK],
            ["protocols", protocol.name],
            ["duration", "5s"],
            ["packet", "1000B"],
            ["seeds", "1"],
        ]);
        let question = json!({ "options": options });
        cases.push(case(protocol.name, 1, digest(scenario)?, &question));
    }
    let networks = draw::networks(1, 0..NETWORKS);
    for (network, protocol) in networks.iter().zip(PROTOCOLS.iter().cycle()) {
        let plan = network.plan(protocol)?;
        let seconds = plan.scenario.duration.as_secs_f64() * (PACKETS / plan.work()).min(1.0);
        let seconds = seconds.max(0.1);
        let mut scenario = plan.scenario;
        scenario.duration = Duration::from_secs_f64(seconds);
        let end = scenario.duration;
        scenario.changes.retain(|change| change.at <= end);
        let question = json!({ "options": options(network, protocol), "first_s": seconds });
        cases.push(case(&network.key(), 1, digest(scenario)?, &question));
    }
    for part in BenchPart::ALL {
        let mut cells = draw::numbered(part, 1, 0..NETWORKS);
        if part == BenchPart::Pairs {
            cells = vec![draw::pair(1, 0, None), draw::pair(1, 1, Some("bbr"))];
        }
        let mut protocols = PROTOCOLS.iter().cycle();
        let mut count = 0;
        for network in &cells {
            let Some(protocol) = protocols.next().filter(|_| count < CELLS) else { break };
            if network.plan(protocol)?.work() * f64::from(network.seeds) <= CELL_PACKETS {
                cases.push(cell(network, protocol)?);
                count += 1;
            }
        }
    }
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    crate::files::write(file, json!(cases).to_string())
}

fn options(network: &BenchNetwork, protocol: &str) -> Value {
    json!([
        ["network", network.address(1)],
        ["protocols", protocol],
        ["seeds", network.seeds.to_string()]
    ])
}

fn case(name: &str, seeds: u32, digest: u64, question: &Value) -> Value {
    let digest = format!("{digest:016x}");
    json!({ "name": name, "seeds": seeds, "digest": digest, "question": question })
}

/// The digest of a scenario's first run.
fn digest(scenario: Scenario) -> Result<u64, String> {
    let seed = scenario.seed;
    let plan = Plan::new(scenario).map_err(|e| e.to_string())?;
    let run = narrows_sim::run(&plan.network(0, seed, false), &mut |_| true);
    Ok(combined(&[run.map_err(|e| e.to_string())?.digest]))
}

/// A cell, with the digest that the atlas lists.
fn cell(network: &BenchNetwork, protocol: &str) -> Result<Value, String> {
    let control = RunControl::quiet(1);
    let simulated = simulate(std::slice::from_ref(network), &[protocol.into()], &control)?;
    let digests = simulated.map(|s| s.digests).unwrap_or_default();
    let listed = digests.get(&network.key()).and_then(|of| of.get(protocol)).copied();
    let digest = listed.ok_or_else(|| format!("{}: no digest", network.key()))?;
    let name = format!("cell {} {protocol}", network.key());
    Ok(case(&name, network.seeds, digest, &json!({ "options": options(network, protocol) })))
}
