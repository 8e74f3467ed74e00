//! Runs an experiment: every value, protocol and seed, on as many threads as wanted.

use super::experiment::{Experiment, PanelLine};
use super::measured::{self, MeasuredValue, STAGES};
use super::quantity::Quantity;
use super::sample::{SampleSelector, SimulationSample};
use narrows_base::random::mix;
use narrows_lab::outcome::Estimate;
use narrows_lab::parallel::parallel;
use narrows_lab::stats::estimate;
use narrows_sim::SeriesTable;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Everything that an experiment's runs gave.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct RunResults {
    /// Measured value of each claim.
    pub claims: Vec<MeasuredValue>,
    /// Points of each panel's lines.
    pub lines: Vec<Vec<Points>>,
    /// One number over all runs.
    pub digest: u64,
}

/// Points of a line.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Points {
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Heights.
    pub y: Vec<f64>,
    /// Half-widths of 95% intervals, if it has them.
    pub ci95: Vec<f64>,
}

/// Runs an experiment on `jobs` threads. Undecided claims get more seeds.
///
/// # Errors
/// An error of the simulator, with the run's name.
pub fn run(e: &Experiment, jobs: usize) -> Result<RunResults, String> {
    let (all, spans) = quantities(e);
    let mut work = ExperimentWork::new(e, &all);
    work.run_scenarios_seeds(jobs)?;
    let lines = lines(e, &work, spans);
    let claims = decide(e, &mut work, jobs)?;
    Ok(RunResults { claims, lines, digest: work.digest })
}

/// Results of one seed of every scenario and value.
#[derive(Clone, Copy, Debug)]
pub struct RunFingerprint {
    /// A digest that changes with the simulation or the measurement.
    pub digest: u64,
    /// About how many events [`run`] simulates.
    pub events: u64,
}

/// One seed of every scenario and value, in a small part of the time of [`run`]. `seeds` are the earlier numbers of
/// seeds of each claim, as far as they are recorded.
///
/// # Errors
/// An error of the simulator, with the run's name.
pub fn fingerprint(e: &Experiment, seeds: &[usize], jobs: usize) -> Result<RunFingerprint, String> {
    let (all, _) = quantities(e);
    let mut work = ExperimentWork::new(e, &all);
    let mut places: BTreeMap<SampleSelector, usize> =
        work.wanted.keys().map(|p| (*p, work.scenarios_seeds(p))).collect();
    work.run_seeds(&places.keys().copied().collect(), 1, jobs)?;
    for (claim, seeds) in seeds.iter().enumerate() {
        for place in work.places_of(claim) {
            places.entry(place).and_modify(|max| *max = (*max).max(*seeds));
        }
    }
    let values = work.values.iter().flatten().map(|v| v.to_bits());
    let models = work.leaves.iter().filter(|leaf| leaf.model.is_some());
    let models = models.map(|leaf| leaf.modelled().to_bits());
    let digest = values.chain(models).fold(work.digest, |all, value| mix(all ^ value));
    let events = work.events.iter().map(|(place, n)| n * places[place] as u64).sum();
    Ok(RunFingerprint { digest, events })
}

/// The claims' measures, then each panel's lines at each of their values; and the range of each line.
fn quantities(e: &Experiment) -> (Vec<Quantity>, Vec<Range<usize>>) {
    let mut all: Vec<Quantity> = e.file.claim.iter().map(|c| c.measure.clone()).collect();
    let mut spans = Vec::new();
    for line in e.file.panel.iter().flat_map(|p| &p.line) {
        let begin = all.len();
        all.extend(along(e, line));
        spans.push(begin..all.len());
    }
    (all, spans)
}

/// Judges every claim by the seeds that there are, then those that are undecided by more, stage by
/// stage. A decided claim is not changed, even if its runs continue for another claim.
fn decide(
    e: &Experiment,
    work: &mut ExperimentWork,
    jobs: usize,
) -> Result<Vec<MeasuredValue>, String> {
    let now = |work: &ExperimentWork, i: usize, first: usize| {
        MeasuredValue::new(&e.file.claim[i], &work.over_seeds(i), first)
    };
    // Recorded values are checked once, because no more runs of them exist.
    let first = |i: usize| match e.file.claim[i].measure.recorded {
        Some(_) => usize::MAX,
        None => work.seeds_of(i),
    };
    let first: Vec<usize> = (0..e.file.claim.len()).map(first).collect();
    let mut claims: Vec<MeasuredValue> = (0..first.len()).map(|i| now(work, i, first[i])).collect();
    for stage in STAGES {
        let open: Vec<usize> = (0..claims.len())
            .filter(|i| measured::wants(&e.file.claim[*i], &claims[*i], stage))
            .collect();
        let places: BTreeSet<SampleSelector> =
            open.iter().flat_map(|i| work.places_of(*i)).collect();
        work.run_seeds(&places, stage, jobs)?;
        for i in open {
            claims[i] = now(work, i, first[i]);
        }
    }
    Ok(claims)
}

