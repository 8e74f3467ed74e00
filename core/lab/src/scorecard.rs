//! `narrows scorecard`: measures the criteria of RFC 9743 (BCP 133) for a new congestion controller.
//!
//! The RFC names criteria but no thresholds: the question is whether a controller does more harm, or less, than today's
//! standards would in its place. So every figure is compared with the same figure of Reno and CUBIC on the same network
//! with the same random draws, over the same transport. BBR is shown, but not compared with.
//!
//! ```text
//!   criteria ─> a scenario each ─> controller, Reno, CUBIC and BBR in turn, several seeds
//!            ─> differences, seed by seed ─> better than both, alike, worse than both
//! ```

mod criteria;
mod judge;
mod networks;

pub use criteria::{Criterion, CriterionMeasure, NOT_SIMULATED, SECTIONS};
pub use judge::Judgement;

use crate::compare::{Question, check_protocol};
use crate::execute::RunControl;
use crate::measure::{self, GroupInputs};
use crate::parallel::parallel;
use crate::response::Response;
use narrows_base::SpecError;
use narrows_scenario::{Plan, Scenario};
use narrows_sim::{RunResult, SimError};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Options of [`Scorecard::measure`].
#[derive(Clone, Debug)]
pub struct Scorecard {
    /// The protocol, as in `compare`.
    pub protocol: String,
    /// Seeds of each scenario.
    pub seeds: u32,
    /// First seed.
    pub seed: u64,
    /// If set, only sections with numbers that begin with this, for instance `5.2`.
    pub section: Option<String>,
}

/// The standard protocols that replace the controller for comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Yardsticks {
    /// RFC 5681.
    pub reno: &'static str,
    /// RFC 9438.
    pub cubic: &'static str,
    /// Shown, but not compared with.
    pub bbr: &'static str,
}

/// A figure of a criterion, measured.
#[derive(Clone, Debug)]
pub struct MeasuredFigure {
    /// The measure and its group.
    pub figure: CriterionMeasure,
    /// Means over the seeds: of the controller, Reno, CUBIC, BBR.
    pub means: [f64; 4],
    /// The controller's rank among Reno and CUBIC.
    pub judgement: Judgement,
}

/// A criterion with its figures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScorecardRow {
    /// The network and its figures.
    pub criterion: Criterion,
    /// The network with the controller alone, to run it again.
    pub scenario: Scenario,
    /// The measured figures.
    pub entries: Vec<MeasuredFigure>,
}

impl Scorecard {
    /// The protocols to compare with: over rrtp others over rrtp, else TCP with selective acknowledgements.
    pub fn yardsticks(&self) -> Yardsticks {
        let name = self.protocol.split(['(', '+']).next().unwrap_or_default().trim();
        if name == "rrtp" || name.starts_with("rrtp-") {
            Yardsticks { reno: "rrtp+reno", cubic: "rrtp+cubic", bbr: "rrtp+bbr" }
        } else {
            Yardsticks { reno: "reno", cubic: "cubic", bbr: "bbr" }
        }
    }

    /// Runs all criteria; `None` if it was interrupted.
    ///
    /// # Errors
    /// An unknown protocol or section, several protocols, or an error of the simulator.
    pub fn measure(&self, control: &RunControl<'_>) -> Result<Option<Vec<ScorecardRow>>, String> {
        let preset = Question::default().preset;
        check_protocol(&self.protocol, preset).map_err(|e| e.to_string())?;
        let wanted = |c: &Criterion| self.section.as_ref().is_none_or(|s| c.section.starts_with(s));
        let criteria: Vec<Criterion> = networks::all()?.into_iter().filter(wanted).collect();
        if criteria.is_empty() {
            let known: Vec<&str> = SECTIONS.iter().map(|(number, _)| *number).collect();
            let section = self.section.as_deref().unwrap_or_default();
            return Err(format!(
                "--section '{section}': nothing is measured for it; there are {}",
                known.join(", ")
            ));
        }
        let mut works = Vec::new();
        for criterion in &criteria {
            let scenario = self.scenario(criterion, true).map_err(|e| e.to_string())?;
            works.push(Plan::new(scenario).map_err(|e| e.to_string())?);
        }
        let Some(values) = self.run_all(&criteria, &works, control)? else { return Ok(None) };
        let mut rows = Vec::new();
        for (criterion, of_figures) in criteria.into_iter().zip(values) {
            let scenario = self.scenario(&criterion, false).map_err(|e| e.to_string())?;
            let entries = (criterion.figures.iter().zip(of_figures))
                .map(|(figure, values)| MeasuredFigure {
                    figure: figure.clone(),
                    means: values.each_ref().map(|v| v.iter().sum::<f64>() / v.len().max(1) as f64),
                    judgement: judge::judge(&values, figure.more_is_better()),
                })
                .collect();
            rows.push(ScorecardRow { criterion, scenario, entries });
        }
        Ok(Some(rows))
    }

