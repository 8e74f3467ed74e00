//! From finished runs to an [`Outcome`].

use crate::advice;
use crate::execute::{LISTED_FLOWS, Run, Runs, combined};
use crate::measure::MEASURES;
use crate::outcome::{Estimate, Outcome, ProtocolOutcome};
use crate::plan::Plan;
use crate::stats::estimate;
use narrows_base::{Duration, Status};
use narrows_flow::protocol;

/// What an outcome says of itself besides the numbers.
#[derive(Clone, Debug)]
pub struct About {
    /// `compare` or `run`.
    pub command: &'static str,
    /// The exact command line.
    pub command_line: String,
    /// The link's specification in full, or the scenario's name.
    pub link: String,
    /// The path in one line.
    pub path: String,
}

/// Puts finished runs together; protocols of which no run finished are left out, with a note.
pub fn collect(plan: &Plan, about: About, runs: &Runs) -> Outcome {
    let s = &plan.scenario;
    let mut results = Vec::new();
    let mut notes = Vec::new();
    let (mut finished, mut wanted) = (0, 0);
    for (variant, runs) in runs.iter().enumerate() {
        wanted += runs.len();
        let runs_done: Vec<&Run> = runs.iter().flatten().collect();
        finished += runs_done.len();
        for (at, &group) in plan.reported.iter().enumerate() {
            let label = plan.protocol(group, variant).label().to_string();
            if runs_done.is_empty() {
                notes.push(format!("{label}: no run finished"));
                continue;
            }
            results.push(one(plan, variant, at, &runs_done, runs[0].as_ref()));
        }
    }
    if finished < wanted {
        notes.insert(
            0,
            format!("interrupted: {finished} of {wanted} runs finished; means are over those"),
        );
    }
    for group in &plan.reported {
        let flows = &s.flows[*group];
        if flows.count > LISTED_FLOWS {
            notes.push(format!(
                "the first {LISTED_FLOWS} of {} flows are listed one by one",
                flows.count
            ));
        }
    }
    let not_validated: Vec<&str> = results
        .iter()
        .filter(|r: &&ProtocolOutcome| r.status == Status::NotValidated.to_string())
        .map(|r| r.protocol.as_str())
        .collect();
    if !not_validated.is_empty() {
        notes
            .push(format!("not validated against published numbers: {}", not_validated.join(", ")));
    }
    let capacity = runs.iter().flatten().flatten().flat_map(|r| r.capacity_bps.first()).next();
    let mut outcome = Outcome {
        command: about.command,
        command_line: about.command_line,
        seed: s.seed,
        link: about.link,
        path: about.path,
        duration_s: seconds(s.duration),
        warmup_s: seconds(s.warmup),
        capacity_bps: capacity.copied().unwrap_or(f64::NAN),
        results,
        recommendation: String::new(),
        notes,
    };
    if about.command == "compare" {
        outcome.recommendation = advice::recommend(&outcome);
    }
    outcome
}

/// Correctly rounded: 60 s is 60, not 60.00000000000001.
fn seconds(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e9
}

/// Reported group number `at` of one variant.
fn one(
    plan: &Plan,
    variant: usize,
    at: usize,
    runs: &[&Run],
    first: Option<&Run>,
) -> ProtocolOutcome {
    let group = plan.reported[at];
    let flows = &plan.scenario.flows[group];
    let alone = plan.others(group).is_empty();
    let over = |value: &dyn Fn(&Run) -> f64| estimate(runs.iter().map(|r| value(r)));
    let measures = (MEASURES.iter().enumerate())
        .filter(|(_, m)| !(m.competition && alone))
        .map(|(i, m)| (m.name, over(&|r| r.groups[at].measures[i])))
        .collect();
    let listed = runs.iter().map(|r| r.groups[at].flows.len()).max().unwrap_or(0);
    let names: Vec<&'static str> =
        MEASURES.iter().filter(|m| m.per_flow.is_some()).map(|m| m.name).collect();
    let per_flow = (0..listed)
        .map(|f| {
            let value = |i: usize| -> Estimate {
                over(&|r| r.groups[at].flows.get(f).map_or(f64::NAN, |v| v[i]))
            };
            let values = names.iter().enumerate().map(|(i, n)| (*n, value(i))).collect();
            (format!("{}.{f}", flows.name), values)
        })
        .collect();
    let protocol = plan.protocol(group, variant);
    ProtocolOutcome {
        protocol: protocol.label().to_string(),
        group: flows.name.clone(),
        digest: combined(runs.iter().copied()),
        flows: flows.count,
        seeds: runs.len(),
        status: status(protocol.label()),
        measures,
        per_flow,
        series: first.map(|r| series(plan, at, r)).unwrap_or_default(),
    }
}

/// The tables that belong to a reported group: its flows, its bottleneck; whatever belongs to
/// no reported group goes with the first.
fn series(plan: &Plan, at: usize, run: &Run) -> Vec<narrows_sim::Table> {
    let name = |g: &usize| plan.scenario.flows[*g].name.as_str();
    let own = name(&plan.reported[at]);
    let own_link = plan.bottleneck_name(plan.reported[at]);
    let links: Vec<String> = plan.reported.iter().map(|g| plan.bottleneck_name(*g)).collect();
    run.series
        .iter()
        .filter(|t| {
            if t.kind == "link" {
                t.name == own_link || (at == 0 && !links.contains(&t.name))
            } else {
                t.group == own || (at == 0 && !plan.reported.iter().any(|g| name(g) == t.group))
            }
        })
        .cloned()
        .collect()
}

/// The validation status of the protocol's controller.
pub fn status(label: &str) -> String {
    let name = label.split('(').next().unwrap_or(label);
    let card = protocol::find(name).and_then(protocol::Entry::card);
    card.map_or_else(|_| String::new(), |c| c.status.to_string())
}
