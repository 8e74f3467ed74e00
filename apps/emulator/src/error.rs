//! Errors of this crate: one line of text each, for the user.

use std::fmt;
use std::io;

/// One line that names the missing or invalid thing and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(String);

impl Error {
    /// An error with this line as its text.
    pub fn new(line: impl Into<String>) -> Error {
        Error(line.into())
    }

    /// A failed system call: `what` names the action that failed, `e` adds the system's reason.
    pub fn system(what: impl fmt::Display, e: &io::Error) -> Error {
        let why = match e.raw_os_error() {
            // The suffix "(os error 1)" is of no use to the user.
            Some(_) => e.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
            None => e.to_string(),
        };
        Error(format!("{what}: {why}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
