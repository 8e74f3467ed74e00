//! `cargo xtask test`: every test of the workspace, several programs at once.

use crate::command::{BUILD, cargo_command, cores, run_apart};
use crate::{python, web};
use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Tests of the kernel's list of congestion controllers, each of which expects no other controllers of Narrows.
const KERNEL: [&str; 2] = ["apps/cli/tests/all", "apps/kernel/src/lib"];

/// A test that compares delays over real sockets with the simulator's: it runs before the others, alone.
const REAL_TIME: &str = "apps/speed/tests/sim_vs_real";

/// A program, and its name in messages.
type Program = (Command, String);

/// Runs all tests.
///
/// # Errors
/// A failed build, or the failed programs.
pub fn all() -> Result<(), String> {
    let programs = built()?;
    python::place("debug")?;
    let (alone, programs): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|p| p.1 == REAL_TIME);
    let first = at_once(VecDeque::from([alone]));
    let cargo = |args: &[&str]| (cargo_command(args), format!("cargo {}", args.join(" ")));
    let (kernel, rest): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|p| KERNEL.iter().any(|k| p.1.starts_with(k)));
    let python = cargo(&["xtask", "test", "python"]);
    let documentation = cargo(&["test", "--workspace", "--locked", "--doc"]);
    // One core compiles the page's module for a minute.
    let module = web::is_testable().then(|| (web::module(), "the page's module".to_string()));
    let mut groups = VecDeque::from([kernel, vec![python], module.into_iter().collect()]);
    groups.extend(rest.into_iter().map(|program| vec![program]));
    groups.push_back(vec![documentation]);
    let others = at_once(groups);
    first.and(others).and_then(|()| web::tests())
}

/// Runs the unit and property tests of the libraries, without those that load programs into the kernel.
///
/// # Errors
/// A failed build, or the failed programs.
pub fn quick() -> Result<(), String> {
    let is_quick = |p: &Program| p.1.ends_with("/src/lib") && !KERNEL.iter().any(|k| p.1 == *k);
    at_once(built()?.into_iter().filter(is_quick).map(|program| vec![program]).collect())
}

/// Builds all test programs, all commands, and the Python module: at once, since alone, or without tests, crates would be
/// built again with fewer features. Returns the test programs, integration tests first: they wait for the longest time.
fn built() -> Result<Vec<Program>, String> {
    let args = [&BUILD[..], &["--message-format", "json-render-diagnostics"]].concat();
    eprintln!("> cargo {}", args.join(" "));
    let out = cargo_command(&args).stderr(Stdio::inherit()).output().map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(format!("'cargo {}' failed: {}", args.join(" "), out.status));
    }
    let lines = String::from_utf8_lossy(&out.stdout);
    let mut programs: Vec<Program> = lines.lines().filter_map(program).collect();
    programs.sort_by_key(|p| !p.1.contains("/tests/"));
    Ok(programs)
}

/// A test program from a message of cargo.
fn program(message: &str) -> Option<Program> {
    let text = |key: &str| {
        let (_, rest) = message.split_once(&format!("\"{key}\":\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let (profile, _) = message.split_once("\"profile\":{")?.1.split_once('}')?;
    let is_test = profile.contains("\"test\":true");
    let folder = Path::new(text("manifest_path")?).parent()?;
    let mut command = Command::new(text("executable").filter(|_| is_test)?);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    let root = std::env::current_dir().ok()?;
    let source = Path::new(text("src_path")?).strip_prefix(root).ok()?;
    Some((command, source.with_extension("").display().to_string()))
}

/// Runs the groups, each in its order, as many at once as there are cores: a program has as many threads, but many tests
/// wait for sockets, processes and the kernel. The others run after a failure, too.
fn at_once(groups: VecDeque<Vec<Program>>) -> Result<(), String> {
    let groups = Mutex::new(groups);
    let failed = Mutex::new(Vec::new());
    let next = || groups.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| {
                while let Some(group) = next() {
                    for (mut command, name) in group {
                        if let Err(why) = run_apart(&mut command, &name) {
                            failed.lock().unwrap_or_else(PoisonError::into_inner).push(why);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Libraries and commands are built, too, and are no tests.
    #[test]
    fn test_programs_are_found_among_the_messages_of_a_build() {
        let root = std::env::current_dir().unwrap();
        let root = root.display();
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"manifest_path":"{root}/core/x/Cargo.toml","target":{{"src_path":"{root}/core/x/src/lib.rs","test":true}},"profile":{{"opt_level":"1","test":{test}}},"executable":{executable}}}"#
            )
        };
        let (command, name) = program(&message(true, "\"/target/x-1\"")).unwrap();
        assert_eq!(
            (command.get_program().to_str(), &*name),
            (Some("/target/x-1"), "core/x/src/lib")
        );
        assert!(command.get_current_dir().unwrap().ends_with("core/x"));
        for other in [message(false, "\"/target/x\""), message(true, "null"), "{}".into()] {
            assert!(program(&other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_failure_is_named_and_the_others_run() {
        let sh = |line: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            (command, line.to_string())
        };
        let folder = std::env::temp_dir().join(format!("narrows-at-once-{}", std::process::id()));
        let made = format!("mkdir {}", folder.display());
        let groups = vec![vec![sh("exit 3"), sh(&made)], vec![sh("exit 0")]];
        let why = at_once(groups.into()).unwrap_err();
        assert!(why.contains("'exit 3' failed") && !why.contains("mkdir"), "{why}");
        std::fs::remove_dir(folder).unwrap();
    }
}
