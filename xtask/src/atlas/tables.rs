//! The atlas as tables: CSV, Parquet, and their description.

use super::{Atlas, PARTS};
use narrows_lab::networks::scores;
use narrows_report::columns::{Columns, Values};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Texts of a row of `figures`; each figure has a column after them.
const OF_FIGURES: [&str; 5] = ["part", "network", "classes", "link", "protocol"];

/// Writes the tables and `datapackage.json`.
pub fn write(atlas: &Atlas, out: &Path) -> Result<(), String> {
    let tables = [("scores", of_scores(atlas)), ("figures", of_figures(atlas))];
    let mut resources = Vec::new();
    for (name, table) in &tables {
        let about = [
            ("narrows.commit", atlas.version.commit.clone()),
            ("narrows.seed", atlas.version.seed.to_string()),
        ];
        let csv = format!("{name}.csv");
        std::fs::write(out.join(&csv), table.csv()).map_err(|e| format!("{csv}: {e}"))?;
        let packed = format!("{name}.parquet");
        let sink =
            std::fs::File::create(out.join(&packed)).map_err(|e| format!("{packed}: {e}"))?;
        table.parquet(sink, &about).map_err(|e| format!("{packed}: {e}"))?;
        let fields: Vec<_> = (table.0.iter())
            .map(|(column, values)| {
                let kind = match values {
                    Values::Text(_) => "string",
                    Values::Whole(_) => "integer",
                    Values::Number(_) => "number",
                };
                json!({ "name": column, "type": kind, "description": meaning(column) })
            })
            .collect();
        resources.push(json!({
            "name": name, "path": csv, "format": "csv", "schema": { "fields": fields },
        }));
        resources.push(
            json!({ "name": format!("{name}-parquet"), "path": packed, "format": "parquet" }),
        );
    }
    let about = json!({
        "name": "narrows-atlas",
        "title": "Congestion controllers on networks drawn at random",
        "version": atlas.version.commit,
        "licenses": [{ "name": "MIT" }, { "name": "Apache-2.0" }],
        "keywords": ["congestion control", "TCP", "QUIC", "simulation"],
        "created_by": "cargo xtask atlas",
        "seed": atlas.version.seed,
        "resources": resources,
    });
    let text = serde_json::to_string_pretty(&about).map_err(|e| e.to_string())?;
    std::fs::write(out.join("datapackage.json"), text + "\n")
        .map_err(|e| format!("datapackage.json: {e}"))
}

/// A row for each score and protocol.
fn of_scores(atlas: &Atlas) -> Columns {
    let mut parts = Vec::new();
    let mut names = Vec::new();
    let mut protocols = Vec::new();
    let mut counts = Vec::new();
    let mut values = Vec::new();
    let mut halves = Vec::new();
    for (part, _) in PARTS {
        for score in scores::of(part, &atlas.networks) {
            for protocol in &atlas.version.protocols {
                let estimate = score.estimate(&atlas.results, protocol);
                parts.push(part.name().to_string());
                names.push(score.label.clone());
                protocols.push(protocol.clone());
                counts.push(score.keys.len() as u64);
                values.push(estimate.value);
                halves.push(estimate.half);
            }
        }
    }
    Columns(vec![
        ("part".into(), Values::Text(parts)),
        ("score".into(), Values::Text(names)),
        ("protocol".into(), Values::Text(protocols)),
        ("networks".into(), Values::Whole(counts)),
        ("value".into(), Values::Number(values)),
        ("half_interval".into(), Values::Number(halves)),
    ])
}

/// A row for each network and protocol.
fn of_figures(atlas: &Atlas) -> Columns {
    let of_all = atlas.results.values().flat_map(|r| r.values());
    let figures: BTreeSet<&String> = of_all.flat_map(|f| f.keys()).collect();
    let mut texts: [Vec<String>; 5] = Default::default();
    let mut numbers = vec![Vec::new(); figures.len()];
    for network in &atlas.networks {
        let Some(of_network) = atlas.results.get(&network.key()) else { continue };
        for protocol in &atlas.version.protocols {
            let Some(found) = of_network.get(protocol) else { continue };
            let row = [
                network.part.name().to_string(),
                network.name.clone(),
                network.classes.join("; "),
                network.describe(),
                protocol.clone(),
            ];
            texts.iter_mut().zip(row).for_each(|(column, text)| column.push(text));
            for (column, name) in numbers.iter_mut().zip(&figures) {
                column.push(found.get(*name).copied().unwrap_or(f64::NAN));
            }
        }
    }
    let texts = OF_FIGURES.iter().map(ToString::to_string).zip(texts.map(Values::Text));
    let numbers =
        figures.iter().map(ToString::to_string).zip(numbers.into_iter().map(Values::Number));
    Columns(texts.chain(numbers).collect())
}

/// What a column holds, with its unit.
fn meaning(column: &str) -> &'static str {
    match column {
        "part" => "group of networks: random, by access type, mixes, or transfers on either",
        "network" => "number within the part; a transfer's has its size",
        "classes" => "properties of the network",
        "link" => "the link in the syntax of `narrows compare --link`, and what else is on it",
        "protocol" => "protocol in the syntax of `narrows compare --protocols`",
        "score" => "the statistic; those of a class of networks have its name after a colon",
        "networks" => "number of networks of the score",
        "value" => "value of the score, in the unit that its name has",
        "half_interval" => "half the 95% interval; absent where none is known",
        "goodput" => {
            "goodput over the capacity that losses, outages, policers and web traffic leave"
        }
        "queue ms" => "mean queue, ms",
        "rtt ms" => "mean RTT, ms",
        "rtt p95 ms" => "95th percentile of the RTT, ms",
        "late p95 ms" => "95th percentile of the RTT less the least RTT, ms",
        "dropped" => "packets dropped by the queue over packets that reached it",
        "power" => "ln goodput - ½ ln(mean RTT / least RTT)",
        "events" => "events of the simulation",
        "equal Mbit/s" => "capacity over the number of flows, Mbit/s",
        "own Mbit/s" => "mean rate of the flows under test, Mbit/s",
        "others Mbit/s" => "mean rate of the flows beside them, Mbit/s",
        "starved" => "share of the flows beside that have less than a tenth of an equal share",
        "own starved" => {
            "share of the flows under test that have less than a tenth of an equal share"
        }
        "jain" => "Jain's index of all flows",
        "used" => "share of the capacity that all flows use",
        "completion ms" => "time from the first packet to the last byte at the receiver, ms",
        "not done" => "1 if the transfer did not end",
        "sent over wanted" => "bytes sent over bytes of the transfer",
        "worst goodput" => "least goodput of the seeds",
        _ => "",
    }
}
