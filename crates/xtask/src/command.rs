//! Programs that a command starts.

use std::process::Command;

/// Runs cargo.
pub fn cargo(args: &[&str]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).args(args), &format!("cargo {}", args.join(" ")))
}

/// The folder of build results.
pub fn target() -> String {
    std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into())
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
