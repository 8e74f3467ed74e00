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
const NOT_FETCHED: &str =
    "advisories: not checked, since their database (github.com/RustSec) cannot be fetched";

/// Checks the dependencies if their lock files have changed since the last check: cargo-deny takes minutes to build.
/// Without a network the advisories are left to `cargo xtask deny`, which CI runs.
pub fn check_changed() -> Result<(), String> {
    match hashes() {
        Some(now) if std::fs::read_to_string(CHECKED).is_ok_and(|then| then == now) => {
            eprintln!("dependencies: as in {CHECKED}, which cargo xtask deny wrote");
            Ok(())
        }
        _ => match check() {
            Err(why) if why == NOT_FETCHED => {
                eprintln!("{why}; {CHECKED} is left as it is");
                Ok(())
            }
            done => done,
        },
    }
}

/// A line for each input; `None` without git.
fn hashes() -> Option<String> {
    let out = Command::new("git").arg("hash-object").args(INPUTS).output().ok()?;
    let lines = String::from_utf8_lossy(&out.stdout);
    let lines = lines.lines().zip(INPUTS).map(|(hash, file)| format!("{hash} {file}\n"));
    out.status.success().then(|| lines.collect())
}

/// Checks the workspace and the two beside it, and writes `deny.checked`. A lock file that is out of date fails, and so
/// does a database of advisories that cannot be fetched.
pub fn check() -> Result<(), String> {
    let root = install()?;
    check_all(|manifest, rest| {
        let mut command = Command::new(format!("{root}/bin/cargo-deny"));
        // At its usual level it also lists every crate that is in order.
        command.args(["--log-level", "warn", "--manifest-path", manifest]);
        command.args(["--locked", "--config", "deny.toml"]).args(rest);
        run(&mut command, &format!("cargo deny --manifest-path {manifest} {}", rest.join(" ")))
    })?;
    hashes()
        .map_or(Ok(()), |now| std::fs::write(CHECKED, now).map_err(|e| format!("{CHECKED}: {e}")))
}

/// All checks, by calls of cargo-deny for a workspace.
fn check_all(deny: impl Fn(&str, &[&str]) -> Result<(), String>) -> Result<(), String> {
    // An exception that is no longer needed must be removed.
    deny(WORKSPACE, &["check", "--deny", "unmatched-skip", "bans", "licenses", "sources"])?;
    for manifest in OTHERS {
        deny(manifest, &["check", "licenses", "sources"])?;
    }
    deny(WORKSPACE, &["fetch", "db"]).map_err(|_| NOT_FETCHED)?;
    for manifest in [WORKSPACE].iter().chain(&OTHERS) {
        deny(manifest, &["check", "advisories"])?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn deny_without_advisory_database_is_an_error() {
        let failing_at = |word: &str| {
            check_all(|_, rest| if rest.contains(&word) { Err(word.into()) } else { Ok(()) })
        };
        assert_eq!(failing_at("fetch"), Err(NOT_FETCHED.into()));
        assert_eq!(failing_at("advisories"), Err("advisories".into()));
        assert_eq!(failing_at("nothing"), Ok(()));
    }

    /// A tag of an action or an image can be moved, a hash cannot.
    #[test]
    fn workflows_and_images_name_their_sources_by_hash() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
        let workflows = [".github/workflows/ci.yml", ".github/workflows/release.yml"].map(read);
        let actions = workflows.iter().flat_map(|text| text.lines());
        let actions = actions.filter_map(|line| line.split_once("uses: ").map(|found| found.1));
        let image = read("Dockerfile").replace("@sha256:", "@");
        let images = image.lines().filter(|l| l.starts_with("FROM ") && *l != "FROM scratch");
        let sources: Vec<&str> = actions.chain(images).collect();
        assert!(sources.len() > 10, "{sources:?}");
        for source in sources {
            let hash = source.split_once('@').and_then(|found| found.1.split(' ').next());
            let hash = hash.unwrap_or_default();
            assert!([40, 64].contains(&hash.len()), "{source}");
            assert!(hash.bytes().all(|b| b.is_ascii_hexdigit()), "{source}");
        }
        let checkouts = |text: &str| text.matches("uses: actions/checkout").count();
        for text in workflows {
            assert_eq!(checkouts(&text), text.matches("persist-credentials: false").count());
        }
    }
}
