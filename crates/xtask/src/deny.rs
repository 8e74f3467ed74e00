//! Checks of the dependencies, by cargo-deny and `deny.toml`.

use crate::command::{cargo_command, run};
use std::process::Command;

/// Required version; another one is replaced, since names of checks change between versions.
const VERSION: &str = "0.20.2";

const WORKSPACE: &str = "Cargo.toml";
/// Workspaces of their own, each with its lock file.
const OTHERS: [&str; 2] = ["fuzz/Cargo.toml", "tools/quinn-speed/Cargo.toml"];
/// The files that the result depends on, except for the advisories.
const INPUTS: [&str; 4] =
    ["Cargo.lock", "deny.toml", "fuzz/Cargo.lock", "tools/quinn-speed/Cargo.lock"];
/// git's hashes of these files when the check last succeeded.
const CHECKED: &str = "deny.checked";

/// Checks the dependencies if their lock files have changed since the last check: cargo-deny takes minutes to build.
pub fn check_changed() -> Result<(), String> {
    match hashes() {
        Some(now) if std::fs::read_to_string(CHECKED).is_ok_and(|then| then == now) => {
            eprintln!("dependencies: as in {CHECKED}, which cargo xtask deny wrote");
            Ok(())
        }
        _ => check(),
    }
}

/// A line for each input; `None` without git.
fn hashes() -> Option<String> {
    let out = Command::new("git").arg("hash-object").args(INPUTS).output().ok()?;
    let lines = String::from_utf8_lossy(&out.stdout);
    let lines = lines.lines().zip(INPUTS).map(|(hash, file)| format!("{hash} {file}\n"));
    out.status.success().then(|| lines.collect())
}

/// Checks the workspace and the two beside it, and writes `deny.checked`. A lock file that is out of date fails, too.
pub fn check() -> Result<(), String> {
    check_all()?;
    hashes()
        .map_or(Ok(()), |now| std::fs::write(CHECKED, now).map_err(|e| format!("{CHECKED}: {e}")))
}

fn check_all() -> Result<(), String> {
    let root = install()?;
    let deny = |manifest: &str, rest: &[&str]| {
        let mut command = Command::new(format!("{root}/bin/cargo-deny"));
        // At its usual level it also lists every crate that is in order.
        command.args(["--log-level", "warn", "--manifest-path", manifest]);
        command.args(["--locked", "--config", "deny.toml"]).args(rest);
        (command, format!("cargo deny --manifest-path {manifest} {}", rest.join(" ")))
    };
    let check = |manifest, rest: &[&str]| {
        let (mut command, shown) = deny(manifest, rest);
        run(&mut command, &shown)
    };

    // An exception that is no longer needed must be removed.
    check(WORKSPACE, &["check", "--deny", "unmatched-skip", "bans", "licenses", "sources"])?;
    for manifest in OTHERS {
        check(manifest, &["check", "licenses", "sources"])?;
    }

    let fetched = deny(WORKSPACE, &["fetch", "db"]).0.output();
    if !fetched.is_ok_and(|o| o.status.success()) {
        eprintln!(
            "advisories: not checked, since their database (github.com/RustSec) cannot be fetched"
        );
        return Ok(());
    }
    for manifest in [WORKSPACE].iter().chain(&OTHERS) {
        check(manifest, &["check", "advisories"])?;
    }
    Ok(())
}

/// Installs the required version unless it is present. Returns its folder.
fn install() -> Result<String, String> {
    let target = crate::command::target();
    let root = format!("{target}/tools");
    // Unoptimised: it runs for seconds and would build for many minutes.
    let args = ["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--quiet"];
    run(
        cargo_command(&args).args(["--root", &root]).env("CARGO_PROFILE_DEV_DEBUG", "0"),
        &format!("cargo {} --root {root}", args.join(" ")),
    )?;
    Ok(root)
}
