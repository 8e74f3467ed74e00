//! `cargo xtask bench env`: environment steps per second, in Rust and from Python, beside the engine alone on the same
//! links. It only prints.

use crate::command::{cargo, run as call};
use crate::python;
use std::path::Path;
use std::process::Command;

/// Round-trip times in ms, environments, steps of each, rounds.
const RTTS_MS: [&str; 2] = ["20", "50"];
const ENVIRONMENTS: &str = "1024";
const STEPS: &str = "200";
const ROUNDS: &str = "5";

pub fn run() -> Result<(), String> {
    cargo(&["build", "--release", "-p", "narrows-env", "--example", "steps"])?;
    let target = crate::command::target();
    let engine = Path::new(&target).join("release/examples/steps");
    let engine = std::path::absolute(&engine).map_err(|e| format!("{}: {e}", engine.display()))?;
    for rtt in RTTS_MS {
        println!("Rust, RTT {rtt} ms:");
        call(Command::new(&engine).args([rtt, ENVIRONMENTS, STEPS, "0", ROUNDS]), "steps")?;
    }
    println!("Python:");
    let script = ["benchmarks/env_steps.py", "--num-envs", ENVIRONMENTS, "--steps", STEPS];
    python::release(|python| {
        call(python.args(script).args(["--rounds", ROUNDS, "--engine"]).arg(&engine), script[0])
    })
}
