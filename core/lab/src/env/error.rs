//! Errors that end an environment.

use narrows_base::SpecError;
use narrows_sim::SimError;
use std::fmt;

/// Why an environment could not be made, reset or stepped.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EnvError {
    /// A setting, an action or an array is invalid; one line names the expected form.
    Spec(SpecError),
    /// The simulation of this environment (its number in the vector) was aborted.
    Simulation(usize, SimError),
    /// It was stepped before it was reset.
    NotReset(usize),
    /// It was stepped after its episode's last step.
    Ended(usize),
}

impl From<SpecError> for EnvError {
    fn from(e: SpecError) -> EnvError {
        EnvError::Spec(e)
    }
}

impl EnvError {
    /// The same error of environment number `index`.
    pub(crate) fn of(self, index: usize) -> EnvError {
        match self {
            EnvError::Spec(e) => EnvError::Spec(e),
            EnvError::Simulation(_, e) => EnvError::Simulation(index, e),
            EnvError::NotReset(_) => EnvError::NotReset(index),
            EnvError::Ended(_) => EnvError::Ended(index),
        }
    }
}

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnvError::Spec(e) => e.fmt(f),
            EnvError::Simulation(index, e) => write!(f, "environment {index}: {e}"),
            EnvError::NotReset(index) => {
                write!(f, "environment {index} has not been reset: call reset() before step()")
            }
            EnvError::Ended(index) => write!(
                f,
                "environment {index}: its episode ended with the last step: call reset() before step()"
            ),
        }
    }
}
impl std::error::Error for EnvError {}
