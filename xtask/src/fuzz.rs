//! Fuzzing: under libFuzzer if it is installed, else with the runner of `apps/fuzzed`.

use crate::command::cargo;
use crate::flags::Flags;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

const MANIFEST: &str = "fuzz/Cargo.toml";

/// Options of the command.
struct Options {
    seconds: u32,
    seed: Option<u64>,
    mutational: bool,
    target: Option<String>,
}

fn read(rest: &[String]) -> Result<Options, String> {
    let mut options = Options { seconds: 60, seed: None, mutational: false, target: None };
    let mut flags = Flags::new(rest);
    while let Some(word) = flags.advance() {
        match word {
            "--mutational" => options.mutational = true,
            "--target" => options.target = Some(flags.value()?.into()),
            "--seed" => {
                options.seed = Some(flags.number(0..=u64::MAX)?);
                options.mutational = true;
            }
            text => {
                options.seconds =
                    text.parse().map_err(|_| format!("'{text}' is not a number of seconds"))?;
            }
        }
    }
    Ok(options)
}

/// Fuzzes each target.
pub fn run(rest: &[String]) -> Result<(), String> {
    let options = read(rest)?;
    if !options.mutational && has_fuzzer() {
        let targets = targets()?;
        for target in targets.iter().filter(|t| options.target.as_ref().is_none_or(|one| one == *t))
        {
            let time = format!("-max_total_time={}", options.seconds);
            cargo(&["+nightly", "fuzz", "run", target, "--", &time])?;
        }
        return Ok(());
    }
    // A new seed each time, which is printed, so that a failure can be repeated.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_secs());
    let seed = options.seed.unwrap_or(now);
    eprintln!("without libFuzzer: inputs made of fuzz/seeds, seed {seed}");
    let seconds = options.seconds.to_string();
    let seed = seed.to_string();
    let mut args = vec!["run", "--quiet", "--locked", "--package", "narrows-fuzzed"];
    args.extend(["--bin", "mutational", "--", &seconds, &seed]);
    args.extend(options.target.as_deref());
    cargo(&args)
}

fn has_fuzzer() -> bool {
    let mut version = Command::new("cargo");
    version.args(["+nightly", "fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// The targets are the files of a folder.
fn targets() -> Result<Vec<String>, String> {
    let folder =
        std::fs::read_dir("fuzz/fuzz_targets").map_err(|e| format!("fuzz_targets: {e}"))?;
    let name = |e: std::io::Result<std::fs::DirEntry>| {
        e.ok()?.path().file_stem()?.to_str().map(str::to_string)
    };
    let mut names: Vec<String> = folder.filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// Checks that `fuzz/Cargo.lock` fits the crates. It belongs to a separate workspace, which other commands do not
/// check.
pub fn check_lock() -> Result<(), String> {
    let args = ["update", "--workspace", "--locked", "--manifest-path", MANIFEST];
    // If packages of the lock file are missing on this machine, the registry is used.
    let offline = cargo(&[&args[..], &["--offline"]].concat());
    offline.or_else(|_| cargo(&args)).map_err(|why| {
        format!(
            "{why}\nfuzz/Cargo.lock is stale: cargo update --workspace --manifest-path {MANIFEST}"
        )
    })
}
