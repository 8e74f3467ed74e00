//! Programs that a command starts.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Runs cargo.
pub fn cargo(args: &[&str]) -> Result<(), String> {
    run(&mut cargo_command(args), &format!("cargo {}", args.join(" ")))
}

/// Cargo without the variables that describe xtask: build scripts run again when these change, as between this command
/// and plain cargo, and their dependents would be compiled again.
pub fn cargo_command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(args);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Builds all programs and tests: alone, or without `--tests`, crates would be built again with fewer features.
pub const BUILD: [&str; 7] =
    ["build", "--workspace", "--locked", "--lib", "--bins", "--examples", "--tests"];

/// A program of the workspace's development build, with all features.
pub fn built(program: &str) -> Result<PathBuf, String> {
    cargo(&BUILD)?;
    Ok(Path::new(&target()).join("debug").join(program))
}

/// Number of threads that the machine runs at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The folder of build results.
pub fn target() -> String {
    std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into())
}

/// Whether a program succeeds with these arguments. Its output is not shown.
pub fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    succeeds(program, &["--version"])
}

/// Whether Rust can compile for a target.
pub fn has_target(triple: &str) -> bool {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let folder = output(&rustc, &["--print", "target-libdir", "--target", triple]);
    folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// The output of a program that succeeds.
pub fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let out = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&out.stderr).trim())),
    }
}

/// Runs a program, and prints how long it took. Messages name it by `shown`.
pub fn run(command: &mut Command, shown: &str) -> Result<(), String> {
    eprintln!("> {shown}");
    let begun = Instant::now();
    let status = command.status();
    report(status, begun, shown)
}

/// [`run`], but the output follows when the program has ended, so that programs that run at once do not mix theirs.
pub fn run_apart(command: &mut Command, shown: &str) -> Result<(), String> {
    let begun = Instant::now();
    let output = command.output();
    let status = output.map(|output| {
        // If the output cannot be shown, the status still says whether the program succeeded.
        let _ = io::stdout().write_all(&output.stdout);
        let _ = io::stderr().write_all(&output.stderr);
        output.status
    });
    report(status, begun, shown)
}

fn report(status: io::Result<ExitStatus>, begun: Instant, shown: &str) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => {
            eprintln!("< {:.0} s: {shown}", begun.elapsed().as_secs_f64());
            Ok(())
        }
        Ok(status) => Err(format!("'{shown}' failed: {status}")),
        Err(e) => Err(format!("'{shown}' could not be started: {e}")),
    }
}
