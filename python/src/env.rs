//! `narrows.env`: environments for learning. NumPy arrays are read and written in place, without the GIL.

use crate::errors::{SpecError, guarded, spec};
use narrows_lab::env::{
    ACTIONS, Autoreset, COLUMNS, EnvError, Environment, EnvironmentSettings, OBSERVATIONS, REWARDS,
    StepLength, Stepped, Task, Transport, VectorEnvironment,
};
use narrows_report::figure::{Figure, lines};
use narrows_scenario::scenario_file;
use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Environments>()?;
    m.add_function(wrap_pyfunction!(env_lists, m)?)?;
    m.add_function(wrap_pyfunction!(env_defaults, m)?)
}

/// Name, unit, lower and upper bound, help.
type Entry = (&'static str, &'static str, f32, f32, &'static str);

/// Actions, observations, rewards (name and help), and the columns of a trace.
type Lists = (Vec<Entry>, Vec<Entry>, Vec<(&'static str, &'static str)>, Vec<&'static str>);

/// The lists of actions, observations, rewards and trace columns.
#[pyfunction]
fn env_lists() -> Lists {
    (
        ACTIONS.iter().map(|a| (a.name, a.unit, a.low, a.high, a.help)).collect(),
        OBSERVATIONS.iter().map(|o| (o.name, o.unit, o.low, o.high, o.help)).collect(),
        REWARDS.iter().map(|r| (r.name, r.help)).collect(),
        COLUMNS.to_vec(),
    )
}

/// Defaults: link, observations, and the weights of the reward.
#[pyfunction]
fn env_defaults() -> (String, Vec<String>, Vec<(String, f64)>) {
    let EnvironmentSettings { link, observations, rewards, .. } = EnvironmentSettings::default();
    (link, observations, rewards)
}

/// Environments that are stepped together.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Environments {
    vector: Mutex<VectorEnvironment>,
    /// Process that created them: a forked child has the memory, but not the threads.
    process: u32,
}

#[pymethods]
impl Environments {
    #[new]
    #[pyo3(signature = (*, link, packet, preset, transport, protocol, against, actions, observations, rewards, step, steps, num_envs, threads, autoreset))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        link: String,
        packet: u32,
        preset: &str,
        transport: &str,
        protocol: Option<String>,
        against: Option<String>,
        actions: Vec<String>,
        observations: Vec<String>,
        rewards: Vec<(String, f64)>,
        step: &str,
        steps: u32,
        num_envs: usize,
        threads: usize,
        autoreset: &str,
    ) -> PyResult<Environments> {
        let transport = match transport {
            "tcp" => Transport::Tcp,
            "rrtp" => Transport::Rrtp,
            other => return Err(unknown("transport", other, &["tcp", "rrtp"])),
        };
        let autoreset = match autoreset {
            "next_step" => Autoreset::NextStep,
            "same_step" => Autoreset::SameStep,
            "disabled" => Autoreset::Disabled,
            other => {
                return Err(unknown("autoreset", other, &["next_step", "same_step", "disabled"]));
            }
        };
        let settings = EnvironmentSettings {
            link,
            folder: Default::default(),
            packet,
            preset: scenario_file::preset(preset).map_err(spec)?,
            transport,
            protocol,
            against,
            actions,
            observations,
            rewards,
            step: StepLength::parse(step).map_err(spec)?,
            steps,
        };
        let vector = py.detach(|| {
            guarded(|| {
                let task = Task::new(&settings).map_err(spec)?;
                VectorEnvironment::new(task.into(), num_envs, threads, autoreset).map_err(spec)
            })
        })?;
        Ok(Environments { vector: Mutex::new(vector), process: std::process::id() })
    }

    /// Begins episodes in all environments, or in those of the mask, and writes their first observations.
    #[pyo3(signature = (seeds, mask, observations))]
    fn reset(
        &self,
        py: Python<'_>,
        seeds: Option<PyReadonlyArray1<'_, u64>>,
        mask: Option<PyReadonlyArray1<'_, bool>>,
        mut observations: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        self.check_rows(&[observations.shape()])?;
        let seeds = seeds.as_ref().map(|s| s.as_slice()).transpose()?;
        let mask = mask.as_ref().map(|m| m.as_slice()).transpose()?;
        let observations = observations.as_slice_mut()?;
        py.detach(|| guarded(|| self.vector()?.reset(seeds, mask, observations).map_err(error)))
    }

    /// Steps all environments: each takes a row of actions, and writes a row of observations, a reward and whether it
    /// has ended.
    #[pyo3(signature = (actions, observations, rewards, truncated, last))]
    fn step(
        &self,
        py: Python<'_>,
        actions: PyReadonlyArray2<'_, f32>,
        mut observations: PyReadwriteArray2<'_, f32>,
        mut rewards: PyReadwriteArray1<'_, f64>,
        mut truncated: PyReadwriteArray1<'_, bool>,
        mut last: Option<PyReadwriteArray2<'_, f32>>,
    ) -> PyResult<()> {
        self.check_rows(&[actions.shape(), observations.shape()])?;
        let actions = actions.as_slice()?;
        let out = Stepped {
            observations: observations.as_slice_mut()?,
            rewards: rewards.as_slice_mut()?,
            truncated: truncated.as_slice_mut()?,
            final_observations: last.as_mut().map(|l| l.as_slice_mut()).transpose()?,
        };
        py.detach(|| guarded(|| self.vector()?.step(actions, out).map_err(error)))
    }

    /// For each environment: rate of its link in Mbit/s, and base RTT in seconds.
    fn paths(&self) -> PyResult<Vec<(f64, f64)>> {
        let vector = self.vector()?;
        if !vector.environments().iter().all(Environment::has_begun) {
            return Err(error(EnvError::NotReset(0)));
        }
        let path = |e: &Environment| {
            let episode = e.last_step().episode();
            (episode.rate_bps * 1e-6, episode.base_rtt_s)
        };
        Ok(vector.environments().iter().map(path).collect())
    }

    /// The link of each environment's episode, as a specification.
    fn links(&self) -> PyResult<Vec<String>> {
        self.vector()?.environments().iter().map(|e| e.link().map_err(error)).collect()
    }

    /// Means over each environment's episode so far: throughput, RTT over base RTT, loss, reward.
    fn means(&self) -> PyResult<Vec<[f64; 4]>> {
        Ok(self.vector()?.environments().iter().map(Environment::means).collect())
    }

    /// Keeps a trace of an environment from its next reset on.
    fn keep_trace(&self, index: usize) -> PyResult<()> {
        let mut vector = self.vector()?;
        let environment = vector.environment_mut(index).ok_or_else(|| missing(index))?;
        environment.keep_trace();
        Ok(())
    }

    /// The trace of an environment, a row per step.
    fn trace(&self, index: usize) -> PyResult<Vec<[f64; COLUMNS.len()]>> {
        let vector = self.vector()?;
        let environment = vector.environments().get(index).ok_or_else(|| missing(index))?;
        Ok(environment.trace().map(|t| t.rows().to_vec()).unwrap_or_default())
    }

    /// The trace as a picture in SVG.
    fn svg(&self, index: usize) -> PyResult<String> {
        let rows = self.trace(index)?;
        let vector = self.vector()?;
        let environment = vector.environments().get(index).ok_or_else(|| missing(index))?;
        let link = environment.link().map_err(error)?;
        let capacity = environment.last_step().episode().rate_bps * 1e-6;
        let points = |at: usize, factor: f64| rows.iter().map(|r| (r[0], r[at] * factor)).collect();
        let end = rows.last().map_or(0.0, |r| r[0]);
        let rate = lines("Rate").x("time", "s").y("rate", "Mbit/s");
        let rate = rate.line("delivered", points(1, 1.0)).line("sent", points(2, 1.0));
        let figure = Figure::new()
            .panel(rate.dashed("link", vec![(0.0, capacity), (end, capacity)]))
            .panel(lines("RTT").x("time", "s").y("RTT", "ms").line("RTT", points(3, 1e3)))
            .panel(
                lines("Window and queue")
                    .x("time", "s")
                    .y("packets", "")
                    .line("window", points(4, 1.0))
                    .line("queue", points(5, 1.0)),
            )
            .panel(lines("Loss").x("time", "s").y("loss", "%").line("loss", points(6, 100.0)));
        Ok(figure.caption(link).svg())
    }
}

impl Environments {
    fn vector(&self) -> PyResult<MutexGuard<'_, VectorEnvironment>> {
        if std::process::id() != self.process {
            return Err(PyRuntimeError::new_err(
                "these environments belong to the process that forked this one: make them here, or start \
                 processes by 'spawn'",
            ));
        }
        // A panic is reported to the caller; afterwards the environment must be reset.
        Ok(self.vector.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A transposed or misshapen array of the right size would be read in the wrong order.
    fn check_rows(&self, shapes: &[&[usize]]) -> PyResult<()> {
        let n = self.vector()?.environments().len();
        match shapes.iter().find(|s| s[0] != n) {
            None => Ok(()),
            Some(s) => Err(SpecError::new_err(format!(
                "an array has {} rows; there are {n} environments",
                s[0]
            ))),
        }
    }
}

fn missing(index: usize) -> PyErr {
    SpecError::new_err(format!("there is no environment {index}"))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> PyErr {
    spec(narrows_base::SpecError::unknown(what, name, known))
}

fn error(e: EnvError) -> PyErr {
    match e {
        EnvError::Spec(e) => spec(e),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}
