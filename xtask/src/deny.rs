//! Checks of the dependencies, by cargo-deny and `deny.toml`.

use crate::command::{cargo_command, output, run, succeeds};
use crate::files::write;
use std::process::Command;

/// Required version; another one is replaced, since names of checks change between versions.
const VERSION: &str = "0.20.2";

const WORKSPACE: &str = "Cargo.toml";
/// Workspaces of their own, each with its lock file.
const OTHERS: [&str; 2] = ["fuzz/Cargo.toml", "tools/quinn-speed/Cargo.toml"];
/// The files that the result depends on, except for the advisories.
const INPUTS: [&str; 4] =
    ["Cargo.lock", "deny.toml", "fuzz/Cargo.lock", "tools/quinn-speed/Cargo.lock"];
/// For each of these checks, git's hashes of these files when it last succeeded.
const CHECKED: &str = "deny.checked";
/// Checks that need no network.
const LOCAL: &str = "bans, licenses, sources";
const ADVISORIES: &str = "advisories";
/// The database of advisories, as cargo-deny's own default.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";
const NOT_FETCHED: &str =
    "advisories: not checked, since their database (github.com/RustSec) cannot be fetched";

/// Checks the dependencies if their lock files have changed since the last check: cargo-deny takes minutes to build.
/// Without a network the advisories are left to `cargo xtask deny`, which CI runs.
pub fn check_changed() -> Result<(), String> {
    let now = hashes();
    let then = std::fs::read_to_string(CHECKED).unwrap_or_default();
    let is_checked =
        |what: &str| now.as_ref().is_some_and(|now| then.contains(&section(what, now)));
    if !is_checked(LOCAL) {
        return match check() {
            Err(why) if why == NOT_FETCHED => {
                eprintln!("{why}");
                Ok(())
            }
            done => done,
        };
    }
    if is_checked(ADVISORIES) {
        eprintln!("dependencies: as in {CHECKED}, which cargo xtask deny wrote");
        return Ok(());
    }
    if succeeds("git", &["ls-remote", DATABASE, "HEAD"]) {
        return check();
    }
    eprintln!("dependencies: {LOCAL} as in {CHECKED}; {NOT_FETCHED}");
    Ok(())
}

/// A part of `deny.checked`.
fn section(what: &str, hashes: &str) -> String {
    format!("[{what}]\n{hashes}")
}

/// A line for each input; `None` without git.
fn hashes() -> Option<String> {
    let hashes = output("git", &[&["hash-object"][..], &INPUTS].concat()).ok()?;
    Some(hashes.lines().zip(INPUTS).map(|(hash, file)| format!("{hash} {file}\n")).collect())
}

/// Checks the workspace and the two beside it, and writes each passed check to `deny.checked`. A lock file that is out of
/// date fails, and so does a database of advisories that cannot be fetched.
pub fn check() -> Result<(), String> {
    let root = install()?;
    let deny = |manifest: &str, rest: &[&str]| {
        let mut command = Command::new(format!("{root}/bin/cargo-deny"));
        // At its usual level it also lists every crate that is in order.
        command.args(["--log-level", "warn", "--manifest-path", manifest]);
        command.args(["--locked", "--config", "deny.toml"]).args(rest);
        run(&mut command, &format!("cargo deny --manifest-path {manifest} {}", rest.join(" ")))
    };
    check_all(deny, record)
}

/// Replaces a part of `deny.checked` by the present hashes.
fn record(what: &str) -> Result<(), String> {
    let Some(now) = hashes() else { return Ok(()) };
    let then = std::fs::read_to_string(CHECKED).unwrap_or_default();
    let other = if what == LOCAL { ADVISORIES } else { LOCAL };
    let kept = then.split_once(&format!("[{other}]\n")).map_or("", |(_, rest)| rest);
    let kept: String =
        kept.lines().take_while(|l| !l.starts_with('[')).map(|l| format!("{l}\n")).collect();
    let parts = if what == LOCAL { [now, kept] } else { [kept, now] };
    let [local, advisories] = parts;
    let text = section(LOCAL, &local) + &section(ADVISORIES, &advisories);
    write(CHECKED, text)
}

/// All checks, by calls of cargo-deny for a workspace; `passed` gets the name of each that passed.
fn check_all(
    deny: impl Fn(&str, &[&str]) -> Result<(), String>,
    passed: impl Fn(&str) -> Result<(), String>,
) -> Result<(), String> {
    // An exception that is no longer needed must be removed.
    deny(WORKSPACE, &["check", "--deny", "unmatched-skip", "bans", "licenses", "sources"])?;
    for manifest in OTHERS {
        deny(manifest, &["check", "licenses", "sources"])?;
    }
    passed(LOCAL)?;
    deny(WORKSPACE, &["fetch", "db"]).map_err(|_| NOT_FETCHED)?;
    for manifest in [WORKSPACE].iter().chain(&OTHERS) {
        deny(manifest, &["check", "advisories"])?;
    }
    passed(ADVISORIES)
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
            let passed = std::cell::RefCell::new(Vec::new());
            let done = check_all(
                |_, rest| if rest.contains(&word) { Err(word.into()) } else { Ok(()) },
                |what| {
                    passed.borrow_mut().push(what.to_string());
                    Ok(())
                },
            );
            (done, passed.into_inner().len())
        };
        assert_eq!(failing_at("bans"), (Err("bans".into()), 0));
        assert_eq!(failing_at("fetch"), (Err(NOT_FETCHED.into()), 1));
        assert_eq!(failing_at("advisories"), (Err("advisories".into()), 1));
        assert_eq!(failing_at("nothing"), (Ok(()), 2));
    }

    /// A tag of an action or an image can be moved, a hash cannot.
    #[test]
    fn workflows_and_images_name_their_sources_by_hash() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
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