    /// The protocols to run, and which of them each of the four columns shows. The controller may be one of the
    /// standards.
    fn variants(&self) -> (Vec<&str>, [usize; 4]) {
        let y = self.yardsticks();
        let mut list: Vec<&str> = Vec::new();
        let columns = [self.protocol.trim(), y.reno, y.cubic, y.bbr].map(|name| {
            list.iter().position(|n| *n == name).unwrap_or_else(|| {
                list.push(name);
                list.len() - 1
            })
        });
        (list, columns)
    }

    fn scenario(&self, criterion: &Criterion, beside: bool) -> Result<Scenario, SpecError> {
        let protocols = match beside {
            true => self.variants().0.join(","),
            false => self.protocol.clone(),
        };
        criterion.scenario(protocols, self.seeds, self.seed)
    }

    /// Values by criterion, figure, protocol and seed.
    #[allow(clippy::type_complexity)]
    fn run_all(
        &self,
        criteria: &[Criterion],
        plans: &[Plan],
        control: &RunControl<'_>,
    ) -> Result<Option<Vec<Vec<[Vec<f64>; 4]>>>, String> {
        let seeds = self.seeds as usize;
        let (list, columns) = self.variants();
        let variants = list.len();
        let mut tasks: Vec<(usize, usize, usize)> = (0..plans.len())
            .flat_map(|c| (0..variants).flat_map(move |v| (0..seeds).map(move |s| (c, v, s))))
            .collect();
        // The longest first, so that no core is left with a long one at the end.
        tasks.sort_by(|a, b| plans[b.0].work().total_cmp(&plans[a.0].work()));
        let all: f64 = tasks.iter().map(|t| plans[t.0].work()).sum();
        let empty = |c: &Criterion| -> Vec<[Vec<f64>; 4]> {
            c.figures.iter().map(|_| std::array::from_fn(|_| vec![f64::NAN; seeds])).collect()
        };
        let done = Mutex::new(0.0);
        let found = parallel(tasks.len(), control.jobs, |task| {
            let (c, variant, seed) = tasks[task];
            let plan = &plans[c];
            let criterion = &criteria[c];
            let network = plan.network(variant, self.seed.wrapping_add(seed as u64), false);
            let run =
                match narrows_sim::run(&network, &mut |_| !control.stop.load(Ordering::Relaxed)) {
                    Ok(run) => run,
                    Err(SimError::Interrupted) => return Ok(None),
                    Err(e) => return Err(format!("{}: {e}", criterion.what)),
                };
            if let Ok(mut done) = done.lock() {
                *done += plan.work();
                (control.progress)(*done / all);
            }
            let of = |f: &CriterionMeasure| value(f, plan, variant, &run);
            Ok(Some(criterion.figures.iter().map(of).collect::<Vec<f64>>()))
        })?;
        let mut values: Vec<Vec<[Vec<f64>; 4]>> = criteria.iter().map(empty).collect();
        for ((c, variant, seed), found) in tasks.into_iter().zip(found) {
            let Some(found) = found else { return Ok(None) };
            for (places, x) in values[c].iter_mut().zip(found) {
                let shown = columns.iter().zip(places).filter(|(v, _)| **v == variant);
                shown.for_each(|(_, place)| place[seed] = x);
            }
        }
        Ok(Some(values))
    }
}

/// A figure of one run.
fn value(figure: &CriterionMeasure, plan: &Plan, variant: usize, run: &RunResult) -> f64 {
    let group = figure.group;
    let Some(measure) = measure::find(figure.measure) else { return f64::NAN };
    let others: Vec<usize> = (0..run.groups.len())
        .filter(|g| *g != group && plan.bottleneck(*g) == plan.bottleneck(group))
        .collect();
    let view = GroupInputs {
        run,
        group,
        link: &run.links[plan.bottleneck(group)],
        others: &others,
        response: &Response::of(plan, variant, run, group),
    };
    let x = (measure.of)(&view);
    let x = if figure.per_second { x / run.span_s } else { x };
    // A time until an event that does not happen is at least the whole run.
    if x.is_finite() || !figure.is_a_time() { x } else { run.span_s }
}

#[cfg(test)]
mod tests;
