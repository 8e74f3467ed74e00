//! `narrows.compare` and `narrows.run`.

use crate::controller;
use crate::errors::{SpecError, spec};
use crate::outcome::Outcome;
use crate::work;
use clap::Args;
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::options;
use narrows_lab::options::words;
use narrows_scenario::{Plan, scenario_file};
use pyo3::prelude::*;
use std::path::Path;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(compare, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)
}

/// Options by their names in the command; the argument has an empty name.
pub type Pairs = Vec<(String, String)>;

#[derive(Args)]
struct Compare {
    #[command(flatten)]
    question: options::Compare,
    #[command(flatten)]
    jobs: options::Jobs,
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    run: options::Run,
    #[command(flatten)]
    jobs: options::Jobs,
}

#[pyfunction]
fn compare(py: Python<'_>, given: Pairs, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Outcome> {
    let a: Compare = words::read(&given).map_err(SpecError::new_err)?;
    let line = words::command_line("compare", &given);
    let (scenario, about) = a.question.scenario(&a.question.usual(), line).map_err(spec)?;
    let plan = Plan::new(scenario).map_err(spec)?;
    answer(py, &plan, about, a.jobs.count(), progress)
}

/// Runs a scenario: a file, or a text with the folder of its traces.
#[pyfunction]
fn run(
    py: Python<'_>,
    given: Pairs,
    text: Option<(String, String)>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let a: Run = words::read(&given).map_err(SpecError::new_err)?;
    let file = a.run.scenario.display().to_string();
    let scenario = match text {
        None => a.run.load(),
        Some((text, folder)) => {
            let read = scenario_file::parse(&text, Path::new(&folder));
            read.and_then(|s| a.run.with(s)).map_err(|e| e.at(&file))
        }
    };
    let line = words::command_line("run", &given);
    let (plan, about) = a.run.plan(scenario.map_err(spec)?, line).map_err(spec)?;
    answer(py, &plan, about, a.jobs.count(), progress)
}

fn answer(
    py: Python<'_>,
    plan: &Plan,
    about: OutcomeMetadata,
    jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    work::run(py, progress, |watch| {
        let control = RunControl { stop: &watch.stop, progress: &|f| watch.tell(f), jobs };
        let runs = execute(plan, &control).map_err(|e| controller::error(e, SpecError::new_err))?;
        Ok(Outcome {
            toml: scenario_file::text(&plan.scenario),
            found: collect(plan, about, &runs, Some(&control)),
        })
    })
}
