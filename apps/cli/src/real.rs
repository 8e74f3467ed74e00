//! `narrows compare --real`: the same comparison with the kernel's TCP over emulated links, with Narrows' controllers
//! in the kernel and with Linux's own.

use crate::failure::Failure;
use narrows_base::Spec;
use narrows_kernel::{Agent, BpfPrograms, Choice};
use narrows_lab::Outcome;
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, Runs, StoredRun, keep};
use narrows_lab::measure::MEASURES;
use narrows_scenario::Plan;
use narrows_sim::RunResult;
use narrows_sim::protocol;
use narrows_speed::KernelTcp;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit on the sum of the link rates of concurrent runs: the load that two cores carry without being late.
const BUDGET_BPS: f64 = 45e6;
/// Maximum number of concurrent runs.
const MAX_AT_ONCE: usize = 6;
/// Lateness of a link, in seconds, above which a warning is printed.
const LATE_S: f64 = 2e-3;

/// Measures that cannot be observed in the kernel or on its link.
const NOT_SEEN: [&str; 7] = [
    "congestion_judged_radio",
    "radio_judged_congestion",
    "loss_event_rate",
    "sender_loss_rate",
    "halving_s",
    "takeup_s",
    "convergence_s",
];

/// Linux's own congestion control that the protocol with this label simulates.
fn own_of_linux(label: &str) -> Option<&'static str> {
    let linux = protocol::find(label).ok()?.linux;
    linux.filter(|linux| linux.is_compared).map(|linux| linux.name)
}

/// A controller that is registered in the kernel while this lives.
struct KernelRegistration {
    name: String,
    _agent: Agent,
}

/// A row of the table: a protocol of the plan, under a congestion control of the kernel.
struct Variant {
    /// Number of the variant in the plan.
    number: usize,
    label: String,
    congestion: String,
    /// Keeps the controller registered; `None` for Linux's own.
    _loaded: Option<KernelRegistration>,
}

/// The variants that can run in the kernel, with their controllers loaded, and a note about each of the others.
fn variants(plan: &Plan) -> Result<(Vec<Variant>, Vec<String>), Failure> {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default();
    let mut variants = Vec::new();
    let mut notes = Vec::new();
    for number in 0..plan.scenario.variants() {
        let group = plan.reported.first().copied().unwrap_or(0);
        let label = plan.protocol(group, number).label().to_string();
        match load(&label) {
            Ok(loaded) => variants.push(Variant {
                number,
                label: format!("{label}, in the kernel"),
                congestion: loaded.name.clone(),
                _loaded: Some(loaded),
            }),
            Err(Failure::Input(e)) if e.contains("missing rights") || e.contains("BTF") => {
                return Err(Failure::Input(e));
            }
            Err(Failure::Input(e)) => notes.push(format!("{label} is simulated only: {e}")),
            Err(e) => return Err(e),
        }
        if let Some(own) = own_of_linux(&label)
            && known.split_whitespace().any(|name| name == own)
        {
            let label = format!("Linux's own {own}");
            variants.push(Variant { number, label, congestion: own.into(), _loaded: None });
        }
    }
    Ok((variants, notes))
}

fn load(label: &str) -> Result<KernelRegistration, Failure> {
    let spec = Spec::parse(label)?;
    let entry = protocol::find(&spec.name)?;
    let controller = label.replacen(&spec.name, entry.controller, 1);
    let (name, _agent) = Agent::load(Choice::new(&controller)?)?;
    Ok(KernelRegistration { name, _agent })
}

/// The kernel's congestion control for each group of flows: those under test, and their competitors.
fn congestion(
    plan: &Plan,
    variant: &Variant,
    others: &[Option<KernelRegistration>],
) -> Vec<String> {
    let of = |group: usize| match &others[group] {
        Some(other) => other.name.clone(),
        None => variant.congestion.clone(),
    };
    (0..plan.scenario.flows.len()).map(of).collect()
}

/// Checks before the simulation whether the plan can run in the kernel.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    let scenario = &plan.scenario;
    if scenario.flows.iter().any(|f| !f.source.is_endless()) {
        return Err(Failure::Input("--real: only bulk transfers (--source bulk)".into()));
    }
    if !scenario.changes.is_empty() || !scenario.reconfigurations.is_empty() {
        let e = "--real: nothing happens on the way (no --change, no --reconfigure)";
        return Err(Failure::Input(e.into()));
    }
    // Checks for missing privileges and kernel features.
    BpfPrograms::prepare().map(drop)?;
    Ok(())
}

