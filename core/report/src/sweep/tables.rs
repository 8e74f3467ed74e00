//! The tables that a sweep writes: a row per point and seed, and a row per point.

use crate::columns::{Columns, Values};
use crate::variables::ENDS;
use narrows_lab::measure::MEASURES;
use narrows_lab::sweep::SweepOutcome;

/// One row per point, seed and group.
pub fn long(o: &SweepOutcome<'_>) -> Columns {
    let mut at: Vec<(usize, usize, usize)> = Vec::new();
    for point in o.finished() {
        for seed in (0..o.runs[point].len()).filter(|s| o.runs[point][*s].is_some()) {
            at.extend((0..o.sweep.groups.len()).map(|group| (point, seed, group)));
        }
    }
    let places: Vec<(usize, usize)> = at.iter().map(|a| (a.0, a.2)).collect();
    let mut columns = leading(o, &places);
    let seeds = at.iter().map(|a| o.sweep.seed.wrapping_add(a.1 as u64)).collect();
    columns.push(("seed".into(), Values::Whole(seeds)));
    for (m, measure) in MEASURES.iter().enumerate() {
        let value = |(point, seed, group): &(usize, usize, usize)| {
            o.runs[*point][*seed].as_ref().map_or(f64::NAN, |f| f.groups[*group][m])
        };
        columns.push((measure.name.into(), Values::Number(at.iter().map(value).collect())));
    }
    Columns(columns)
}

/// One row per point and group: mean and ends of the 95% interval of every measure.
pub fn points(o: &SweepOutcome<'_>) -> Columns {
    let groups = o.sweep.groups.len();
    let at: Vec<(usize, usize)> =
        o.finished().flat_map(|p| (0..groups).map(move |g| (p, g))).collect();
    let mut columns = leading(o, &at);
    let seeds = at.iter().map(|a| o.seeds(a.0) as u64).collect();
    columns.push(("seeds".into(), Values::Whole(seeds)));
    for (m, measure) in MEASURES.iter().enumerate() {
        let of = |(point, group): &(usize, usize)| o.estimates[*point][*group][m];
        let means = at.iter().map(|a| of(a).mean).collect();
        columns.push((measure.name.into(), Values::Number(means)));
        for (name, end) in ENDS {
            let values = at.iter().map(|a| of(a).ci95().map_or(f64::NAN, end)).collect();
            columns.push((format!("{}_{name}", measure.name), Values::Number(values)));
        }
    }
    Columns(columns)
}

/// The columns that both tables begin with: point, parameters, group.
fn leading(o: &SweepOutcome<'_>, at: &[(usize, usize)]) -> Vec<(String, Values)> {
    let numbers = at.iter().map(|a| a.0 as u64 + 1).collect();
    let mut columns = vec![("point".to_string(), Values::Whole(numbers))];
    let indices: Vec<Vec<usize>> = at.iter().map(|a| o.sweep.grid.indices(a.0)).collect();
    for (i, parameter) in o.sweep.grid.parameters.iter().enumerate() {
        let values = match &parameter.numbers {
            Some(numbers) => Values::Number(indices.iter().map(|at| numbers[at[i]]).collect()),
            None => {
                Values::Text(indices.iter().map(|at| parameter.values[at[i]].clone()).collect())
            }
        };
        columns.push((parameter.name.clone(), values));
    }
    let of = |a: &(usize, usize)| &o.sweep.points[a.0].groups[a.1];
    let names = at.iter().map(|a| o.sweep.groups[a.1].clone()).collect();
    columns.push(("group".into(), Values::Text(names)));
    let protocols = at.iter().map(|a| of(a).0.clone()).collect();
    columns.push(("group_protocol".into(), Values::Text(protocols)));
    let flows = at.iter().map(|a| of(a).1 as u64).collect();
    columns.push(("group_flows".into(), Values::Whole(flows)));
    columns
}
