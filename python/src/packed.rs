//! Results as plain Python values, for pickle and copy.

use narrows_base::Variable;
use narrows_lab::Outcome;
use narrows_lab::outcome::{Estimate, Interval, ProtocolOutcome, Recommendation, SeedValues};
use narrows_sim::SeriesTable;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Name, mean, half of the interval.
/// A recommendation: protocol, command, sentences.
type Advice = (String, Option<String>, Vec<String>);
type Measures = Vec<(String, f64, Option<(f64, f64)>)>;
/// Kind, name, group, times, columns.
type Series = (String, String, String, Vec<f64>, Vec<(String, Vec<f64>)>);
/// The fields of a [`ProtocolOutcome`], in their order.
type Protocol = (
    String,
    String,
    u64,
    usize,
    usize,
    usize,
    bool,
    String,
    Measures,
    Vec<(u64, Vec<f64>)>,
    Vec<(String, Measures)>,
    Vec<Series>,
);
/// Name, unit, meaning, names of states.
type Named = (String, String, String, Vec<String>);
/// The fields of an [`Outcome`], in their order.
pub type Packed = (
    String,
    String,
    u64,
    String,
    String,
    f64,
    f64,
    f64,
    Vec<Protocol>,
    Advice,
    Vec<String>,
    Vec<Named>,
);

/// The text with the lifetime of the process. Each text is kept once: names of measures and columns are few.
pub fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = known.get(text) {
        return text;
    }
    let text: &'static str = String::leak(text.to_string());
    known.insert(text);
    text
}

fn measures(measures: &[(&'static str, Estimate)]) -> Measures {
    let ends = |e: &Estimate| e.ci95().map(|ends| (ends.low, ends.high));
    measures.iter().map(|(name, e)| (name.to_string(), e.mean, ends(e))).collect()
}

fn estimates(packed: Measures) -> Vec<(&'static str, Estimate)> {
    let interval = |ends: (f64, f64)| Interval { low: ends.0, high: ends.1 };
    let one = |(name, mean, ends): (String, f64, Option<(f64, f64)>)| {
        (kept(&name), Estimate::with_ends(mean, ends.map(interval)))
    };
    packed.into_iter().map(one).collect()
}

fn series(t: &SeriesTable) -> Series {
    let columns = t.columns.iter().map(|(name, values)| (name.to_string(), values.clone()));
    (t.kind.to_string(), t.name.clone(), t.group.clone(), t.time_s.clone(), columns.collect())
}

fn table((kind, name, group, time_s, columns): Series) -> SeriesTable {
    let columns = columns.into_iter().map(|(name, values)| (kept(&name), values)).collect();
    SeriesTable { kind: kept(&kind), name, group, time_s, columns }
}

fn protocol(r: &ProtocolOutcome) -> Protocol {
    (
        r.protocol.clone(),
        r.group.clone(),
        r.digest,
        r.flows,
        r.rivals,
        r.seeds,
        r.one_trajectory,
        r.status.clone(),
        measures(&r.measures),
        r.by_seed.iter().map(|s| (s.seed, s.values.clone())).collect(),
        r.per_flow.iter().map(|(name, m)| (name.clone(), measures(m))).collect(),
        r.series.iter().map(series).collect(),
    )
}

fn protocol_outcome(packed: Protocol) -> ProtocolOutcome {
    let (protocol, group, digest, flows, rivals, seeds, one_trajectory, status, ..) = packed;
    let (.., measures, by_seed, per_flow, series) = packed;
    ProtocolOutcome {
        protocol,
        group,
        digest,
        flows,
        rivals,
        seeds,
        one_trajectory,
        status,
        measures: estimates(measures),
        by_seed: by_seed.into_iter().map(|(seed, values)| SeedValues { seed, values }).collect(),
        per_flow: per_flow.into_iter().map(|(name, m)| (name, estimates(m))).collect(),
        series: series.into_iter().map(table).collect(),
    }
}

/// An outcome as plain values.
pub fn pack(o: &Outcome) -> Packed {
    let variable = |v: &Variable| {
        let states = v.states.iter().map(ToString::to_string).collect();
        (v.name.to_string(), v.unit.to_string(), v.meaning.to_string(), states)
    };
    (
        o.command.to_string(),
        o.command_line.clone(),
        o.seed,
        o.link.clone(),
        o.path.clone(),
        o.duration_s,
        o.warmup_s,
        o.capacity_bps,
        o.results.iter().map(protocol).collect(),
        (
            o.recommendation.protocol.clone(),
            o.recommendation.command.clone(),
            o.recommendation.sentences.clone(),
        ),
        o.notes.clone(),
        o.variables.iter().map(variable).collect(),
    )
}

/// The outcome that was [`pack`]ed.
pub fn unpack(packed: Packed) -> Outcome {
    let (command, command_line, seed, link, path, duration_s, warmup_s, capacity_bps, ..) = packed;
    let (.., results, recommendation, notes, variables) = packed;
    let recommendation = Recommendation {
        protocol: recommendation.0,
        command: recommendation.1,
        sentences: recommendation.2,
    };
    let variable = |(name, unit, meaning, states): Named| {
        let states: Vec<&'static str> = states.iter().map(|s| kept(s)).collect();
        Variable {
            name: kept(&name),
            unit: kept(&unit),
            meaning: kept(&meaning),
            states: if states.is_empty() { &[] } else { Vec::leak(states) },
        }
    };
    Outcome {
        command: kept(&command),
        command_line,
        seed,
        link,
        path,
        duration_s,
        warmup_s,
        capacity_bps,
        results: results.into_iter().map(protocol_outcome).collect(),
        recommendation,
        notes,
        variables: variables.into_iter().map(variable).collect(),
    }
}
