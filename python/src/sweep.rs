//! `narrows.sweep`: in this process, or run by run on other machines.

use crate::compare::Pairs;
use crate::controller;
use crate::errors::{SpecError, guarded, spec};
use crate::table::Table;
use crate::work;
use clap::Args;
use narrows_base as base;
use narrows_lab::options;
use narrows_lab::options::sweep::TableSelection;
use narrows_lab::options::words;
use narrows_lab::sweep as lab;
use narrows_lab::sweep::found::StoredResult;
use narrows_lab::sweep::journal::{self, Journal};
use narrows_lab::sweep::{Base, Grid, Runs, SweepControl};
use narrows_report::sweep::{json, long, points, report, shown, write};
use narrows_report::variables::of_measures;
use narrows_scenario::scenario_file::Template;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Sweep>()?;
    m.add_function(wrap_pyfunction!(sweep_runs, m)?)
}

#[derive(Args)]
struct SweepArguments {
    #[command(flatten)]
    sweep: options::Sweep,
    #[command(flatten)]
    jobs: options::Jobs,
}

/// A scenario's text, and the folder of its traces.
type Text = Option<(String, String)>;

/// The base of the sweep: a scenario's text, or the options.
fn base(arguments: &options::Sweep, text: &Text) -> Result<Base, base::SpecError> {
    match (text, &arguments.scenario) {
        (Some((text, folder)), Some(name)) => {
            let template = Template::parse(text, Path::new(folder));
            let template = template.map_err(|e| e.at(&name.display().to_string()))?;
            Ok(Base::File(Box::new(template)))
        }
        _ => arguments.base(),
    }
}

/// A sweep, with its finished runs.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Sweep {
    sweep: lab::CheckedSweep,
    shown: TableSelection,
    command_line: String,
    jobs: usize,
    kept: Mutex<FinishedRuns>,
}

struct FinishedRuns {
    runs: Runs,
    journal: Journal,
}

