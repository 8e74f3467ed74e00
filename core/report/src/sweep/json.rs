//! `sweep.json`, also printed by `--json`: one object.

use crate::VERSION;
use narrows_lab::measure::MEASURES;
use narrows_lab::outcome::Estimate;
use narrows_lab::sweep::SweepOutcome;
use serde_json::{Map, Value, json};

/// The summary: parameters, measures, and every finished point's means and intervals.
pub fn outcome(o: &SweepOutcome<'_>) -> Value {
    let s = o.sweep;
    let parameters = s.grid.parameters.iter().map(|p| {
        json!({
            "name": p.name,
            "values": p.values,
            "numbers": p.numbers,
            "unit": p.unit,
            "log": p.log,
        })
    });
    let measures = MEASURES.iter().map(|m| json!({ "name": m.name, "unit": m.unit, "doc": m.doc }));
    json!({
        "command": "sweep",
        "version": VERSION,
        "command_line": o.command_line,
        "scenario": o.scenario,
        "duration_s": o.span_s.0,
        "warmup_s": o.span_s.1,
        "seed": s.seed,
        "seeds": s.seeds,
        "measure": MEASURES[o.measure].name,
        "group": s.groups[o.group],
        "parameters": parameters.collect::<Vec<_>>(),
        "measures": measures.collect::<Vec<_>>(),
        "notes": o.notes,
        "points": o.finished().map(|p| point(o, p)).collect::<Vec<_>>(),
    })
}

fn point(o: &SweepOutcome<'_>, point: usize) -> Value {
    let grid = &o.sweep.grid;
    let mut values = Map::new();
    for (p, at) in grid.parameters.iter().zip(grid.indices(point)) {
        let value = match &p.numbers {
            Some(numbers) => json!(numbers[at]),
            None => json!(p.values[at]),
        };
        values.insert(p.name.clone(), value);
    }
    let groups = o.sweep.groups.iter().enumerate().map(|(g, name)| {
        let (protocol, flows) = &o.sweep.points[point].groups[g];
        let mut map = Map::new();
        map.insert("group".into(), json!(name));
        map.insert("protocol".into(), json!(protocol));
        map.insert("flows".into(), json!(flows));
        for (m, e) in MEASURES.iter().zip(&o.estimates[point][g]) {
            map.insert(m.name.into(), estimate(*e));
        }
        Value::Object(map)
    });
    json!({
        "point": point + 1,
        "values": values,
        "seeds": o.seeds(point),
        "deterministic": o.deterministic[point],
        // 64 bits do not fit a JSON number.
        "digest": format!("{:016x}", o.digest(point)),
        "groups": groups.collect::<Vec<_>>(),
    })
}

fn estimate(e: Estimate) -> Value {
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    let ci95 = e.ci95().map_or(Value::Null, |ends| json!([number(ends.low), number(ends.high)]));
    json!({ "mean": number(e.mean), "ci95": ci95 })
}
