//! The runs of a search's cases.

use super::case::Case;
use super::score::Hunt;
use crate::Question;
use crate::execute::{RunControl, execute};
use crate::parallel::parallel;
use narrows_base::{Duration, SpecError};
use narrows_scenario::timeline::Timeline;
use narrows_scenario::{Plan, Scenario};
use narrows_sim::protocol::Preset;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of [`attack`](super::attack).
#[derive(Clone, Debug)]
pub struct Attack {
    /// The protocol under attack, as in `compare`.
    pub protocol: String,
    /// The measure to make worse.
    pub hunt: Hunt,
    /// Protocol to compare with on the same case, instead of an omniscient sender.
    pub rival: Option<String>,
    /// Limit on the cases of the search.
    pub budget: usize,
    /// Seed of all draws of cases.
    pub seed: u64,
    /// Simulated time of a run.
    pub duration: Duration,
    /// Number of worst cases to report.
    pub report: usize,
}

/// A case and its badness.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The network.
    pub case: Case,
    /// 1 is the best possible value; larger is worse ([`Hunt`]).
    pub badness: f64,
}

impl Attack {
    /// The scenario of a case: the protocol, and the rival if there is one.
    ///
    /// # Errors
    /// Unknown protocols, as in `compare`.
    pub fn scenario(&self, case: &Case, seed: u64, seeds: u32) -> Result<Scenario, SpecError> {
        Ok(self.question(case, seed, seeds).scenario(Path::new(""))?.0)
    }

    /// The same, as `compare` would ask it.
    pub fn question(&self, case: &Case, seed: u64, seeds: u32) -> Question {
        let protocols = match &self.rival {
            Some(rival) => format!("{},{rival}", self.protocol),
            None => self.protocol.clone(),
        };
        Question {
            link: case.link(),
            protocols,
            flows: case.flows,
            against: case.against.map(|(name, flows)| format!("{name}:{flows}")),
            reverse: case.reverse.map(|name| format!("{name}:1")),
            duration: self.duration,
            seeds,
            seed,
            preset: Preset::Rfc,
            timeline: Timeline { changes: case.changes(self.duration), ..Timeline::default() },
            ..Question::default()
        }
    }

    /// The badness of a case: the median over its seeds. `None` if it was interrupted.
    pub(super) fn badness(
        &self,
        case: &Case,
        seed: u64,
        seeds: u32,
        stop: &AtomicBool,
    ) -> Result<Option<f64>, String> {
        let scenario = self.scenario(case, seed, seeds).map_err(|e| e.to_string())?;
        let plan = Plan::new(scenario).map_err(|e| e.to_string())?;
        let runs = execute(&plan, &RunControl { stop, progress: &|_| {}, jobs: 1 })?;
        let of_seed = |runs: &[Option<crate::execute::StoredRun>]| -> Option<Vec<Vec<f64>>> {
            let groups = |r: &Option<crate::execute::StoredRun>| {
                r.as_ref().and_then(|r| r.groups.first()).map(|g| g.measures.clone())
            };
            runs.iter().map(groups).collect()
        };
        let Some(all) = runs.iter().map(|r| of_seed(r)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let Some(own) = all.first() else { return Ok(None) };
        let mut values: Vec<f64> = (own.iter().enumerate())
            .map(|(i, measures)| {
                let rival = all.get(1).and_then(|r| r.get(i.min(r.len().saturating_sub(1))));
                self.hunt.badness(case, self.duration, measures, rival.map(Vec::as_slice))
            })
            .collect();
        values.sort_by(f64::total_cmp);
        Ok(values.get(values.len() / 2).copied())
    }

    /// Runs cases on all threads; results are in the order of the cases.
    pub(super) fn run_all(
        &self,
        cases: &[Case],
        (seed, seeds): (u64, u32),
        control: &RunControl<'_>,
    ) -> Result<Vec<Finding>, String> {
        let all = parallel(cases.len(), control.jobs, |i| {
            if control.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let badness = self.badness(&cases[i], seed, seeds, control.stop);
            badness.map_err(|e| format!("{}: {e}", cases[i].link()))
        })?;
        let finding = |(case, badness): (&Case, Option<f64>)| {
            Some(Finding { case: case.clone(), badness: badness? })
        };
        Ok(cases.iter().zip(all).filter_map(finding).collect())
    }
}