impl Sweep {
    fn kept(&self) -> MutexGuard<'_, FinishedRuns> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `make` with the finished runs.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&lab::SweepOutcome<'_>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        guarded(|| {
            py.detach(|| {
                // Copied, so that runs can be added while a report is made.
                let runs = self.kept().runs.clone();
                let about = lab::SweepMetadata {
                    command_line: self.command_line.clone(),
                    base_line: self.command_line.clone(),
                    measure: self.shown.measure,
                    group: self.shown.group,
                };
                make(&lab::SweepOutcome::new(&self.sweep, &runs, about))
            })
        })
    }
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (given, text, folder, fresh))]
    fn new(
        py: Python<'_>,
        given: Pairs,
        text: Text,
        folder: Option<PathBuf>,
        fresh: bool,
    ) -> PyResult<Sweep> {
        let arguments: SweepArguments = words::read(&given).map_err(SpecError::new_err)?;
        work::run(py, None, |_| {
            let base = base(&arguments.sweep, &text).map_err(spec)?;
            let (sweep, shown) = arguments.sweep.read(base).map_err(spec)?;
            let (known, journal) = match folder {
                None => Default::default(),
                Some(folder) => {
                    std::fs::create_dir_all(&folder)?;
                    let opened = journal::open(&folder, fresh).map_err(PyOSError::new_err)?;
                    (opened.0, Some(opened.1))
                }
            };
            let runs = sweep.known(known);
            let kept = FinishedRuns { runs, journal: journal.unwrap_or_else(Journal::nowhere) };
            let command_line = words::command_line("sweep", &given);
            let jobs = arguments.jobs.count();
            Ok(Sweep { sweep, shown, command_line, jobs, kept: Mutex::new(kept) })
        })
    }

    /// Runs everything that is missing, in threads of this process.
    fn execute(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        work::run(py, progress, |watch| {
            let mut kept = self.kept();
            let FinishedRuns { runs, journal } = &mut *kept;
            let progress = |fraction, _| watch.tell(fraction);
            let control = SweepControl {
                stop: &watch.stop,
                progress: &progress,
                jobs: self.jobs,
                part: None,
            };
            let journal = std::mem::replace(journal, Journal::nowhere());
            let done = self.sweep.execute(runs, journal, &control);
            done.map_err(|e| controller::error(e, PyRuntimeError::new_err))
        })
    }

    /// The missing runs: point, seed index, and amount of work.
    fn missing(&self) -> Vec<(usize, usize, f64)> {
        let missing = self.sweep.missing(&self.kept().runs, None);
        missing.into_iter().map(|(p, s)| (p, s, self.sweep.points[p].work)).collect()
    }

    /// Adds a run of `sweep_runs` from another process, and writes it to the journal.
    fn add(&self, point: usize, seed: usize, line: &str) -> PyResult<()> {
        let odd = || PyValueError::new_err("that is no run of this sweep");
        let found = StoredResult::parse(line).filter(|f| f.groups.len() == self.sweep.groups.len());
        let found = found.ok_or_else(odd)?;
        let mut kept = self.kept();
        let place =
            kept.runs.get_mut(point).and_then(|seeds| seeds.get_mut(seed)).ok_or_else(odd)?;
        if place.is_none() {
            *place = Some(found.clone());
            let key = self.sweep.key(point, seed);
            kept.journal.add(key, &found).map_err(PyOSError::new_err)?;
        }
        Ok(())
    }

    /// The finished runs: point, seed index, and the line for `add`.
    fn finished(&self) -> Vec<(usize, usize, String)> {
        let kept = self.kept();
        let seeds = kept.runs.iter().enumerate();
        let runs =
            seeds.flat_map(|(p, seeds)| seeds.iter().enumerate().map(move |(s, f)| (p, s, f)));
        runs.filter_map(|(p, s, f)| Some((p, s, f.as_ref()?.line()))).collect()
    }

    /// Whether time series are recorded in runs of this seed.
    fn is_traced(&self, seed: usize) -> bool {
        self.sweep.wants_trace(seed)
    }

    /// Number of finished runs, and of all runs.
    fn counts(&self) -> (usize, usize) {
        let kept = self.kept();
        let all = kept.runs.iter().flatten();
        (all.clone().flatten().count(), all.count())
    }

    /// The output of `--json`.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |o| Ok(json::outcome(o).to_string()))
    }

    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        self.with(py, |o| Table::new(long(o), of_measures))
    }

    fn points(&self, py: Python<'_>) -> PyResult<Table> {
        self.with(py, |o| Table::new(points(o), of_measures))
    }

    /// The command's table.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |o| Ok(shown::table(o, None)))
    }

    /// Text of `report.html`.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |o| Ok(report::html(o)))
    }

    /// Writes the files that the command writes.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        self.with(py, |o| {
            std::fs::create_dir_all(&folder)?;
            write::all(o, &folder).map_err(PyOSError::new_err)
        })
    }
}

/// Runs parts of a sweep in a worker process: `tasks` are point, seed index, and whether time series are recorded. The
/// resulting lines are those of a journal.
#[pyfunction]
fn sweep_runs(
    py: Python<'_>,
    given: Pairs,
    text: Text,
    tasks: Vec<(usize, usize, bool)>,
) -> PyResult<Vec<String>> {
    let arguments: SweepArguments = words::read(&given).map_err(SpecError::new_err)?;
    let work = move || {
        let base = base(&arguments.sweep, &text).map_err(spec)?;
        let grid = Grid::read(base, &arguments.sweep.vary).map_err(spec)?;
        let stop = AtomicBool::new(false);
        let one = |(point, seed, traced): (usize, usize, bool)| {
            if point >= grid.points() {
                return Err(PyValueError::new_err("that is no point of this sweep"));
            }
            let seed = arguments.sweep.seed.wrapping_add(seed as u64);
            match lab::execute::one(&grid, point, seed, traced, &stop) {
                Ok(found) => Ok(found.line()),
                Err(halt) => Err(controller::error(halt.to_string(), PyRuntimeError::new_err)),
            }
        };
        tasks.into_iter().map(one).collect()
    };
    guarded(|| py.detach(work))
}
