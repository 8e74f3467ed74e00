//! Runs the points and seeds that are not in the journal, on several threads.
//!
//! The largest runs come first, so that all cores finish at about the same time; each run is a task of its own. Results
//! do not depend on the number of jobs.

use super::found::{SUMMED, StoredResult, interval};
use super::grid::{Grid, MAX_RUNS};
use super::journal::{Journal, SweepPart};
use super::key::RunKey;
use crate::measure::MEASURES;
use narrows_base::SpecError;
use narrows_scenario::plan::Plan;
use narrows_scenario::scenario::Scenario;
use narrows_sim::SimError;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// Limit on points with a time series of the first seed: a report can hold no more.
pub const MAX_TRACES: usize = 1024;
/// Limit on the numbers of all traces together.
const MAX_SAMPLES: usize = 1_100_000;

/// A sweep of which every point can be run.
pub struct CheckedSweep {
    /// The parameters and their values.
    pub grid: Grid,
    /// First seed.
    pub seed: u64,
    /// Number of seeds.
    pub seeds: u32,
    /// The scenario at the first point; lent controllers may no longer exist when a report is made.
    pub first: Option<Scenario>,
    /// All points of the grid, in its order.
    pub points: Vec<Point>,
    /// Names of the groups of flows, the same at every point.
    pub groups: Vec<String>,
    /// Whether each group has competitors at its bottleneck at the first point.
    pub competes: Vec<bool>,
    /// Whether first seeds have time series.
    pub traced: bool,
}

/// A checked point.
#[derive(Clone, Debug)]
pub struct Point {
    /// Key of its runs in the journal, without the seed.
    pub key: RunKey,
    /// Amount of work of a run.
    pub work: f64,
    /// Per group: protocol and number of flows.
    pub groups: Vec<(String, usize)>,
}

/// Finished runs: `runs[point][seed]` is `None` if it was interrupted.
pub type Runs = Vec<Vec<Option<StoredResult>>>;

/// How a caller observes and stops the work.
pub struct SweepControl<'a> {
    /// Set from any thread: present runs are interrupted, finished ones are kept.
    pub stop: &'a AtomicBool,
    /// Called with the finished fraction and the number of finished points, from any thread.
    pub progress: &'a (dyn Fn(f64, usize) + Sync),
    /// Number of threads.
    pub jobs: usize,
    /// This program's part of the runs, if several programs share them.
    pub part: Option<SweepPart>,
}

impl CheckedSweep {
    /// Checks every point.
    ///
    /// # Errors
    /// The first point that cannot be run, with the reason; too many runs.
    pub fn new(grid: Grid, seed: u64, seeds: u32) -> Result<CheckedSweep, SpecError> {
        let runs = grid.points().saturating_mul(seeds as usize);
        if runs > MAX_RUNS {
            return Err(SpecError::new(format!(
                "{runs} runs are too many; a sweep has at most {MAX_RUNS}, points times seeds"
            )));
        }
        let mut points = Vec::with_capacity(grid.points());
        let mut first = None;
        let mut groups: Vec<String> = Vec::new();
        let mut competes: Vec<bool> = Vec::new();
        for point in 0..grid.points() {
            let plan = grid.plan(point)?;
            let flows = &plan.scenario.flows;
            if point == 0 {
                first = Some(plan.scenario.clone());
                groups = flows.iter().map(|f| f.name.clone()).collect();
                competes = (0..flows.len()).map(|g| !plan.others(g).is_empty()).collect();
            }
            let group_of = |(g, f): (usize, &narrows_scenario::scenario::Flows)| {
                (plan.protocol(g, 0).label().to_string(), f.count)
            };
            points.push(Point {
                key: RunKey::of(&plan),
                work: plan.work(),
                groups: flows.iter().enumerate().map(group_of).collect(),
            });
        }
        let samples = points.len() * (groups.len() + 2) * super::found::SAMPLES as usize;
        let traced = points.len() <= MAX_TRACES && samples <= MAX_SAMPLES;
        Ok(CheckedSweep { grid, seed, seeds, first, points, groups, competes, traced })
    }

    /// The default group of tables: the first that competes, or the first.
    pub fn usual_group(&self) -> usize {
        self.competes.iter().position(|c| *c).unwrap_or(0)
    }
    /// The default measure of tables.
    pub fn usual_measure(&self) -> usize {
        let competes = self.competes.iter().any(|c| *c);
        let name = if competes { "theta" } else { "utilisation" };
        MEASURES.iter().position(|m| m.name == name).unwrap_or(0)
    }
    /// A run's key in the journal.
    pub fn key(&self, point: usize, seed: usize) -> RunKey {
        self.points[point].key.with_seed(self.seed.wrapping_add(seed as u64))
    }
    /// Whether a run has time series.
    pub fn wants_trace(&self, seed: usize) -> bool {
        self.traced && seed == 0
    }

    /// The runs that are already in the journal.
    pub fn known(&self, mut journal: BTreeMap<RunKey, StoredResult>) -> Runs {
        let groups = self.groups.len();
        let mut one = |point, seed| {
            let mut found = journal.remove(&self.key(point, seed))?;
            let traced = self.wants_trace(seed);
            if found.groups.len() != groups || (traced && found.trace.is_none()) {
                return None;
            }
            found.trace = found.trace.filter(|_| traced);
            Some(found)
        };
        let seeds = self.seeds as usize;
        (0..self.points.len()).map(|p| (0..seeds).map(|s| one(p, s)).collect()).collect()
    }

