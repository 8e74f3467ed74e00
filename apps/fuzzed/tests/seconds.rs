//! Runs every target for a moment, without a fuzzer: the inputs of `fuzz/seeds`, and mutations of them.
//! `NARROWS_INPUTS=N` sets their number.

use narrows_fuzzed::TARGETS;
use narrows_fuzzed::mutation::{RandomBytes, mutated, seeds, try_input};
use std::path::Path;

/// Number of mutations for each target. Targets that open connections or files are slower.
fn count(target: &str) -> u64 {
    let given = std::env::var("NARROWS_INPUTS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(match target {
        "tcp" => 60,
        "scenario" | "controllers" => 100,
        "service" | "client" | "endpoint" | "sealed" | "specs" => 400,
        _ => 5000,
    })
}

fn try_target(name: &str) {
    let target = TARGETS.iter().find(|t| t.0 == name).expect("a target").1;
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for seed in &seeds {
        try_input(name, target, seed);
    }
    let mut random = RandomBytes::new(1);
    for _ in 0..count(name) {
        try_input(name, target, &mutated(&seeds, &mut random));
    }
}

macro_rules! each {
    ($($name:ident)*) => {
        $(#[test] fn $name() { try_target(stringify!($name)); })*

        #[test]
        fn no_target_is_forgotten() {
            let here = [$(stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|t| t.0).collect::<Vec<_>>(), here);
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            files.sort();
            assert_eq!(files, here);
        }
    };
}

each! { client controllers endpoint frames groups media messages packets probe scenario sealed service specs tcp texts tunnel }
