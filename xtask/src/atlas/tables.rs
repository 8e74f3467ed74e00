//! The atlas as tables: CSV, Parquet, and their description.

use super::data::{Atlas, Measured};
use super::page::without_folder;
use super::pairs::{PairFigures, matrix};
use crate::files::{self, failed, keep};
use narrows_lab::networks::{ATLAS_PARTS, scores};
use narrows_report::columns::{Columns, Values};
use narrows_report::variables::of_measures;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Texts of a row of `figures`; each figure has a column after them.
const OF_FIGURES: [&str; 6] = ["part", "network", "classes", "link", "protocol", "digest"];
const TITLE: &str = "Congestion controllers on networks drawn at random";
const KEYWORDS: [&str; 4] = ["congestion control", "TCP", "QUIC", "simulation"];

/// Writes the tables, `datapackage.json` and `.zenodo.json`.
pub fn write(atlas: &Atlas, out: &Path) -> Result<(), String> {
    let tables = [
        ("scores", of_scores(atlas)),
        ("figures", of_figures(atlas)),
        ("pairs", of_pairs(atlas)),
        ("worst", of_worst(atlas)),
    ];
    let mut resources = Vec::new();
    for (name, table) in &tables {
        let about = [
            ("narrows.commit", atlas.version.commit.clone()),
            ("narrows.seed", atlas.version.seed.to_string()),
        ];
        let csv = format!("{name}.csv");
        files::write(out.join(&csv), table.csv())?;
        let packed = format!("{name}.parquet");
        let mut sink = std::fs::File::create(out.join(&packed)).map_err(failed(out))?;
        table.parquet(&mut sink, &about, of_measures).map_err(|e| format!("{packed}: {e}"))?;
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
        "title": TITLE,
        "version": atlas.version.commit,
        "licenses": [{ "name": "MIT" }, { "name": "Apache-2.0" }],
        "keywords": KEYWORDS,
        "created_by": "cargo xtask atlas",
        "seed": atlas.version.seed,
        "resources": resources,
    });
    let deposit = json!({
        "title": format!("{TITLE} (Narrows {})", atlas.version.commit),
        "upload_type": "dataset",
        "description": "Scores and figures of congestion controllers in simulation. datapackage.json describes the \
                        columns; the pages open each run in the simulator.",
        "version": atlas.version.commit,
        "license": "apache-2.0",
        "creators": [{ "name": "The Narrows maintainers" }],
        "keywords": KEYWORDS,
    });
    for (name, about) in [("datapackage.json", about), (".zenodo.json", deposit)] {
        keep(out.join(name), &about)?;
    }
    Ok(())
}

/// A row for each score and protocol.
fn of_scores(atlas: &Atlas) -> Columns {
    let mut rows = Vec::new();
    for (part, _) in ATLAS_PARTS {
        for score in scores::of(part, &atlas.networks) {
            for protocol in atlas.columns() {
                let estimate = score.estimate(&atlas.measured.results, protocol);
                let texts = [part.name(), &score.label, protocol].map(String::from);
                rows.push((texts, score.keys.len() as u64, estimate));
            }
        }
    }
    let text = |n: usize| Values::Text(rows.iter().map(|(texts, ..)| texts[n].clone()).collect());
    Columns(vec![
        ("part".into(), text(0)),
        ("score".into(), text(1)),
        ("protocol".into(), text(2)),
        ("networks".into(), Values::Whole(rows.iter().map(|row| row.1).collect())),
        ("value".into(), Values::Number(rows.iter().map(|row| row.2.value).collect())),
        ("half_interval".into(), Values::Number(rows.iter().map(|row| row.2.half).collect())),
    ])
}

/// A row for each network and protocol.
fn of_figures(atlas: &Atlas) -> Columns {
    let Measured { results, digests } = &atlas.measured;
    let of_all = results.values().flat_map(|r| r.values());
    let figures: BTreeSet<&String> = of_all.flat_map(|f| f.keys()).collect();
    let mut texts: [Vec<String>; 6] = Default::default();
    let mut numbers = vec![Vec::new(); figures.len()];
    for network in &atlas.networks {
        let Some(of_network) = results.get(&network.key()) else { continue };
        for protocol in atlas.columns() {
            let Some(found) = of_network.get(protocol) else { continue };
            let row = [
                network.part.name().to_string(),
                network.name.clone(),
                network.classes.join("; "),
                without_folder(&network.describe()),
                protocol.clone(),
                digests
                    .get(&network.key())
                    .and_then(|of| of.get(protocol))
                    .cloned()
                    .unwrap_or_default(),
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

/// A row for each ordered pair of protocols.
fn of_pairs(atlas: &Atlas) -> Columns {
    let all = matrix(atlas);
    let texts =
        |of: fn(&PairFigures) -> &String| Values::Text(all.iter().map(of).cloned().collect());
    let numbers = |of: fn(&PairFigures) -> f64| Values::Number(all.iter().map(of).collect());
    Columns(vec![
        ("protocol".into(), texts(|p| &p.protocol)),
        ("beside".into(), texts(|p| &p.beside)),
        ("share".into(), numbers(|p| p.share)),
        ("harm".into(), numbers(|p| p.harm)),
        ("starved".into(), numbers(|p| p.starved)),
    ])
}

/// A row for each protocol, with the worst network that was found.
fn of_worst(atlas: &Atlas) -> Columns {
    let all = &atlas.worst;
    Columns(vec![
        ("protocol".into(), Values::Text(all.iter().map(|w| w.protocol.clone()).collect())),
        ("times_less".into(), Values::Number(all.iter().map(|w| w.badness).collect())),
        ("link".into(), Values::Text(all.iter().map(|w| w.network.clone()).collect())),
    ])
}

/// What a column holds, with its unit.
fn meaning(column: &str) -> &'static str {
    match column {
        "part" => "group of networks: random, by access type, mixes, pairs, transfers or recorded",
        "digest" => {
            "digest of the runs, as in `narrows compare --network PART/SEED/NETWORK --protocols PROTOCOL --json`; absent \
             of a controller from outside, and of a pair that was simulated in the other order"
        }
        "beside" => "protocol of the other flow",
        "share" => "part of the goodput of both flows that the protocol has",
        "harm" => "share of its goodput alone that the other flow loses (Ware et al. 2019)",
        "times_less" => "goodput of an omniscient sender over the protocol's",
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
