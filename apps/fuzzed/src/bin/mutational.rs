//! Fuzzing without a fuzzer, on any toolchain: `mutational SECONDS SEED [TARGET…]` runs each target with mutated seeds
//! for this time, one on each core. Equal seeds give a target equal inputs in the same order. An input that panics is printed, to be added to
//! `fuzz/seeds`.

use narrows_fuzzed::mutation::{RandomBytes, mutated, seeds, try_input};
use narrows_fuzzed::{TARGETS, Target};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A target and its name.
type Named = (&'static str, Target);

/// Parses seconds, seed and targets.
fn read(args: &[String]) -> Result<(u64, u64, Vec<Named>), String> {
    let usage = || "usage: mutational SECONDS SEED [TARGET…]".to_string();
    let number = |at: usize| {
        let text = args.get(at).ok_or_else(usage)?;
        text.parse::<u64>().map_err(|_| format!("'{text}' is no whole number: {}", usage()))
    };
    let chosen = args.get(2..).unwrap_or_default();
    let known = || TARGETS.iter().map(|t| t.0).collect::<Vec<_>>().join(", ");
    if let Some(other) = chosen.iter().find(|c| TARGETS.iter().all(|t| t.0 != c.as_str())) {
        return Err(format!("unknown target '{other}'; there is {}", known()));
    }
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|c| c == name);
    let targets = TARGETS.iter().filter(|t| is_chosen(t.0)).copied().collect();
    Ok((number(0)?, number(1)?, targets))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, seed, targets) = match read(&args) {
        Ok(read) => read,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    fuzz(*target, seconds, seed);
                }
            });
        }
    });
    ExitCode::SUCCESS
}

/// Runs one target for this many seconds.
fn fuzz((name, target): Named, seconds: u64, seed: u64) {
    let seeds = seeds(name);
    let mut random = RandomBytes::new(seed);
    let begun = Instant::now();
    let mut count = 0u64;
    // Inputs are kept for a while as seeds of others, so that changes accumulate.
    let mut pool = seeds.clone();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let bytes = mutated(&pool, &mut random);
        try_input(name, target, &bytes);
        count += 1;
        if count.is_multiple_of(16) && bytes.len() < 2000 {
            if pool.len() < seeds.len() + 256 {
                pool.push(bytes);
            } else {
                let at = seeds.len() + random.below(256);
                pool[at] = bytes;
            }
        }
    }
    println!("{name}: {count} inputs of seed {seed} in {seconds} s");
}
