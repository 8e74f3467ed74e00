//! Thousands of environments, stepped by one call on all cores.
//!
//! An environment depends only on its own seed, and writes its results into its own part of the caller's arrays.
//! Threads take environments as they become free, so the assignment to threads does not affect results.

use crate::env::environment::{Environment, check_actions};
use crate::env::error::EnvError;
use crate::env::task::Task;
use narrows_base::SpecError;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// Most flows of a vector, competitors counted: each needs about 20 kB.
pub const MAX_FLOWS: usize = 1_000_000;
/// Most threads.
const MAX_THREADS: usize = 1024;
/// Fewest environments that a thread takes at once.
const AT_ONCE: usize = 4;

/// When an environment whose episode has ended is reset, as in Gymnasium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Autoreset {
    /// By the next call of `step`, which ignores its action and gives the reward 0.
    #[default]
    NextStep,
    /// By the same call: its observation is the next episode's first.
    SameStep,
    /// Only by `reset` with a mask.
    Disabled,
}

/// Where a step's results are written: one entry, or one row of observations, per environment.
#[derive(Debug)]
pub struct Stepped<'a> {
    /// Observations, row by row.
    pub observations: &'a mut [f32],
    /// One reward per environment.
    pub rewards: &'a mut [f64],
    /// Whether the episode has ended.
    pub truncated: &'a mut [bool],
    /// With [`Autoreset::SameStep`]: the last observation of each episode that has ended, row by row. Other rows stay
    /// as they are.
    pub final_observations: Option<&'a mut [f32]>,
}

/// Environments that are stepped together.
#[derive(Debug)]
pub struct VectorEnvironment {
    task: Arc<Task>,
    environments: Vec<Environment>,
    autoreset: Autoreset,
    threads: ThreadPool,
}

impl VectorEnvironment {
    /// `n` environments on `threads` threads; 0 means one for each core.
    ///
    /// # Errors
    /// The number of environments or threads is out of range.
    pub fn new(
        task: Arc<Task>,
        n: usize,
        threads: usize,
        autoreset: Autoreset,
    ) -> Result<VectorEnvironment, SpecError> {
        let within = |name: &str, n: usize, min: usize, max: usize| match n {
            n if (min..=max).contains(&n) => Ok(()),
            _ => Err(SpecError::new(format!("{name}: {n} is not a number from {min} to {max}"))),
        };
        within("num_envs", n, 1, MAX_FLOWS / task.flows())?;
        within("threads", threads, 0, MAX_THREADS)?;
        let threads = ThreadPoolBuilder::new().num_threads(threads).build();
        let threads = threads.map_err(|e| SpecError::new(format!("threads: {e}")))?;
        let environments = (0..n).map(|_| Environment::new(task.clone())).collect();
        Ok(VectorEnvironment { task, environments, autoreset, threads })
    }

    /// The settings of all environments.
    pub fn task(&self) -> &Task {
        &self.task
    }
    /// All environments in order of their index.
    pub fn environments(&self) -> &[Environment] {
        &self.environments
    }
    /// One environment, for example to enable its trace.
    pub fn environment_mut(&mut self, index: usize) -> Option<&mut Environment> {
        self.environments.get_mut(index)
    }

    /// Begins an episode in every environment, or in those that `mask` names, and writes their first observations.
    /// With `seeds`, each is seeded first; otherwise its next episode follows from the seed that it has.
    ///
    /// # Errors
    /// Arrays of wrong lengths, or the error of the first environment that has one.
    pub fn reset(
        &mut self,
        seeds: Option<&[u64]>,
        mask: Option<&[bool]>,
        observations: &mut [f32],
    ) -> Result<(), EnvError> {
        let n = self.environments.len();
        let width = self.task.observations().len();
        length("observations", observations.len(), n * width)?;
        length("seeds", seeds.map_or(n, <[u64]>::len), n)?;
        length("mask", mask.map_or(n, <[bool]>::len), n)?;
        let rows = observations.par_chunks_mut(width);
        let each = self.environments.par_iter_mut().zip(rows).enumerate().with_min_len(AT_ONCE);
        self.threads.install(|| {
            first_error(each.filter_map(|(i, (environment, row))| {
                if mask.is_some_and(|m| !m[i]) {
                    return None;
                }
                if let Some(seeds) = seeds {
                    environment.seed(seeds[i]);
                }
                environment.begin(row).err().map(|e| (i, e))
            }))
        })
    }

    /// Steps all environments: `actions` has a row for each. If any action is refused, no environment is stepped.
    ///
    /// # Errors
    /// Arrays of wrong lengths, an action that is not finite, a missing reset, or the first error of an environment. In
    /// the last case the other environments have been stepped.
    pub fn step(&mut self, actions: &[f32], out: Stepped<'_>) -> Result<(), EnvError> {
        let n = self.environments.len();
        let width = self.task.observations().len();
        let choices = self.task.actions().len();
        length("actions", actions.len(), n * choices)?;
        length("observations", out.observations.len(), n * width)?;
        length("rewards", out.rewards.len(), n)?;
        length("truncated", out.truncated.len(), n)?;
        let autoreset = self.autoreset;
        let same_step = autoreset == Autoreset::SameStep;
        let mut unused = Vec::new();
        let last = match out.final_observations {
            Some(last) if same_step => last,
            _ => {
                unused.resize(if same_step { n * width } else { n }, 0.0);
                &mut unused[..]
            }
        };
        let last_width = if same_step { width } else { 1 };
        length("final_observations", last.len(), n * last_width)?;
        for (i, row) in actions.chunks(choices).enumerate() {
            check_actions(&self.task, i, row)?;
        }
        let each = (self.environments.par_iter_mut())
            .zip(actions.par_chunks(choices))
            .zip(out.observations.par_chunks_mut(width))
            .zip(out.rewards.par_iter_mut().zip(out.truncated.par_iter_mut()))
            .zip(last.par_chunks_mut(last_width))
            .enumerate()
            .with_min_len(AT_ONCE);
        self.threads.install(|| {
            first_error(each.filter_map(
                |(i, ((((environment, action), row), (reward, truncated)), last))| {
                    let result = if autoreset == Autoreset::NextStep && environment.has_ended() {
                        *reward = 0.0;
                        *truncated = false;
                        environment.begin(row)
                    } else {
                        environment.step(action, row).and_then(|outcome| {
                            *reward = outcome.reward;
                            *truncated = outcome.truncated;
                            if same_step && outcome.truncated {
                                last.copy_from_slice(row);
                                environment.begin(row)?;
                            }
                            Ok(())
                        })
                    };
                    result.err().map(|e| (i, e))
                },
            ))
        })
    }
}

/// The error of the environment with the lowest index, regardless of the order of threads.
fn first_error(errors: impl ParallelIterator<Item = (usize, EnvError)>) -> Result<(), EnvError> {
    match errors.min_by_key(|(index, _)| *index) {
        None => Ok(()),
        Some((index, e)) => Err(e.of(index)),
    }
}

fn length(name: &str, is: usize, wanted: usize) -> Result<(), SpecError> {
    if is == wanted {
        return Ok(());
    }
    Err(SpecError::new(format!("{name}: {is} numbers instead of {wanted}")))
}

#[cfg(test)]
#[path = "vector_tests.rs"]
mod tests;
