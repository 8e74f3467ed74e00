//! Developer commands, run as `cargo xtask COMMAND`.

#[cfg(feature = "measure")]
mod atlas;
#[cfg(feature = "measure")]
mod bench_networks;
#[cfg(feature = "measure")]
mod bench_paths;
#[cfg(feature = "measure")]
mod bench_paths_sockets;
#[cfg(feature = "measure")]
mod bench_transport;
mod bpf;
mod command;
mod crate_order;
mod deny;
mod files;
#[cfg(feature = "validate")]
mod findings;
mod flags;
mod fuzz;
mod members;
mod package;
mod packages;
mod python;
#[cfg(feature = "measure")]
mod real;
#[cfg(feature = "measure")]
mod sim_vs_real;
mod sources;
mod test;
#[cfg(feature = "validate")]
mod validate;
mod web;
#[cfg(feature = "measure")]
mod web_cases;

use command::{built, cargo, cargo_command, run};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask COMMAND

  test             all tests (--quick: only those of the libraries; python: only those of the Python package)
  check            all that a change must pass: format, lint, documentation, order of crates and files, prose,
                   names, dependencies, packages, validation up to date, eBPF programs if clang-14 is installed
  package          what users install, in target/package: static binary, deb, rpm, wheel, sources, checksums
                   (--try: install, use and remove each, as root; --debug: pack the development build)
  validate [ID…]   run the experiments and write docs/validation.md and their pages
                   (--check: fail if anything would differ, after a part that the commit selects; --all)
  bench networks   scores of controllers on networks drawn at random, in simulation (--set dev|check, --seed N,
                   --only PART,…, --protocols A,B, --traces DIR, --quick, --light, --each, --json FILE,
                   --before FILE: paired differences from such a file)
  atlas            every protocol on random networks, as pages and data in target/atlas; continues after an
                   interruption (--protocols A,B, --networks N: of each part, --seed N, --traces DIR, --out DIR,
                   --add FILE: a controller from outside, by its scorecard)
  bench paths      one stream over several paths, in simulation (--seeds N, --protocol P, --traces DIR, beginnings of
                   rows), or, with the word sockets, one file over two emulated lines
  bench transport  rrtp beside quinn and Hysteria 2, in real time; writes its sections of docs/benchmarks.md
  sim-vs-real      the same transfers in simulation and over real sockets; writes docs/sim-vs-real.md
                   (both: --links A,B, --protocols A,B, --runs N, --shorter F, --resume, --again, --any-commit)
  fuzz [SECONDS]   every target, under libFuzzer or with inputs made of fuzz/seeds (--seed N, --mutational,
                   --target NAME)
  faults           fault schedules between whole endpoints (--schedules N, --seed N: only that one)
  web              the page with the simulator in it: target/web/index.html (--check: compare its module with
                   the command, and click through it in Chromium)
  bpf, deny        parts of check: compile the eBPF programs; check licences and advisories
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((c, rest)) => (c.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match command {
        "test" if rest == ["python"] => python::test(),
        "test" if rest == ["--quick"] => test::quick(),
        "test" if rest.is_empty() => test::all(),
        "test" => {
            Err(format!("test takes no argument, --quick or python, and not '{}'", rest.join(" ")))
        }
        "check" => check(),
        "bpf" => bpf::make(),
        "package" => package::package(rest),
        "deny" => deny::check(),
        "validate" => validate(rest),
        "sim-vs-real" | "bench" | "atlas" => measure(&args),
        "web" => web::page(rest),
        "faults" => faults(rest),
        "fuzz" => fuzz::run(rest),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command '{other}'\n\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("xtask: {line}");
            ExitCode::FAILURE
        }
    }
}

/// Measures in a release build.
#[cfg(feature = "measure")]
fn measure(args: &[String]) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return in_release(&[], args);
    }
    let words: Vec<&str> = args.iter().take(2).map(String::as_str).collect();
    match words[..] {
        ["atlas", ..] => atlas::run(&args[1..]),
        ["bench", "networks"] => bench_networks::run(&args[2..]),
        ["bench", "paths"] => bench_paths::run_bench(&args[2..]),
        ["bench", "transport"] => bench_transport::run(&args[2..]),
        ["sim-vs-real", ..] => sim_vs_real::run(&args[1..]),
        _ => Err(format!("bench networks, bench paths or bench transport\n\n{HELP}")),
    }
}

#[cfg(not(feature = "measure"))]
fn measure(args: &[String]) -> Result<(), String> {
    in_release(&[], args)
}

/// Thousands of simulations, in a release build. The part of them that `--check` runs takes less time in the development
/// build than that release takes to be compiled.
fn validate(rest: &[String]) -> Result<(), String> {
    let is_part = rest == ["--check"];
    #[cfg(feature = "validate")]
    if is_part || !cfg!(debug_assertions) {
        return validate::run(rest);
    }
    if is_part {
        return run(Command::new(built("xtask")?).arg("validate").args(rest), "validate --check");
    }
    let args: Vec<String> = ["validate".to_string()].into_iter().chain(rest.to_vec()).collect();
    in_release(&["--no-default-features", "--features", "validate"], &args)
}

/// Runs a command of xtask in a release build with these features.
fn in_release(features: &[&str], args: &[String]) -> Result<(), String> {
    let mut all = vec!["run", "--quiet", "--release", "--package", "xtask"];
    all.extend(features);
    all.push("--");
    all.extend(args.iter().map(String::as_str));
    let status = cargo_command(&all).status();
    match status.map_err(|e| format!("cargo could not be started: {e}"))?.code() {
        Some(0) => Ok(()),
        // The command has said why.
        code => std::process::exit(code.unwrap_or(1)),
    }
}

fn check() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    crate_order::check(".".as_ref())?;
    sources::check(".".as_ref())?;
    fuzz::check_lock()?;
    packages::check_counts()?;
    packages::check_packaging()?;
    deny::check_changed()?;
    bpf::check()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    run(
        cargo_command(&["doc", "--workspace", "--no-deps", "--locked"])
            .args(["--features", "narrows-cli/full"])
            .env("RUSTDOCFLAGS", "-D warnings"),
        "cargo doc --workspace --no-deps (warnings are errors)",
    )?;
    validate(&["--check".into()])
}

/// Runs the schedules of `core/transport/tests/faults`.
fn faults(rest: &[String]) -> Result<(), String> {
    let (variable, number) = match rest {
        [] => ("NARROWS_SCHEDULES", "10000"),
        [flag, number] if flag == "--schedules" => ("NARROWS_SCHEDULES", number.as_str()),
        [flag, number] if flag == "--seed" => ("NARROWS_SCHEDULE", number.as_str()),
        _ => return Err("faults takes --schedules N or --seed N".into()),
    };
    number.parse::<u64>().map_err(|_| format!("'{number}' is not a number"))?;
    let args = [
        "test",
        "--release",
        "--package",
        "narrows-transport",
        "--test",
        "faults",
        "--",
        "--nocapture",
    ];
    run(
        cargo_command(&args).env(variable, number).env("RUST_BACKTRACE", "0"),
        &format!("{variable}={number} cargo {}", args.join(" ")),
    )
}
