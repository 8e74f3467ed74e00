//! The outcome of a sweep: means with intervals over seeds.

use super::execute::{CheckedSweep, Runs};
use super::found::StoredResult;
use crate::interval::{Resamples, few_events, few_events_note};
use crate::measure::MEASURES;
use crate::outcome::Estimate;
use narrows_base::random::mix;

/// All results of a sweep.
#[non_exhaustive]
pub struct SweepOutcome<'a> {
    /// The sweep and its points.
    pub sweep: &'a CheckedSweep,
    /// The finished runs.
    pub runs: &'a Runs,
    /// The exact command line.
    pub command_line: String,
    /// The command line without the varied parameters, for plotting a single point.
    pub base_line: String,
    /// The scenario's or link's name.
    pub scenario: String,
    /// Simulated seconds and warm-up of the first point.
    pub span_s: (f64, f64),
    /// Index of the measure in tables, in [`MEASURES`].
    pub measure: usize,
    /// Index of the group in tables.
    pub group: usize,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// `estimates[point][group][measure]`.
    pub estimates: Vec<Vec<Vec<Estimate>>>,
    /// Per point, whether several seeds gave the same run, event for event: one trajectory, without intervals.
    pub deterministic: Vec<bool>,
}

/// Metadata of an outcome.
pub struct SweepMetadata {
    /// The exact command line.
    pub command_line: String,
    /// The command line without the varied parameters.
    pub base_line: String,
    /// Index of the measure in tables, in [`MEASURES`].
    pub measure: usize,
    /// Index of the group in tables.
    pub group: usize,
}

impl<'a> SweepOutcome<'a> {
    /// Computes an outcome from finished runs.
    pub fn new(sweep: &'a CheckedSweep, runs: &'a Runs, about: SweepMetadata) -> SweepOutcome<'a> {
        let names: Vec<&'static str> = MEASURES.iter().map(|m| m.name).collect();
        let resamples = Resamples::of(sweep.seeds as usize);
        let mut few = vec![false; names.len()];
        let mut estimates = Vec::new();
        let mut deterministic = Vec::new();
        for seeds in runs {
            let mut done: Vec<&StoredResult> = seeds.iter().flatten().collect();
            let repeats = done.len() > 1 && done.iter().all(|f| f.digest == done[0].digest);
            // Repetitions of the same run give no information about the variance of its measures.
            done.truncate(if repeats { 1 } else { done.len() });
            deterministic.push(repeats);
            let over = |group: usize| {
                let rows: Vec<&[f64]> = done.iter().map(|f| &f.groups[group][..]).collect();
                for name in few_events(&names, &rows) {
                    few[names.iter().position(|n| *n == name).unwrap_or(0)] = true;
                }
                resamples.estimates(&names, &rows)
            };
            estimates.push((0..sweep.groups.len()).map(over).collect::<Vec<_>>());
        }
        let mut notes = Vec::new();
        let wanted = runs.len() * sweep.seeds as usize;
        let finished = runs.iter().flatten().flatten().count();
        if finished < wanted {
            notes.push(format!(
                "interrupted: {finished} of {wanted} runs finished; the same command goes on"
            ));
        }
        let repeated = deterministic.iter().filter(|d| **d).count();
        if repeated > 0 {
            let which = match repeated == deterministic.len() {
                true => "all points".into(),
                false => format!("{repeated} of {} points", deterministic.len()),
            };
            notes.push(format!(
                "deterministic, so without intervals: {which}. Nothing was drawn at random, or no draw \
                 changed anything: each is one trajectory, which another start or delay may change \
                 (--stagger, host-delay=)"
            ));
        }
        let few: Vec<&'static str> = names.iter().zip(few).filter(|f| f.1).map(|f| *f.0).collect();
        notes.extend(few_events_note(&few));
        if !sweep.traced {
            notes.push("the grid is too large for traces in the report".into());
        }
        let first = sweep.first.as_ref();
        let seconds = |d: narrows_base::Duration| d.as_nanos() as f64 / 1e9;
        SweepOutcome {
            sweep,
            runs,
            command_line: about.command_line,
            base_line: about.base_line,
            scenario: first.map_or(String::new(), |s| s.name.clone()),
            span_s: first.map_or((0.0, 0.0), |s| (seconds(s.duration), seconds(s.warmup))),
            measure: about.measure,
            group: about.group,
            notes,
            estimates,
            deterministic,
        }
    }

    /// Points with at least one finished seed.
    pub fn finished(&self) -> impl Iterator<Item = usize> {
        (0..self.runs.len()).filter(|p| self.runs[*p].iter().any(Option::is_some))
    }
    /// Number of finished seeds of a point.
    pub fn seeds(&self, point: usize) -> usize {
        self.runs[point].iter().flatten().count()
    }
    /// A combined digest of a point's runs.
    pub fn digest(&self, point: usize) -> u64 {
        self.runs[point].iter().flatten().fold(0, |all, run| mix(all ^ run.digest))
    }
}
