//! `summary.json`, also printed by `--json`: one object.

use crate::{VERSION, seeds};
use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome};
use serde_json::{Map, Value, json};

/// The whole outcome. An absent number is null, never NaN.
pub fn outcome(o: &Outcome) -> Value {
    json!({
        "command": o.command,
        "version": VERSION,
        "seed": (!o.is_real()).then_some(o.seed),
        "link": o.link,
        "duration_s": number(o.duration_s),
        "warmup_s": number(o.warmup_s),
        "path": o.path,
        "capacity_bps": number(o.capacity_bps),
        "command_line": o.command_line,
        "results": o.results.iter().map(|r| result(r, o.is_real())).collect::<Vec<_>>(),
        "recommendation": o.recommendation.to_string(),
        "recommended": {
            "protocol": o.recommendation.protocol,
            "command": o.recommendation.command,
        },
        "notes": o.notes,
    })
}

fn result(r: &ProtocolOutcome, real: bool) -> Value {
    let mut map = Map::new();
    map.insert("protocol".into(), json!(r.protocol));
    map.insert("group".into(), json!(r.group));
    map.insert("flows".into(), json!(r.flows));
    map.insert("seeds".into(), json!(r.seeds));
    map.insert("status".into(), json!(r.status));
    // 64 bits do not fit a JSON number. A run over real connections is not repeatable, so it has no digest.
    if !real {
        map.insert("digest".into(), json!(format!("{:016x}", r.digest)));
        map.insert("deterministic".into(), json!(r.one_trajectory));
    }
    put(&mut map, &r.measures);
    if !real {
        map.insert("by_seed".into(), seeds::json(r));
    }
    let flows = r.per_flow.iter().map(|(name, measures)| {
        let mut flow = Map::new();
        flow.insert("flow".into(), json!(name));
        put(&mut flow, measures);
        Value::Object(flow)
    });
    map.insert("per_flow".into(), flows.collect());
    Value::Object(map)
}

fn put(map: &mut Map<String, Value>, measures: &[(&'static str, Estimate)]) {
    for (name, e) in measures {
        let ci95 =
            e.ci95().map_or(Value::Null, |ends| json!([number(ends.low), number(ends.high)]));
        map.insert((*name).into(), json!({ "mean": number(e.mean), "ci95": ci95 }));
    }
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}