/// Lines of each panel, over the seeds of the scenarios.
fn lines(e: &Experiment, work: &ExperimentWork, spans: Vec<Range<usize>>) -> Vec<Vec<Points>> {
    let mut spans = spans.into_iter();
    let mut drawn = |line: &PanelLine| {
        let span = spans.next().unwrap_or(0..0);
        if is_series(&line.show) {
            return over_time(e, &line.show, &work.series);
        }
        let estimates: Vec<Estimate> = span.map(|i| estimate(work.over_seeds(i))).collect();
        Points {
            x: positions(e, line),
            y: estimates.iter().map(|x| x.mean).collect(),
            ci95: estimates.iter().map(|x| x.half().unwrap_or(0.0)).collect(),
        }
    };
    e.file.panel.iter().map(|panel| panel.line.iter().map(&mut drawn).collect()).collect()
}

/// Whether a line is drawn over time.
fn is_series(q: &Quantity) -> bool {
    q.column.is_some() && q.stat.is_none() && q.recorded.is_none()
}

fn over_time(
    e: &Experiment,
    q: &Quantity,
    first: &BTreeMap<SampleSelector, Vec<SeriesTable>>,
) -> Points {
    let tables = q.place(e).and_then(|place| first.get(&place));
    let (x, y) = tables.and_then(|t| q.series(t)).unwrap_or_default();
    let scale = q.scale.unwrap_or(1.0);
    Points { x, y: y.iter().map(|v| v * scale).collect(), ci95: Vec::new() }
}

/// Positions of a line's points: its own values, or those of its run.
fn positions(e: &Experiment, line: &PanelLine) -> Vec<f64> {
    match line.span {
        Some(span) => span.values().collect(),
        None => e.find_run(line.show.run.as_deref()).map_or(Vec::new(), |r| e.runs[r].at.clone()),
    }
}

/// The quantity of a line at each of its values.
fn along(e: &Experiment, line: &PanelLine) -> Vec<Quantity> {
    if is_series(&line.show) {
        return Vec::new();
    }
    let run = e.find_run(line.show.run.as_deref()).filter(|_| line.span.is_none());
    let values = |i: usize| run.and_then(|r| e.runs[r].plans.get(i)).map(|plan| &plan.0);
    let at_position = |(i, at): (usize, f64)| {
        let mut q = line.show.clone();
        if let Some(value) = values(i) {
            q.at_value(value);
        }
        if let Some(name) = &line.vary {
            q.with.insert(name.clone(), at);
        }
        q
    };
    positions(e, line).into_iter().enumerate().map(at_position).collect()
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

/// The simulations of an experiment, and their stored results.
struct ExperimentWork<'a> {
    e: &'a Experiment,
    quantities: &'a [Quantity],
    /// Leaves of each quantity.
    spans: Vec<Range<usize>>,
    leaves: Vec<&'a Quantity>,
    /// Leaves that each simulation must provide.
    wanted: BTreeMap<SampleSelector, Vec<usize>>,
    /// How many seeds of each have been run.
    seeds: BTreeMap<SampleSelector, usize>,
    /// Per leaf: its value in each seed.
    values: Vec<Vec<f64>>,
    /// Of the first seeds.
    series: BTreeMap<SampleSelector, Vec<SeriesTable>>,
    /// Of the first seeds.
    events: BTreeMap<SampleSelector, u64>,
    /// Of all simulations.
    digest: u64,
}

struct FinishedSimulation {
    digest: u64,
    events: u64,
    leaves: Vec<f64>,
    series: Vec<SeriesTable>,
}

