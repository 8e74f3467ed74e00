//! Programs that a command starts.

use std::process::Command;

/// Runs cargo.
pub fn cargo(args: &[&str]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).args(args), &format!("cargo {}", args.join(" ")))
}

/// Runs a program. Messages name it by `shown`.
pub fn run(command: &mut Command, shown: &str) -> Result<(), String> {
    eprintln!("> {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("'{shown}' failed: {status}")),
        Err(e) => Err(format!("'{shown}' could not be started: {e}")),
    }
}
