//! Child processes of the tests, and the command with a home of its own, so that the user's keys are not touched.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Output};

/// A child process that is killed when this is dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Sends SIGINT.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends the signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        let to = self.0.id().to_string();
        drop(Command::new("kill").args(["-s", name, &to]).status());
    }
}

impl Deref for Process {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command in this home.
pub(crate) fn narrows(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.env("HOME", home).env("XDG_CONFIG_HOME", home.join("config")).current_dir(home);
    command
}

/// Runs the command in this home to its end.
pub(crate) fn run(home: &Path, args: &[&str]) -> Output {
    narrows(home).args(args).output().unwrap()
}