impl<'a> ExperimentWork<'a> {
    fn new(e: &'a Experiment, quantities: &'a [Quantity]) -> ExperimentWork<'a> {
        let mut leaves = Vec::new();
        let mut spans = Vec::new();
        for q in quantities {
            let begin = leaves.len();
            q.leaves(&mut leaves);
            spans.push(begin..leaves.len());
        }
        let mut wanted: BTreeMap<SampleSelector, Vec<usize>> = BTreeMap::new();
        for (i, q) in leaves.iter().enumerate() {
            if let Some(place) = q.place(e) {
                wanted.entry(place).or_default().push(i);
            }
        }
        let drawn = e.file.panel.iter().flat_map(|p| &p.line).filter(|l| is_series(&l.show));
        for place in drawn.filter_map(|l| l.show.place(e)) {
            wanted.entry(place).or_default();
        }
        // Recorded values are read here; the check has already read them without error.
        let recorded = |leaf: &&Quantity| leaf.from_record(e).unwrap_or_default();
        let values = leaves.iter().map(recorded).collect();
        let seeds = BTreeMap::new();
        let series = BTreeMap::new();
        let events = BTreeMap::new();
        ExperimentWork {
            e,
            quantities,
            spans,
            leaves,
            wanted,
            seeds,
            values,
            series,
            events,
            digest: 0,
        }
    }

    /// The simulations that a quantity depends on; empty for a model.
    fn places_of(&self, quantity: usize) -> impl Iterator<Item = SampleSelector> {
        self.spans[quantity].clone().filter_map(|leaf| self.leaves[leaf].place(self.e))
    }

    /// Number of seeds of a quantity; 0 for a model.
    fn seeds_of(&self, quantity: usize) -> usize {
        let leaves = self.spans[quantity].clone();
        leaves.map(|leaf| self.values[leaf].len()).max().unwrap_or(0)
    }

    /// A quantity's value in each seed; a model has one.
    fn over_seeds(&self, quantity: usize) -> Vec<f64> {
        let of = |leaf: usize, seed: usize| match &self.leaves[leaf].model {
            Some(_) => self.leaves[leaf].modelled(),
            None => self.values[leaf].get(seed).copied().unwrap_or(f64::NAN),
        };
        (0..self.seeds_of(quantity).max(1))
            .map(|seed| {
                let mut leaves = self.spans[quantity].clone().map(|leaf| of(leaf, seed));
                self.quantities[quantity].combine(&mut leaves)
            })
            .collect()
    }

    fn one(&self, place: SampleSelector, seed: usize) -> Result<FinishedSimulation, String> {
        let run = &self.e.runs[place.run];
        let plan = &run.plans[place.value].1;
        let sample = SimulationSample::take(
            plan,
            place.variant,
            plan.scenario.seed.wrapping_add(seed as u64),
        )
        .map_err(|e| format!("{} run {}: {e}", self.e.file.id, run.name))?;
        Ok(FinishedSimulation {
            digest: sample.digest,
            events: sample.events,
            leaves: self.wanted[&place].iter().map(|i| self.leaves[*i].leaf(&sample)).collect(),
            series: if seed == 0 { sample.series } else { Vec::new() },
        })
    }

    fn scenarios_seeds(&self, place: &SampleSelector) -> usize {
        self.e.runs[place.run].plans[place.value].1.scenario.seeds as usize
    }

    /// Runs the seeds of each scenario.
    fn run_scenarios_seeds(&mut self, jobs: usize) -> Result<(), String> {
        let wanted: Vec<(SampleSelector, usize)> =
            self.wanted.keys().map(|p| (*p, self.scenarios_seeds(p))).collect();
        self.run_up_to(&wanted, jobs)
    }

    /// More seeds of some places, up to `seeds` in all.
    fn run_seeds(
        &mut self,
        of: &BTreeSet<SampleSelector>,
        seeds: usize,
        jobs: usize,
    ) -> Result<(), String> {
        let wanted: Vec<(SampleSelector, usize)> = of.iter().map(|place| (*place, seeds)).collect();
        self.run_up_to(&wanted, jobs)
    }

    fn run_up_to(&mut self, wanted: &[(SampleSelector, usize)], jobs: usize) -> Result<(), String> {
        let known = |place: &SampleSelector| self.seeds.get(place).copied().unwrap_or(0);
        let tasks: Vec<(SampleSelector, usize)> = wanted
            .iter()
            .flat_map(|(place, seeds)| (known(place)..*seeds).map(|seed| (*place, seed)))
            .collect();
        let done = parallel(tasks.len(), jobs, |task| self.one(tasks[task].0, tasks[task].1))?;
        for ((place, seed), done) in tasks.into_iter().zip(done) {
            self.digest = mix(self.digest ^ done.digest);
            for (i, value) in self.wanted[&place].iter().zip(done.leaves) {
                self.values[*i].push(value);
            }
            self.seeds.insert(place, seed + 1);
            if seed == 0 {
                self.series.insert(place, done.series);
                self.events.insert(place, done.events);
            }
        }
        Ok(())
    }
}
