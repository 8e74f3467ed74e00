//! Why a link could not be made: one line for whoever asked.

use std::fmt;
use std::io;

/// One line: what is missing or wrong, and how to get it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(String);

impl Error {
    /// With this line.
    pub fn new(line: impl Into<String>) -> Error {
        Error(line.into())
    }

    /// What could not be done, and why the system says so.
    pub fn system(what: impl fmt::Display, e: &io::Error) -> Error {
        let why = match e.raw_os_error() {
            // What the library adds ("(os error 1)") helps nobody.
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
