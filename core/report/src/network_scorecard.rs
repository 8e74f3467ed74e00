//! A controller's scores on random networks: the table in the terminal, and JSON.

use narrows_lab::networks::{IntervalValue, NetworkScorecard, NetworkScores};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Widths of the first column and of the others.
const LABEL: usize = 28;
const COLUMN: usize = 13;
/// With fewer networks, the interval of a share may be wider than its range. Only JSON has it then.
const MIN_FOR_INTERVAL: usize = 5;

/// The table: a section for each part, a column for each protocol.
pub fn table(scores: &NetworkScores) -> String {
    let mut text = " ".repeat(LABEL);
    for protocol in &scores.protocols {
        let name: String = protocol.chars().take(COLUMN - 1).collect();
        let _ = write!(text, "{name:>COLUMN$}");
    }
    text.push('\n');
    for section in scores.sections() {
        let _ = writeln!(text, "\n{} ({})", section.title, section.networks);
        for score in &section.scores {
            let mut label = format!(" {}", score.label);
            if score.keys.len() != section.networks {
                let _ = write!(label, " ({})", score.keys.len());
            }
            let _ = write!(text, "{label:<LABEL$}");
            for protocol in &scores.protocols {
                let value = score.estimate(&scores.results, protocol);
                let has_interval = score.keys.len() >= MIN_FOR_INTERVAL && value.half.is_finite();
                let _ = write!(text, "{:>COLUMN$}", cell(value, score.digits, has_interval));
            }
            text.push('\n');
        }
    }
    text
}

fn cell(value: IntervalValue, digits: usize, has_interval: bool) -> String {
    let IntervalValue { value, half } = value;
    match (value.is_finite(), has_interval) {
        (false, _) => "-".into(),
        (true, false) => format!("{value:.digits$}"),
        (true, true) => format!("{value:.digits$} ±{half:.digits$}"),
    }
}

/// The scores, and the figures of each network, as an object.
pub fn json(asked: &NetworkScorecard, scores: &NetworkScores) -> Value {
    let mut rows = Vec::new();
    for section in scores.sections() {
        for score in &section.scores {
            let values: Map<String, Value> = (scores.protocols.iter())
                .map(|protocol| {
                    let IntervalValue { value, half } = score.estimate(&scores.results, protocol);
                    (protocol.clone(), json!({ "value": value, "ci95_half": half }))
                })
                .collect();
            rows.push(json!({
                "section": section.title,
                "score": score.label,
                "networks": score.keys.len(),
                "protocols": values,
            }));
        }
    }
    let networks: Vec<Value> = (scores.networks.iter())
        .map(|network| {
            json!({
                "network": network.key(),
                "description": network.describe(),
                "classes": network.classes,
                "seed": network.seed,
                "figures": scores.results.get(&network.key()),
            })
        })
        .collect();
    json!({
        "command": "scorecard",
        "protocol": asked.protocol,
        "seed": asked.seed,
        "scores": rows,
        "networks": networks,
    })
}
