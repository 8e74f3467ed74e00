//! Fuzzing: under libFuzzer if it is installed, else with the runner of `apps/fuzzed`.

use crate::command::{cargo, succeeds};
use crate::files::entries;
use crate::flags::Flags;
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
    if !options.mutational && succeeds("cargo", &["+nightly", "fuzz", "--version"]) {
        let all = entries("fuzz/fuzz_targets".as_ref())?;
        let targets = all.iter().filter_map(|file| file.file_stem()?.to_str());
        for target in targets.filter(|t| options.target.as_ref().is_none_or(|one| one == t)) {
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
