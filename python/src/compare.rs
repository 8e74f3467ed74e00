//! `narrows.compare`.

use crate::errors::{SpecError, spec};
use crate::work;
use narrows_lab::collect::{About, collect};
use narrows_lab::execute::{Control, execute};
use narrows_lab::recommendation::Aim;
use narrows_lab::{Outcome, Question};
use narrows_scenario::Plan;
use pyo3::prelude::*;
use std::path::Path;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Comparison>()?;
    m.add_function(wrap_pyfunction!(compare, m)?)
}

/// What a comparison or a scenario found.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Comparison(Outcome);

#[pymethods]
impl Comparison {
    /// What `--json` prints.
    fn json(&self) -> String {
        narrows_report::json::outcome(&self.0).to_string()
    }
}

#[pyfunction]
#[pyo3(signature = (link, protocols, seeds, progress=None))]
fn compare(
    py: Python<'_>,
    link: String,
    protocols: String,
    seeds: u32,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let question = Question { link, protocols, seeds, ..Question::default() };
    let (scenario, link) = question.scenario(Path::new("")).map_err(spec)?;
    let about = About {
        command: "compare",
        command_line: "narrows compare".into(),
        link: link.to_string(),
        path: format!("{}; {}", link.describe(question.packet), question.preset.describe()),
        aim: Aim::Bulk,
    };
    work::run(py, progress, move |watch| {
        let plan = Plan::new(scenario).map_err(spec)?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let control = Control { stop: &watch.stop, progress: &|f| watch.tell(f), jobs };
        let runs = execute(&plan, &control).map_err(SpecError::new_err)?;
        Ok(Comparison(collect(&plan, about, &runs)))
    })
}
