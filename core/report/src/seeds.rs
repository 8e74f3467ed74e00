//! The results of each run, seed by seed, as a table and for `summary.json`.

use crate::columns::{Columns, Values};
use narrows_lab::measure::MEASURES;
use narrows_lab::outcome::{Outcome, ProtocolOutcome};
use serde_json::{Map, Value, json};

/// One row per protocol (or group of flows) and seed, one column per measure; `None` for results without seeds, which
/// are measurements of real connections.
pub fn table(outcome: &Outcome) -> Option<Columns> {
    let rows = || outcome.results.iter().flat_map(|r| r.by_seed.iter().map(move |s| (r, s)));
    rows().next()?;
    let text = |of: fn(&ProtocolOutcome) -> &String| {
        Values::Text(rows().map(|(r, _)| of(r).clone()).collect())
    };
    let whole = |values: Vec<u64>| Values::Whole(values);
    let mut columns = vec![
        ("protocol".to_string(), text(|r| &r.protocol)),
        ("group".to_string(), text(|r| &r.group)),
        ("flows".to_string(), whole(rows().map(|(r, _)| r.flows as u64).collect())),
        ("seed".to_string(), whole(rows().map(|(_, s)| s.seed).collect())),
    ];
    let known = |name| outcome.results.iter().any(|r| r.measures.iter().any(|m| m.0 == name));
    for measure in MEASURES.iter().filter(|m| known(m.name)) {
        let value = |r: &ProtocolOutcome, values: &[f64]| {
            let at = r.measures.iter().position(|m| m.0 == measure.name);
            at.and_then(|at| values.get(at)).copied().unwrap_or(f64::NAN)
        };
        let values = rows().map(|(r, s)| value(r, &s.values)).collect();
        columns.push((measure.name.to_string(), Values::Number(values)));
    }
    Some(Columns(columns))
}

/// A protocol's runs for `summary.json`.
pub fn json(result: &ProtocolOutcome) -> Value {
    let runs = result.by_seed.iter().map(|s| {
        let mut run = Map::new();
        run.insert("seed".into(), json!(s.seed));
        for ((name, _), value) in result.measures.iter().zip(&s.values) {
            run.insert((*name).into(), if value.is_finite() { json!(value) } else { Value::Null });
        }
        Value::Object(run)
    });
    runs.collect()
}