    /// The missing runs, as points and numbers of seeds, those with the most work first.
    pub fn missing(&self, runs: &Runs, part: Option<SweepPart>) -> Vec<(usize, usize)> {
        let is_ours = |point: usize, seed: usize| {
            part.is_none_or(|part| part.has(point * self.seeds as usize + seed))
        };
        let mut tasks: Vec<(usize, usize)> = Vec::new();
        for (point, seeds) in runs.iter().enumerate() {
            let missing = (0..seeds.len()).filter(|s| seeds[*s].is_none() && is_ours(point, *s));
            tasks.extend(missing.map(|seed| (point, seed)));
        }
        tasks.sort_by(|a, b| {
            let work = |t: &(usize, usize)| self.points[t.0].work;
            work(b).total_cmp(&work(a)).then(a.cmp(b))
        });
        tasks
    }

    /// Runs the missing runs, and writes each to the journal when it is finished.
    ///
    /// # Errors
    /// An error of the simulator or of the journal. An interruption is not an error.
    pub fn execute(
        &self,
        runs: &mut Runs,
        journal: Journal,
        control: &SweepControl<'_>,
    ) -> Result<(), String> {
        self.execute_told(runs, journal, control, &|_, _| ())
    }

    /// The same; `found` is called with each run when it is finished, and its point, from any thread.
    ///
    /// # Errors
    /// As [`execute`](CheckedSweep::execute).
    pub fn execute_told(
        &self,
        runs: &mut Runs,
        journal: Journal,
        control: &SweepControl<'_>,
        found: &(dyn Fn(usize, &StoredResult) + Sync),
    ) -> Result<(), String> {
        let tell = found;
        let tasks = self.missing(runs, control.part);
        let mut open = vec![0; self.points.len()];
        tasks.iter().for_each(|(point, _)| open[*point] += 1);
        let open: Vec<AtomicU32> = open.into_iter().map(AtomicU32::new).collect();
        let all: f64 = tasks.iter().map(|t| self.points[t.0].work).sum::<f64>().max(1.0);
        let complete = open.iter().filter(|o| o.load(Ordering::Relaxed) == 0).count();
        let complete = AtomicUsize::new(complete);
        let next = AtomicUsize::new(0);
        // Work done, journal, finished runs.
        let kept: Mutex<SweepProgress> =
            Mutex::new(SweepProgress { done: 0.0, journal, finished: Vec::new() });
        let failed: Mutex<Option<String>> = Mutex::new(None);
        let fail = |why: String| failed.lock().map(|mut f| *f = Some(why)).unwrap_or(());
        let halted =
            || control.stop.load(Ordering::Relaxed) || failed.lock().is_ok_and(|f| f.is_some());
        let work = || loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks.len() || halted() {
                return;
            }
            let (point, seed) = tasks[task];
            match self.one(point, seed, control.stop) {
                Ok(found) => {
                    tell(point, &found);
                    let Ok(mut kept) = kept.lock() else { return };
                    kept.done += self.points[point].work;
                    if let Err(why) = kept.journal.add(self.key(point, seed), &found) {
                        fail(why);
                    }
                    kept.finished.push((point, seed, found));
                    if open[point].fetch_sub(1, Ordering::Relaxed) == 1 {
                        complete.fetch_add(1, Ordering::Relaxed);
                    }
                    let fraction = kept.done / all;
                    drop(kept);
                    (control.progress)(fraction, complete.load(Ordering::Relaxed));
                }
                Err(Halt::Interrupted) => {}
                Err(Halt::Failed(why)) => fail(why),
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..control.jobs.min(tasks.len()) {
                // With fewer threads the rest do the same work.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        if let Ok(Some(why)) = failed.into_inner() {
            return Err(why);
        }
        for (point, seed, found) in kept.into_inner().map(|k| k.finished).unwrap_or_default() {
            runs[point][seed] = Some(found);
        }
        Ok(())
    }

    fn one(&self, point: usize, seed: usize, stop: &AtomicBool) -> Result<StoredResult, Halt> {
        let number = self.seed.wrapping_add(seed as u64);
        one(&self.grid, point, number, self.wants_trace(seed), stop)
    }
}

/// Runs one point with one seed, with time series if `traced`.
///
/// # Errors
/// An error of the simulator, or an interruption.
pub fn one(
    grid: &Grid,
    point: usize,
    seed: u64,
    traced: bool,
    stop: &AtomicBool,
) -> Result<StoredResult, Halt> {
    let mut plan = grid.plan(point).map_err(|e| Halt::Failed(e.to_string()))?;
    if traced {
        watch(&mut plan);
    }
    let network = plan.network(0, seed, traced);
    let mut go_on = |_| !stop.load(Ordering::Relaxed);
    match narrows_sim::run(&network, &mut go_on) {
        Ok(result) => Ok(StoredResult::keep(&plan, &result, traced)),
        Err(SimError::Interrupted) => Err(Halt::Interrupted),
        Err(e) => Err(Halt::Failed(format!("{}: {e}", grid.label(point)))),
    }
}

/// Records all flows of every group, at a coarse interval.
fn watch(plan: &mut Plan) {
    let scenario = &mut plan.scenario;
    scenario.probe.interval = Some(interval(scenario.duration));
    scenario.probe.flows = SUMMED;
}

struct SweepProgress {
    done: f64,
    journal: Journal,
    finished: Vec<(usize, usize, StoredResult)>,
}

/// The reason why a run has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    /// The caller stopped it.
    Interrupted,
    /// The simulator's error.
    Failed(String),
}

impl std::fmt::Display for Halt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Halt::Interrupted => "interrupted",
            Halt::Failed(why) => why,
        })
    }
}
