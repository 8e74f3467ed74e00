//! Failures of the command, with their exit codes.

use narrows_base::SpecError;

/// Reasons for a failure of the command.
#[derive(Debug)]
pub enum Failure {
    /// Invalid input: exit code 2.
    Input(String),
    /// An external failure, such as a full disk: exit code 1.
    Outside(String),
    /// A command run for the user ended with this exit code, which is passed on without a message.
    #[cfg(feature = "full")]
    Command(u8),
    /// Interrupted before any work was finished: exit code 130.
    Interrupted,
    /// Interrupted; the line names the results that are kept: exit code 130.
    Stopped(String),
}

#[cfg(feature = "full")]
impl Failure {
    /// The line of an error; empty for an interruption.
    pub fn line(&self) -> &str {
        match self {
            Failure::Input(line) | Failure::Outside(line) | Failure::Stopped(line) => line,
            Failure::Command(_) | Failure::Interrupted => "",
        }
    }
}

impl From<SpecError> for Failure {
    fn from(e: SpecError) -> Failure {
        Failure::Input(e.to_string())
    }
}
