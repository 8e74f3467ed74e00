//! Turns finished runs into an [`Outcome`].

use crate::buffers;
use crate::execute::{LISTED_FLOWS, RunControl, Runs, StoredRun, combined};
use crate::interval::{Resamples, few_events, few_events_note};
use crate::measure::MEASURES;
use crate::outcome::{Outcome, ProtocolOutcome, Recommendation, SeedValues};
use crate::recommendation::{self, Aim, SimulationBasis};
use crate::share_beside_cubic;
use narrows_base::{Duration, Status};
use narrows_congestion::CONTROLLERS;
use narrows_scenario::plan::Plan;
use narrows_sim::protocol::{self, Preset};

/// The command and the question behind an outcome, for reports.
#[derive(Clone, Default, Debug)]
pub struct OutcomeMetadata {
    /// `compare` or `run`.
    pub command: &'static str,
    /// The exact command line.
    pub command_line: String,
    /// The link's specification in full, or the scenario's name.
    pub link: String,
    /// The path in one line.
    pub path: String,
    /// The aim of the recommendation.
    pub aim: Aim,
}

/// Builds an outcome from finished runs. Protocols without a finished run are left out, with a note. With `trials`, a
/// protocol that a comparison would recommend is first tried beside a CUBIC flow.
pub fn collect(
    plan: &Plan,
    about: OutcomeMetadata,
    runs: &Runs,
    trials: Option<&RunControl<'_>>,
) -> Outcome {
    let s = &plan.scenario;
    let mut results = Vec::new();
    let mut notes = Vec::new();
    let mut finished = 0;
    let mut wanted = 0;
    for (variant, runs) in runs.iter().enumerate() {
        wanted += runs.len();
        let runs_done: Vec<&StoredRun> = runs.iter().flatten().collect();
        finished += runs_done.len();
        for (at, &group) in plan.reported.iter().enumerate() {
            let label = plan.protocol(group, variant).label().to_string();
            if runs_done.is_empty() {
                notes.push(format!("{label}: no run finished"));
                continue;
            }
            // `execute` runs a plan without random draws once.
            let once = runs.len() == 1 && s.seeds > 1;
            results.push(one(plan, variant, at, &runs_done, runs[0].as_ref(), once));
        }
    }
    let repeated: Vec<&str> = (results.iter())
        .filter(|r: &&ProtocolOutcome| r.one_trajectory)
        .map(|r| r.protocol.as_str())
        .collect();
    if !repeated.is_empty() {
        let who = if repeated.len() == results.len() { "all".into() } else { repeated.join(", ") };
        notes.push(format!(
            "deterministic, so run once and without intervals: {who}. Nothing was drawn at random, or \
             no draw changed anything: this is one trajectory, which another start or delay may change \
             (--stagger, host-delay=)"
        ));
    }
    let every: Vec<&'static str> = MEASURES.iter().map(|m| m.name).collect();
    let few = |r: &ProtocolOutcome| {
        let names: Vec<&'static str> = r.measures.iter().map(|m| m.0).collect();
        let rows: Vec<&[f64]> = r.by_seed.iter().map(|s| &s.values[..]).collect();
        few_events(&names, &rows)
    };
    let found: Vec<&str> = results.iter().flat_map(few).collect();
    let few: Vec<&'static str> = every.into_iter().filter(|name| found.contains(name)).collect();
    notes.extend(few_events_note(&few));
    if finished < wanted {
        notes.insert(
            0,
            format!("interrupted: {finished} of {wanted} runs finished; means are over those"),
        );
    }
    // A flow without paths of its own has one.
    let paths = plan.reported.iter().map(|group| s.flows[*group].paths.len()).fold(1, usize::max);
    if paths > 1 {
        notes.push(
            "several paths are simulated only: a connection over sockets has one path; used, lost and \
             queue are those of the first"
                .into(),
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
        recommendation: Recommendation::default(),
        notes,
        variables: CONTROLLERS.lent().iter().flat_map(|e| e.variables).copied().collect(),
    };
    if about.command == "compare" {
        let mut share = |protocol: &str| {
            trials.and_then(|control| share_beside_cubic::measured(plan, protocol, control))
        };
        let basis = SimulationBasis { preset: s.preset, packet: s.packet, paths };
        outcome.recommendation = recommendation::recommend(&outcome, about.aim, basis, &mut share);
    } else {
        let bound = buffers::sentence(outcome.results.iter(), outcome.capacity_bps);
        outcome.notes.extend(bound);
    }
    outcome
}

/// Correctly rounded: 60 s is 60, not 60.00000000000001.
fn seconds(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e9
}

/// The result of reported group `at` in one variant.
fn one(
    plan: &Plan,
    variant: usize,
    at: usize,
    runs: &[&StoredRun],
    first: Option<&StoredRun>,
    once: bool,
) -> ProtocolOutcome {
    let group = plan.reported[at];
    let flows = &plan.scenario.flows[group];
    let others = plan.others(group);
    let rivals = others.iter().map(|g| plan.scenario.flows[*g].count).sum();
    let alone = others.is_empty();
    let repeats = runs.len() > 1 && runs.iter().all(|r| r.digest == runs[0].digest);
    let one_trajectory = once || repeats;
    // Repetitions of the same run give no information about the variance of its measures.
    let runs = if one_trajectory { &runs[..1] } else { runs };
    let shown: Vec<usize> =
        (0..MEASURES.len()).filter(|i| !(MEASURES[*i].competition && alone)).collect();
    let every: Vec<&'static str> = MEASURES.iter().map(|m| m.name).collect();
    let rows: Vec<&[f64]> = runs.iter().map(|r| &r.groups[at].measures[..]).collect();
    let estimates = Resamples::of(runs.len()).estimates(&every, &rows);
    let measures = shown.iter().map(|i| (every[*i], estimates[*i])).collect();
    let by_seed = (runs.iter())
        .map(|r| SeedValues {
            seed: r.seed,
            values: shown.iter().map(|i| r.groups[at].measures[*i]).collect(),
        })
        .collect();
    let listed = runs.iter().map(|r| r.groups[at].flows.len()).max().unwrap_or(0);
    let names: Vec<&'static str> =
        MEASURES.iter().filter(|m| m.per_flow.is_some()).map(|m| m.name).collect();
    // A flow that a run does not have gets no values from it.
    let nothing = vec![f64::NAN; names.len()];
    let per_flow = (0..listed)
        .map(|f| {
            let values = runs.iter().map(|r| r.groups[at].flows.get(f).unwrap_or(&nothing));
            let rows: Vec<&[f64]> = values.map(Vec::as_slice).collect();
            let estimates = Resamples::none().estimates(&names, &rows);
            let values = names.iter().copied().zip(estimates).collect();
            (format!("{}.{f}", flows.name), values)
        })
        .collect();
    let protocol = plan.protocol(group, variant);
    ProtocolOutcome {
        protocol: protocol.label().to_string(),
        group: flows.name.clone(),
        digest: combined(&runs.iter().map(|r| r.digest).collect::<Vec<_>>()),
        flows: flows.count,
        rivals,
        seeds: runs.len(),
        one_trajectory,
        by_seed,
        status: status(protocol.label(), plan.scenario.preset),
        measures,
        per_flow,
        series: first.map(|r| series(plan, at, r)).unwrap_or_default(),
    }
}

/// The tables of a reported group: its flows and its bottleneck. Tables that belong to no reported group go with the
/// first.
fn series(plan: &Plan, at: usize, run: &StoredRun) -> Vec<narrows_sim::SeriesTable> {
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

/// The validation status of the protocol's controller, in this preset.
pub fn status(label: &str, preset: Preset) -> String {
    let entry = protocol::find(label.split('(').next().unwrap_or(label));
    let in_linux = entry.as_ref().ok().and_then(|entry| entry.linux);
    if preset == Preset::Linux && in_linux.is_some_and(|linux| linux.is_compared) {
        return Status::Validated("Linux 6.1 (docs/validation.md)").to_string();
    }
    let descriptor = entry.and_then(protocol::ProtocolEntry::descriptor);
    descriptor.map_or_else(|_| String::new(), |c| c.status.to_string())
}
