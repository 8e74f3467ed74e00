//! Failures of the command, with their exit codes.

use narrows_base::SpecError;

/// Why the command failed.
pub enum Failure {
    /// The input is wrong: exit code 2.
    Input(String),
    /// Something outside failed, such as a full disk: exit code 1.
    Outside(String),
    /// A command that was run for the user ended with this exit code: nothing is said, and it is passed on.
    Command(u8),
    /// Interrupted before anything was finished: exit code 130.
    Interrupted,
    /// Interrupted; the line says what is kept: exit code 130.
    Stopped(String),
}

impl From<SpecError> for Failure {
    fn from(e: SpecError) -> Failure {
        Failure::Input(e.to_string())
    }
}
