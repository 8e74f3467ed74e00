//! Runs a plan: every protocol with every seed, on several threads.
//!
//! Work is distributed seed by seed, so after an interruption the numbers of seeds per protocol differ by at most one.
//! Results do not depend on the number of jobs: each run draws from its own seed, and results are collected in the
//! plan's order.

use crate::measure::{FlowInputs, GroupInputs, MEASURES};
use crate::parallel::parallel;
use crate::response::{self, Response};
use narrows_base::random::mix;
use narrows_base::{Duration, Time};
use narrows_scenario::plan::Plan;
use narrows_sim::{FlowResult, NetworkSpec, RunResult, SeriesTable, SimError, Simulation};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Limit on the flows of a group that are listed one by one.
pub const LISTED_FLOWS: usize = 1000;

/// The stored results of one run.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Seed of all its random draws.
    pub seed: u64,
    /// The simulator's digest.
    pub digest: u64,
    /// Per reported group: values of [`MEASURES`].
    pub groups: Vec<GroupValues>,
    /// Bottleneck capacity over the measured span, in bit/s, per reported group.
    pub capacity_bps: Vec<f64>,
    /// Time series, for the first seed.
    pub series: Vec<SeriesTable>,
}

/// Measures of one group in one run.
#[derive(Clone, Debug)]
pub struct GroupValues {
    /// In the order of [`MEASURES`].
    pub measures: Vec<f64>,
    /// Per flow: values of the measures that exist for a single flow, in order.
    pub flows: Vec<Vec<f64>>,
}

/// How a caller observes and stops the work.
pub struct RunControl<'a> {
    /// Set from any thread: present runs are interrupted, finished ones are kept.
    pub stop: &'a AtomicBool,
    /// Called regularly with the finished fraction, from any thread.
    pub progress: &'a (dyn Fn(f64) + Sync),
    /// Number of threads.
    pub jobs: usize,
}

impl RunControl<'static> {
    /// Runs to the end on so many threads, and reports no progress.
    #[must_use]
    pub fn quiet(jobs: usize) -> RunControl<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        RunControl { stop: &NEVER, progress: &|_| (), jobs }
    }
}

/// Observes runs while they are simulated; their results stay the same.
pub trait RunObserver: Sync {
    /// A run of this variant and seed (counted from 0) begins. Returns `None` if it is not observed.
    fn begin(
        &self,
        variant: usize,
        seed: usize,
        network: &NetworkSpec,
    ) -> Option<Box<dyn ObservedRun + '_>>;
}

