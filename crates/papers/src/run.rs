//! Runs an experiment: every value, protocol and seed, on as many threads as wanted.

use super::experiment::{Claim, Experiment, OverSeeds};
use super::quantity::Quantity;
use super::sample::{Place, Sample};
use super::stat::Stat;
use narrows_base::random::mix;
use narrows_lab::outcome::Estimate;
use narrows_lab::stats::estimate;
use narrows_sim::Table;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Everything that an experiment's runs gave.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Per claim: its measure over seeds.
    pub claims: Vec<Estimate>,
    /// Per panel and line, what to draw.
    pub lines: Vec<Vec<Points>>,
    /// One number over all runs.
    pub digest: u64,
}

/// What is drawn of a line.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Heights.
    pub y: Vec<f64>,
    /// Half-widths of 95% intervals, if it has them.
    pub ci95: Vec<f64>,
}

/// Runs an experiment on so many threads.
///
/// # Errors
/// What the simulator refuses, with the run's name.
pub fn run(e: &Experiment, jobs: usize) -> Result<Observed, String> {
    // Quantities in order: the claims' measures, then each line at each of its values.
    let mut all: Vec<Quantity> = e.file.claim.iter().map(|c| c.measure.clone()).collect();
    let mut spans = Vec::new();
    for line in e.file.panel.iter().flat_map(|p| &p.line) {
        let begin = all.len();
        all.extend(along(e, &line.show, line.vary.as_deref()));
        spans.push(begin..all.len());
    }
    let mut leaves = Vec::new();
    let mut first_leaf = Vec::new();
    for q in &all {
        first_leaf.push(leaves.len());
        q.leaves(&mut leaves);
    }
    let (values, first, digest) = Work::new(e, &leaves).go(jobs)?;

    let over_seeds = |i: usize| {
        let count = first_leaf.get(i + 1).map_or(leaves.len(), |next| *next) - first_leaf[i];
        let mine = first_leaf[i]..first_leaf[i] + count;
        let seeds = values[mine.clone()].iter().map(Vec::len).max().unwrap_or(1).max(1);
        let of = |leaf: usize, seed: usize| match values[leaf].is_empty() {
            true => leaves[leaf].modelled(),
            false => values[leaf].get(seed).copied().unwrap_or(f64::NAN),
        };
        (0..seeds)
            .map(|seed| all[i].combine(&mut mine.clone().map(|l| of(l, seed))))
            .collect::<Vec<_>>()
    };
    let judged = |(i, claim): (usize, &Claim)| match claim.over_seeds {
        OverSeeds::Mean => estimate(over_seeds(i)),
        OverSeeds::Median => median(&over_seeds(i)),
    };
    let claims = e.file.claim.iter().enumerate().map(judged).collect();
    let mut spans = spans.into_iter();
    let mut lines = Vec::new();
    for panel in &e.file.panel {
        let mut drawn = Vec::new();
        for line in &panel.line {
            let span = spans.next().unwrap_or(0..0);
            drawn.push(if is_series(&line.show) {
                over_time(e, &line.show, &first)
            } else {
                let estimates: Vec<Estimate> = span.map(|i| estimate(over_seeds(i))).collect();
                let at = e.find_run(line.show.run.as_deref()).map_or(&[][..], |r| &e.runs[r].at);
                Points {
                    x: at.to_vec(),
                    y: estimates.iter().map(|x| x.mean).collect(),
                    ci95: estimates.iter().map(|x| x.ci95.unwrap_or(0.0)).collect(),
                }
            });
        }
        lines.push(drawn);
    }
    Ok(Observed { claims, lines, digest })
}

fn median(values: &[f64]) -> Estimate {
    Estimate { mean: Stat::Median.of(values, values, 0.0), ci95: None }
}

/// `n` tasks on so many threads, results in the order of the tasks.
///
/// # Errors
/// The first error, in the order of time.
pub fn parallel<T: Send>(
    n: usize,
    jobs: usize,
    task: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(n));
    let work = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= n || failed.lock().is_ok_and(|f| f.is_some()) {
            return;
        }
        match task(i) {
            Ok(x) => done.lock().map(|mut d| d.push((i, x))).unwrap_or(()),
            Err(why) => failed.lock().map(|mut f| *f = Some(why)).unwrap_or(()),
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(n) {
            scope.spawn(work);
        }
        work();
    });
    if let Ok(Some(why)) = failed.into_inner() {
        return Err(why);
    }
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|d| d.0);
    Ok(done.into_iter().map(|d| d.1).collect())
}

