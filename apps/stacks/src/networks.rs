//! Stacks on networks that are drawn at random: `narrows-stacks networks`.

use crate::selected;
use narrows_lab::execute::RunControl;
use narrows_lab::networks::{
    BenchNetwork, BenchPart, Results, draw, scores, simulate, without_longest,
};
use serde_json::{Map, Value, json};

/// Rows of `bench networks` that are columns here.
const COLUMNS: [(BenchPart, &[&str]); 2] = [
    (
        BenchPart::Networks,
        &[
            "goodput / capacity, mean",
            "goodput / capacity, p10",
            "below .7 of the best, networks",
            "mean queue, ms, median",
            "mean queue, ms, p95",
            "dropped by the queue, mean",
        ],
    ),
    (
        BenchPart::Mixes,
        &[
            "no more harm than CUBIC",
            "their starved flows",
            "own starved flows",
            "their rate / beside CUBIC, p10",
            "their rate / beside CUBIC, mean",
            "beside itself: Jain, mean",
        ],
    ),
];

/// Options of `networks`.
#[derive(Clone, Debug)]
pub struct StackScores {
    /// Protocols and stacks; empty for each stack's own controllers and some of Narrows'.
    pub only: Vec<String>,
    /// Number of networks with one flow.
    pub networks: usize,
    /// Number of mixes with flows of simulated protocols.
    pub mixes: usize,
    /// Seed from which the networks are drawn.
    pub seed: u64,
    /// Concurrent runs.
    pub jobs: usize,
    /// Print JSON instead of Markdown.
    pub json: bool,
}

/// Protocols without `--only`.
fn is_usual(name: &str) -> bool {
    match name.split_once('+') {
        None => true,
        Some((_, ours)) => ["cubic", "bbr3", "rrtp"].contains(&ours),
    }
}

impl StackScores {
    /// Simulates and prints.
    ///
    /// # Errors
    /// An unknown protocol, or an error of the simulator.
    pub fn print(&self) -> Result<(), String> {
        let protocols = selected(&self.only, is_usual)?;
        let mut items = draw::networks(self.seed, 0..self.networks);
        items.extend(draw::mixes(self.seed, 0..self.mixes));
        let drawn = items.len();
        let items = without_longest(items)?;
        let control = RunControl::quiet(self.jobs);
        let results = simulate(&items, &protocols, &control)?.unwrap_or_default().results;
        match self.json {
            true => println!("{:#}", self.to_json(&items, drawn, &protocols, &results)),
            false => print!("{}", self.markdown(&items, drawn, &protocols, &results)),
        }
        Ok(())
    }

    fn markdown(
        &self,
        items: &[BenchNetwork],
        drawn: usize,
        protocols: &[String],
        results: &Results,
    ) -> String {
        let mut text = format!(
            "Seed {}: {} of {drawn} networks, without those with the most packets.\n",
            self.seed,
            items.len()
        );
        for (part, labels) in COLUMNS {
            let count = items.iter().filter(|item| item.part == part).count();
            let rows = scores::of(part, items);
            let columns: Vec<_> =
                labels.iter().filter_map(|label| rows.iter().find(|r| r.label == *label)).collect();
            if columns.is_empty() {
                continue;
            }
            let heads: Vec<&str> = columns.iter().map(|c| c.label.as_str()).collect();
            text += &format!("\n| {} ({count}) | {} |\n", part.name(), heads.join(" | "));
            text += &format!("|---|{}\n", "---|".repeat(heads.len()));
            for protocol in protocols {
                let cells = columns.iter().map(|column| {
                    let digits = column.digits;
                    let found = column.estimate(results, protocol);
                    match (found.value.is_finite(), found.half.is_finite()) {
                        (false, _) => " - |".to_string(),
                        (true, false) => format!(" {:.digits$} |", found.value),
                        (true, true) => {
                            format!(" {:.digits$} ± {:.digits$} |", found.value, found.half)
                        }
                    }
                });
                text += &format!("| {protocol} |{}\n", cells.collect::<String>());
            }
        }
        text
    }

    fn to_json(
        &self,
        items: &[BenchNetwork],
        drawn: usize,
        protocols: &[String],
        results: &Results,
    ) -> Value {
        let rows = COLUMNS.iter().flat_map(|(part, _)| {
            scores::of(*part, items).into_iter().map(|score| {
                let values: Map<String, Value> = (protocols.iter())
                    .map(|protocol| {
                        let found = score.estimate(results, protocol);
                        let value = json!({ "value": found.value, "ci95_half": found.half });
                        (protocol.clone(), value)
                    })
                    .collect();
                json!({ "part": part.name(), "score": score.label, "protocols": values })
            })
        });
        let rows: Vec<Value> = rows.collect();
        let networks: Vec<Value> = (items.iter())
            .map(|item| {
                json!({
                    "network": item.key(),
                    "description": item.describe(),
                    "classes": item.classes,
                    "figures": results.get(&item.key()),
                })
            })
            .collect();
        json!({ "seed": self.seed, "drawn": drawn, "scores": rows, "networks": networks })
    }
}
