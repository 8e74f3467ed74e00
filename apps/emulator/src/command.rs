//! Programs in a namespace.

use crate::error::Error;
use crate::system::namespace::Namespace;
use crate::system::own_files;
use crate::system::unsafe_calls::with_all_signals;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Child, Command};

/// Starts a program in a namespace. `files` are pairs: the program sees the second file in place of the first.
///
/// # Errors
/// The program cannot be started.
pub fn spawn(
    command: &mut Command,
    namespace: &Namespace,
    files: &[(PathBuf, PathBuf)],
) -> Result<Child, Error> {
    with_all_signals(command);
    let name = command.get_program().to_string_lossy().into_owned();
    namespace.enter(|| {
        own_files::replace(files)?;
        command.spawn().map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(format!("{name}: command not found")),
            _ => Error::system(format_args!("cannot start {name}"), &e),
        })
    })?
}