/// Runs everything in the kernel. Returns an outcome of the same form as the simulation's, with notes.
pub fn outcome(
    plan: &Plan,
    about: &OutcomeMetadata,
    control: &RunControl<'_>,
) -> Result<Outcome, Failure> {
    let scenario = &plan.scenario;
    let (variants, notes) = variants(plan)?;
    let mut others = Vec::new();
    for (group, flows) in scenario.flows.iter().enumerate() {
        let is_other = !plan.reported.contains(&group);
        let label = plan.protocol(group, 0).label().to_string();
        let load = || {
            load(&label).map_err(|e| match e {
                Failure::Input(e) => Failure::Input(format!("--real: {}: {e}", flows.name)),
                e => e,
            })
        };
        others.push(if is_other { Some(load()?) } else { None });
    }
    let seeds = scenario.seeds as usize;
    let tasks: Vec<(usize, usize)> =
        (0..seeds).flat_map(|seed| (0..variants.len()).map(move |v| (v, seed))).collect();
    let rate = scenario.links[0].forward.rate.as_bps() as f64;
    let at_once = ((BUDGET_BPS / rate.max(1.0)) as usize).clamp(1, MAX_AT_ONCE);
    let next = AtomicUsize::new(0);
    let late = Mutex::new(0.0_f64);
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let runs: Mutex<Runs> = Mutex::new(vec![vec![None; seeds]; variants.len()]);
    let work = || {
        while let Some((v, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            let variant = &variants[v];
            let number = scenario.seed.wrapping_add(seed as u64);
            let network = plan.network(variant.number, number, seed == 0);
            let congestion = congestion(plan, variant, &others);
            let real = KernelTcp { network: &network, link: [0, 1], congestion: &congestion };
            match real.run(control.stop) {
                Ok(Some((result, lateness))) => {
                    let run = stored(plan, variant.number, number, result);
                    let mut late = late.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *late = late.max(lateness.p99_s);
                    if let Ok(mut runs) = runs.lock() {
                        runs[v][seed] = Some(run);
                    }
                }
                Ok(None) => return,
                Err(e) => {
                    let _ = failed.lock().map(|mut f| f.get_or_insert(e).len());
                    return;
                }
            }
            let done = next.load(Ordering::Relaxed).saturating_sub(at_once) as f64;
            (control.progress)(done / tasks.len() as f64);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..at_once {
            // If a thread cannot be started, the others do its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    if let Ok(Some(e)) = failed.into_inner() {
        return Err(Failure::Input(e));
    }
    let runs = runs.into_inner().unwrap_or_default();
    let late = late.into_inner().unwrap_or_default();
    Ok(collected(plan, about, &variants, &runs, late, notes))
}

/// Collects the results as the simulation's are, with a row for each variant.
fn collected(
    plan: &Plan,
    about: &OutcomeMetadata,
    variants: &[Variant],
    runs: &Runs,
    late_s: f64,
    notes: Vec<String>,
) -> Outcome {
    // One variant of the plan at a time, since it may occur in several rows.
    let nothing = || vec![vec![None; plan.scenario.seeds as usize]; plan.scenario.variants()];
    let mut all: Option<Outcome> = None;
    for (variant, runs) in variants.iter().zip(runs) {
        let mut of_this: Runs = nothing();
        of_this[variant.number].clone_from(runs);
        let mut outcome = collect(plan, about.clone(), &of_this, None);
        for result in &mut outcome.results {
            result.protocol.clone_from(&variant.label);
        }
        match &mut all {
            Some(all) => all.results.append(&mut outcome.results),
            None => all = Some(outcome),
        }
    }
    let mut all = all.unwrap_or_else(|| collect(plan, about.clone(), &nothing(), None));
    all.notes = notes;
    if late_s > LATE_S {
        all.notes.push(format!(
            "this machine was busy: the emulated links were up to {:.1} ms late (99th percentile), which lengthens RTTs",
            late_s * 1e3
        ));
    }
    all
}

/// Inserts real rows after the simulated ones of the same protocol.
pub fn beside(simulated: &mut Outcome, real: Outcome) {
    let rows = std::mem::take(&mut simulated.results);
    let mut real_rows = real.results;
    for mut row in rows {
        let name = row.protocol.clone();
        row.protocol = format!("{name}, simulated");
        simulated.results.push(row);
        let own = own_of_linux(&name);
        let is_its = |label: &str| {
            label == format!("{name}, in the kernel")
                || own.is_some_and(|own| label == format!("Linux's own {own}"))
        };
        let (its, others) = real_rows.into_iter().partition(|r| is_its(&r.protocol));
        simulated.results.extend::<Vec<_>>(its);
        real_rows = others;
    }
    simulated.notes.extend(real.notes);
    simulated.notes.push(
        "RTTs in the kernel are smoothed ones, seen every 10 ms; its data have 1,500 bytes, as the simulated have".into(),
    );
}

/// The figures of a run. The kernel's events have no digest. The seed takes its place: no two runs are the same.
fn stored(plan: &Plan, variant: usize, seed: u64, result: RunResult) -> StoredRun {
    let mut run = keep(plan, variant, seed, result);
    run.digest = seed;
    forget_unseen(&mut run);
    run
}

fn forget_unseen(run: &mut StoredRun) {
    for (at, measure) in MEASURES.iter().enumerate() {
        if NOT_SEEN.contains(&measure.name) {
            for group in &mut run.groups {
                group.measures[at] = f64::NAN;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_lab::Question;

    #[test]
    fn real_runs_of_several_seeds_have_an_interval() {
        let question = Question {
            link: "1Mbit/s,10ms,loss=1%".into(),
            protocols: "cubic".into(),
            duration: narrows_base::Duration::from_secs(2),
            seeds: 3,
            ..Question::default()
        };
        let (scenario, _) = question.scenario(std::path::Path::new("")).unwrap();
        let plan = Plan::new(scenario).unwrap();
        let run = |seed: u64| {
            let mut result =
                narrows_sim::run(&plan.network(0, seed, false), &mut |_| true).unwrap();
            result.digest = 0;
            stored(&plan, 0, seed, result)
        };
        let runs: Runs = vec![vec![Some(run(1)), Some(run(2)), Some(run(3))]];
        let outcome = collect(&plan, OutcomeMetadata::default(), &runs, None);
        assert_eq!(outcome.results[0].seeds, 3);
        assert!(outcome.results[0].measure("goodput_bps").unwrap().ci95().is_some());
    }
}