/// Receives a run's state at regular intervals.
pub trait ObservedRun {
    /// Simulated time between two samples.
    fn interval(&self) -> Duration;
    /// The run begins; no packet has been sent.
    fn started(&mut self, simulation: &mut Simulation<'_>);
    /// A sample is due. The run waits until this returns.
    fn sample(&mut self, simulation: &mut Simulation<'_>);
    /// The run has ended.
    fn ended(&mut self, interrupted: bool);
}

/// Finished runs; `runs[variant][seed]` is `None` if it was interrupted.
pub type Runs = Vec<Vec<Option<StoredRun>>>;

/// Runs all variants and seeds.
///
/// # Errors
/// The simulator's error. An interruption is not an error.
pub fn execute(plan: &Plan, control: &RunControl<'_>) -> Result<Runs, String> {
    execute_observed(plan, control, None)
}

/// The same, with the runs that `observer` selects observed.
///
/// # Errors
/// As [`execute`].
pub fn execute_observed(
    plan: &Plan,
    control: &RunControl<'_>,
    observer: Option<&dyn RunObserver>,
) -> Result<Runs, String> {
    let variants = plan.scenario.variants();
    let seeds = plan.scenario.seeds as usize;
    let all: Vec<(usize, usize)> =
        (0..seeds).flat_map(|seed| (0..variants).map(move |variant| (variant, seed))).collect();
    let mut runs: Runs = vec![vec![None; seeds]; variants];
    // Without random draws in the network only a protocol may have some. Two seeds show whether it does; if both runs
    // are equal, the others are not run.
    let first_runs = if plan.draws() { all.len() } else { all.len().min(2 * variants) };
    let job = RunContext { plan, control, observer };
    work(&job, &all[..first_runs], 0, all.len(), &mut runs)?;
    if !plan.draws() {
        drop_repetitions(&mut runs);
    }
    let rest: Vec<_> =
        all[first_runs..].iter().copied().filter(|(v, s)| *s < runs[*v].len()).collect();
    work(&job, &rest, first_runs, first_runs + rest.len(), &mut runs)?;
    Ok(runs)
}

/// Keeps one run of each variant whose first two seeds gave the same one.
pub fn drop_repetitions(runs: &mut Runs) {
    for runs in runs {
        if let [Some(a), Some(b), ..] = &runs[..]
            && a.digest == b.digest
        {
            runs.truncate(1);
        }
    }
}

/// Runs one variant with one seed, both counted from 0.
///
/// # Errors
/// The simulator's error, also an interruption.
pub fn execute_one(
    plan: &Plan,
    control: &RunControl<'_>,
    variant: usize,
    seed: usize,
) -> Result<StoredRun, String> {
    if variant >= plan.scenario.variants() {
        return Err(format!("there is no variant {variant}"));
    }
    let context = RunContext { plan, control, observer: None };
    one(&context, variant, seed, &|_| ()).map_err(|e| e.to_string())
}

/// Common to all runs.
#[derive(Clone, Copy)]
struct RunContext<'a> {
    plan: &'a Plan,
    control: &'a RunControl<'a>,
    observer: Option<&'a dyn RunObserver>,
}

/// Runs these pairs of variant and seed and stores the results. `before` runs are finished, of `of` in all.
fn work(
    job: &RunContext<'_>,
    list: &[(usize, usize)],
    before: usize,
    of: usize,
    runs: &mut Runs,
) -> Result<(), String> {
    let control = job.control;
    // Finished thousandths of all runs.
    let done = AtomicU64::new(0);
    let finished = parallel(list.len(), control.jobs, |task| {
        if control.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let tell = |thousandths: u64| {
            let all = done.fetch_add(thousandths, Ordering::Relaxed) + thousandths;
            (control.progress)((before as f64 + all as f64 / 1000.0) / of as f64);
        };
        let (variant, seed) = list[task];
        match one(job, variant, seed, &tell) {
            Ok(run) => Ok(Some(run)),
            Err(SimError::Interrupted) => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    })?;
    for ((variant, seed), run) in list.iter().zip(finished) {
        runs[*variant][*seed] = run;
    }
    Ok(())
}

fn one(
    job: &RunContext<'_>,
    variant: usize,
    seed: usize,
    tell: &dyn Fn(u64),
) -> Result<StoredRun, SimError> {
    let plan = job.plan;
    let stop = job.control.stop;
    let number = plan.scenario.seed.wrapping_add(seed as u64);
    let network = plan.network(variant, number, seed == 0);
    let end = network.end.as_nanos().max(1);
    let mut reported = 0;
    let mut watch = |now: Time| {
        let thousandths = (u128::from(now.as_nanos().min(end)) * 1000 / u128::from(end)) as u64;
        if thousandths > reported {
            tell(thousandths - reported);
            reported = thousandths;
        }
        !stop.load(Ordering::Relaxed)
    };
    let observed = job.observer.and_then(|o| o.begin(variant, seed, &network));
    let result = match observed {
        None => narrows_sim::run(&network, &mut watch)?,
        Some(mut observed) => {
            let result = in_steps(&network, &mut *observed, &mut watch);
            observed.ended(result.is_err());
            result?
        }
    };
    tell(1000 - reported);
    Ok(keep(plan, variant, number, result))
}

/// Runs to the end, with a sample after every interval.
fn in_steps(
    network: &NetworkSpec,
    observed: &mut dyn ObservedRun,
    watch: &mut dyn FnMut(Time) -> bool,
) -> Result<RunResult, SimError> {
    let mut simulation = Simulation::new(network)?;
    let interval = observed.interval().max(Duration::from_nanos(1));
    observed.started(&mut simulation);
    while simulation.now() < network.end {
        simulation.advance(simulation.now() + interval, watch)?;
        observed.sample(&mut simulation);
        if !watch(simulation.now()) {
            return Err(SimError::Interrupted);
        }
    }
    // A run that ends at time zero has its events there.
    simulation.advance(network.end, watch)?;
    Ok(simulation.finish())
}

/// Extracts the stored results.
pub fn keep(plan: &Plan, variant: usize, seed: u64, mut result: RunResult) -> StoredRun {
    let mut groups = Vec::new();
    let mut capacity_bps = Vec::new();
    let span_s = result.span_s;
    for &group in &plan.reported {
        let link = &result.links[plan.bottleneck(group)];
        let others = plan.others(group);
        let response = Response::of(plan, variant, &result, group);
        let view = GroupInputs { run: &result, group, link, others: &others, response: &response };
        capacity_bps.push(link.capacity_bits / result.span_s);
        let flows = result.groups[group].flows.iter().zip(&response.convergence_s);
        let one_flow = |(result, convergence_s): (&FlowResult, &f64)| {
            let flow = FlowInputs { result, convergence_s: *convergence_s };
            MEASURES.iter().filter_map(|m| m.per_flow.map(|of| of(&flow, span_s))).collect()
        };
        groups.push(GroupValues {
            measures: MEASURES.iter().map(|m| (m.of)(&view)).collect(),
            flows: flows.take(LISTED_FLOWS).map(one_flow).collect(),
        });
    }
    if !result.series.is_empty() {
        let all = 0..result.groups.len();
        let tables: Vec<SeriesTable> =
            all.filter_map(|group| response::over_time(plan, &result, group)).collect();
        result.series.extend(tables);
    }
    StoredRun { seed, digest: result.digest, groups, capacity_bps, series: result.series }
}

/// A combined digest of several runs, in their order; repetitions of the same run count once.
pub fn combined(digests: &[u64]) -> u64 {
    let repeats = digests.iter().all(|digest| *digest == digests[0]);
    let different = if repeats { &digests[..digests.len().min(1)] } else { digests };
    different.iter().fold(0, |all, digest| mix(all ^ digest))
}
