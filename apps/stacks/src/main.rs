//! Real QUIC stacks in simulated networks.
//!
//! ```sh
//! narrows-stacks [--link LINK]... [--seconds S] [--bytes N] [--seed N] [--only NAME,NAME]
//! narrows-stacks bbr-cases
//! narrows-stacks networks [--networks N] [--mixes N] [--seed N] [--jobs N] [--json] [--only NAME,NAME]
//! ```

use narrows_stacks::networks::StackScores;
use narrows_stacks::registry;
use narrows_stacks::table::TransferTable;
use std::collections::VecDeque;
use std::process::ExitCode;

/// The networks of small seeds are those on which rrtp was developed.
const NETWORKS_SEED: u64 = 2_000_001;

/// The words of the command line that are left.
struct Words(VecDeque<String>);

impl Words {
    fn value(&mut self, flag: &str) -> Result<String, String> {
        self.0.pop_front().ok_or_else(|| format!("{flag} needs a value"))
    }

    fn number(&mut self, flag: &str, least: u64, most: u64) -> Result<u64, String> {
        let value = self.value(flag)?;
        let number = value.parse().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| format!("{flag}: '{value}' is not a number from {least} to {most}"))
    }

    fn names(&mut self, flag: &str) -> Result<Vec<String>, String> {
        Ok(self.value(flag)?.split(',').map(|name| name.trim().to_string()).collect())
    }
}

fn unknown<T>(flag: &str, known: &[&str]) -> Result<T, String> {
    Err(format!("unknown flag '{flag}': expected one of {}", known.join(", ")))
}

fn table(mut words: Words) -> Result<(), String> {
    let mut table = TransferTable { seconds: 15.0, seed: 1, ..TransferTable::default() };
    while let Some(flag) = words.0.pop_front() {
        match flag.as_str() {
            "--link" => table.links.push(words.value(&flag)?),
            "--only" => table.only.extend(words.names(&flag)?),
            "--seconds" => {
                let value = words.value(&flag)?;
                let seconds = value.parse().ok().filter(|s| (0.001..=1e6).contains(s));
                let wrong =
                    || format!("--seconds: '{value}' is not a number from 0.001 to 1000000");
                table.seconds = seconds.ok_or_else(wrong)?;
            }
            "--bytes" => table.bytes = Some(words.number(&flag, 1, 1 << 50)?),
            "--seed" => table.seed = words.number(&flag, 0, u64::MAX)?,
            _ => return unknown(&flag, &["--link", "--seconds", "--bytes", "--seed", "--only"]),
        }
    }
    table.print()
}

fn networks(mut words: Words) -> Result<(), String> {
    let only = Vec::new();
    let seed = NETWORKS_SEED;
    let mut networks = StackScores { only, networks: 10, mixes: 0, seed, jobs: 1, json: false };
    while let Some(flag) = words.0.pop_front() {
        match flag.as_str() {
            "--networks" => networks.networks = words.number(&flag, 0, 10_000)? as usize,
            "--mixes" => networks.mixes = words.number(&flag, 0, 10_000)? as usize,
            "--seed" => networks.seed = words.number(&flag, 0, u64::MAX)?,
            "--jobs" => networks.jobs = words.number(&flag, 1, 1024)? as usize,
            "--json" => networks.json = true,
            "--only" => networks.only.extend(words.names(&flag)?),
            _ => {
                let known = ["--networks", "--mixes", "--seed", "--jobs", "--json", "--only"];
                return unknown(&flag, &known);
            }
        }
    }
    if networks.networks + networks.mixes == 0 {
        return Err("--networks 0 needs some --mixes".into());
    }
    networks.print()
}

fn bbr_cases(words: &Words) -> Result<(), String> {
    match words.0.front() {
        Some(other) => Err(format!("'{other}': bbr-cases has no options")),
        None => {
            narrows_stacks::bbr_cases::print();
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    let mut words = Words(std::env::args().skip(1).collect());
    let registry = match registry() {
        Ok(registry) => registry,
        Err(e) => {
            eprintln!("narrows-stacks: {e}");
            return ExitCode::FAILURE;
        }
    };
    let installed = registry.install().map_err(|e| e.to_string());
    let is_subcommand = words.0.front().is_some_and(|first| !first.starts_with('-'));
    let subcommand = if is_subcommand { words.0.pop_front() } else { None };
    let done = installed.and_then(|()| match subcommand.as_deref() {
        None => table(words),
        Some("networks") => networks(words),
        Some("bbr-cases") => bbr_cases(&words),
        Some(other) => Err(format!("unknown subcommand '{other}': expected networks or bbr-cases")),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("narrows-stacks: {e}");
            ExitCode::from(2)
        }
    }
}