/// Whether a line is drawn over time.
fn is_series(q: &Quantity) -> bool {
    q.column.is_some() && q.stat.is_none()
}

fn over_time(e: &Experiment, q: &Quantity, first: &BTreeMap<Place, Vec<Table>>) -> Points {
    let tables = q.place(e).and_then(|place| first.get(&place));
    let (x, y) = tables.and_then(|t| q.series(t)).unwrap_or_default();
    let scale = q.scale.unwrap_or(1.0);
    Points { x, y: y.iter().map(|v| v * scale).collect(), ci95: Vec::new() }
}

/// The quantity at each varied value of its run.
fn along(e: &Experiment, q: &Quantity, argument: Option<&str>) -> Vec<Quantity> {
    if is_series(q) {
        return Vec::new();
    }
    let Some(run) = e.find_run(q.run.as_deref()) else { return Vec::new() };
    let run = &e.runs[run];
    run.plans
        .iter()
        .zip(&run.at)
        .map(|((value, _), at)| {
            let mut q = q.clone();
            q.at_value(value);
            if let Some(name) = argument {
                q.with.insert(name.to_string(), *at);
            }
            q
        })
        .collect()
}

impl Quantity {
    fn at_value(&mut self, value: &str) {
        if self.model.is_none() && self.value.is_none() {
            self.value = Some(value.to_string());
        }
        for part in self.over.iter_mut().chain(&mut self.minus) {
            part.at_value(value);
        }
    }
}

/// The simulations to do, and what is kept of them.
struct Work<'a> {
    e: &'a Experiment,
    leaves: &'a [&'a Quantity],
    /// Numbers of the leaves that a simulation is asked for.
    wanted: BTreeMap<Place, Vec<usize>>,
    /// Places times seeds.
    tasks: Vec<(Place, u64)>,
}

/// Values per leaf and seed, series of the first seeds, a digest of all.
type Finished = (Vec<Vec<f64>>, BTreeMap<Place, Vec<Table>>, u64);

struct Done {
    digest: u64,
    leaves: Vec<f64>,
    series: Vec<Table>,
}

impl<'a> Work<'a> {
    fn new(e: &'a Experiment, leaves: &'a [&'a Quantity]) -> Work<'a> {
        let mut wanted: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (i, q) in leaves.iter().enumerate() {
            if let Some(place) = q.place(e) {
                wanted.entry(place).or_default().push(i);
            }
        }
        let drawn = e.file.panel.iter().flat_map(|p| &p.line).filter(|l| is_series(&l.show));
        for place in drawn.filter_map(|l| l.show.place(e)) {
            wanted.entry(place).or_default();
        }
        let seeds = |p: &Place| u64::from(e.runs[p.run].plans[p.value].1.scenario.seeds);
        let tasks: Vec<_> = wanted.keys().flat_map(|p| (0..seeds(p)).map(|s| (*p, s))).collect();
        Work { e, leaves, wanted, tasks }
    }

    fn one(&self, task: usize) -> Result<Done, String> {
        let (place, seed) = self.tasks[task];
        let run = &self.e.runs[place.run];
        let plan = &run.plans[place.value].1;
        let sample = Sample::take(plan, place.variant, plan.scenario.seed.wrapping_add(seed))
            .map_err(|e| format!("{} run {}: {e}", self.e.file.id, run.name))?;
        Ok(Done {
            digest: sample.digest,
            leaves: self.wanted[&place].iter().map(|i| self.leaves[*i].leaf(&sample)).collect(),
            series: if seed == 0 { sample.series } else { Vec::new() },
        })
    }

    /// All simulations.
    fn go(&self, jobs: usize) -> Result<Finished, String> {
        let mut values = vec![Vec::new(); self.leaves.len()];
        let (mut first, mut digest) = (BTreeMap::new(), 0);
        let done = parallel(self.tasks.len(), jobs, |task| self.one(task))?;
        for ((place, seed), done) in self.tasks.iter().zip(done) {
            digest = mix(digest ^ done.digest);
            for (i, value) in self.wanted[place].iter().zip(done.leaves) {
                values[*i].push(value);
            }
            if *seed == 0 {
                first.insert(*place, done.series);
            }
        }
        Ok((values, first, digest))
    }
}
