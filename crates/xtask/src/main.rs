//! Developer commands, run as `cargo xtask COMMAND`.

#[cfg(feature = "measure")]
mod all_cores;
#[cfg(feature = "measure")]
mod bench;
#[cfg(feature = "measure")]
mod bench_env;
#[cfg(feature = "measure")]
mod bench_hysteria;
#[cfg(all(feature = "measure", target_os = "linux"))]
mod bench_kernel;
#[cfg(all(feature = "measure", target_os = "linux"))]
mod bench_link;
#[cfg(feature = "measure")]
mod bench_media;
#[cfg(feature = "measure")]
mod bench_networks;
#[cfg(feature = "measure")]
mod bench_probe;
#[cfg(feature = "measure")]
mod bench_small;
#[cfg(feature = "measure")]
mod bench_transport;
mod bpf;
mod command;
mod crate_order;
mod deny;
mod file_order;
#[cfg(feature = "validate")]
mod findings;
mod flags;
mod fuzz;
mod members;
mod package;
mod packages;
mod prose;
mod python;
#[cfg(feature = "measure")]
mod real;
#[cfg(feature = "measure")]
mod section;
#[cfg(feature = "measure")]
mod sim_vs_real;
mod test;
#[cfg(feature = "validate")]
mod validate;

use command::{cargo, cargo_command, run};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test             all tests: unit, property, integration, documentation, and those of the Python package
  test --quick     only the unit and property tests of the libraries
  test python      only those of the Python package, in a virtual environment below the target folder: pytest, mypy, ruff,
                   and the reference of its names in target/python/reference
  check            format, lint (warnings are errors), documentation, the order of crates and of their files,
                   dependencies and their number, packages to publish, validation up to date; where clang-14 is
                   installed, that the shipped eBPF programs are what their source compiles to
  bpf              compile the eBPF programs of crates/kernel (clang-14 and llvm-14); check compares them
  prose [PATH…]    how many sentences of each page and crate are long or have a vague subject, which comments
                   repeat a name, and which type names are defined twice (PATH: list the sentences below it)
  package          what users install, in target/package: static binary, deb, rpm, wheel, sources, checksums
                   (--try: install, use and remove each in a scratch system, as root; --debug: pack the
                   development build, as .ci/run does: the wheel is for this system, and the crates are
                   only checked)
  deny             licences, duplicates, sources and advisories of all dependencies, by deny.toml; installs
                   cargo-deny into the target folder; check does so if a lock file is not the one in
                   deny.checked, which this writes
  validate [ID…]   run the experiments and write docs/validation.md and their pages
                   (--check: fail if anything written would differ; without names it runs what has changed and
                   a part that the commit selects, with --all everything, as the release workflow does)
  bench            time the engine, beside ns-2 where it is installed; writes docs/benchmarks.md
  sim-vs-real      the same transfers in simulation and over real sockets, through the relay; writes
                   docs/sim-vs-real.md (--kernel, first: the kernel's TCP through emulated links beside preset
                   linux, as root; writes its section)
  faults           fault schedules between whole endpoints, some beside hostile ones, in a release build
                   (--schedules N: so many, 10000 unless told; --seed N: only that one, step by step)
  bench transport  our transport beside quinn (tools/quinn-speed): CPU over loopback, and four links
                   through the same relay; writes its section of docs/benchmarks.md
  bench hysteria   our transport beside both modes of Hysteria 2 (tools/hysteria-speed, built where Go is) at 1 to 30%
                   loss, through the same relay; writes its section of docs/benchmarks.md
  bench networks   controllers on networks drawn at random, in simulation: scores with intervals, and paired
                   differences (--set dev|check or --seed N; --only networks|mixes|transfers|traces|named;
                   --protocols A,B; --traces DIR: recorded links; --quick: ten CPU minutes; --each: every network;
                   --json FILE keeps the figures, --before FILE shows the differences from such a file;
                   --light: without the fifth of each part that needs the most time)
  bench networks --without A,B | --scale NAME=F,F
                   rrtp without mechanisms (list; all: each in turn), with a constant times a factor (all=F,F: each in
                   turn; random=R: all within 1 ± R, --draws N times), beside rrtp: builds xtask with these variants.
                   A file of --json is continued; --write writes the tables of docs/benchmarks.md and
                   docs/rrtp-congestion-control.md
  bench link       packets per second through an emulated link, and how late they leave it, as root (--windows N: of
                   10 s each, 10 unless told; --write writes its section of docs/link.md)
  bench kernel     controllers in the kernel's TCP over emulated links, beside their simulation; delay and cost of
                   their answers; as root, some minutes (--only goals,table,delay,cost,many; --controllers A,B;
                   --seconds N, --at-once N: of the table; --write writes the section of docs/kernel.md)
  bench small      what small requests, streams and messages cost beside quinn, in one process, in turns
                   (tools/small-requests; --turns N: 20 unless told); writes its section of
                   docs/benchmarks.md
  bench env        steps per second of environments for learning beside the engine alone, in Rust and from Python:
                   prints, a minute or two
  bench probe      how near narrows probe is to twelve simulated links, and what compare says of the links that it
                   found (--seeds N: 10 unless told; --write writes its section of docs/probe.md)
  fuzz [SECONDS]   fuzz every target for so long (60): under libFuzzer where a nightly toolchain and
                   cargo-fuzz are, else with inputs made of fuzz/seeds (--seed N: which; --mutational: so
                   in any case; --target NAME: only this one)

sim-vs-real, bench transport and bench hysteria take real time and know
  --links A,B      only these (loopback, i, ii, iii, iv, clean, bursts, 1%: what the command has)
  --protocols A,B  only these (of bench transport: rrtp, rrtp-told, rrtp+cubic, quinn-cubic, quinn-bbr; of bench
                   hysteria: rrtp, rrtp-told, hysteria-bbr, hysteria-brutal)
  --runs N         seeds 1 to N (3)
  --budget RATE    runs at once whose links' rates add up to this at most (45Mbit/s); what is above
                   runs alone
  --shorter F      durations times F
  --resume         go on where a measurement was killed: each run is kept in the target folder, with
                   its commit, in sim-vs-real.jsonl, bench-transport.jsonl and bench-hysteria.jsonl
  --again          measure what is chosen again and keep the other rows
  --any-commit     let rows of other commits count
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
        "sim-vs-real" | "bench" => measure(&args),
        "faults" => faults(rest),
        "prose" => prose::report(".".as_ref(), rest),
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

/// Measurements by name, each with whether it needs a release build: for time, or for thousands of simulations.
#[cfg(feature = "measure")]
type BenchEntry = (&'static str, bool, fn(&[String]) -> Result<(), String>);
#[cfg(feature = "measure")]
const MEASUREMENTS: &[BenchEntry] = &[
    // The measured programs are outside the workspace.
    ("bench small", false, bench_small::run),
    ("bench env", false, |_| bench_env::run()),
    ("bench probe", false, bench_probe::run),
    ("bench hysteria", true, bench_hysteria::run),
    #[cfg(target_os = "linux")]
    ("bench kernel", true, bench_kernel::run),
    #[cfg(target_os = "linux")]
    ("bench link", true, bench_link::run),
    ("bench networks", true, bench_networks::run),
    ("bench transport", true, bench_transport::run),
    ("sim-vs-real", true, sim_vs_real::run),
];

#[cfg(feature = "measure")]
fn measure(args: &[String]) -> Result<(), String> {
    let of = |words: usize| args.get(..words).map(|words| words.join(" "));
    let named = |m: &&BenchEntry| of(1).as_deref() == Some(m.0) || of(2).as_deref() == Some(m.0);
    let (name, release, run) =
        MEASUREMENTS.iter().find(named).copied().unwrap_or(("bench", true, |rest| match rest {
            [] => bench::run(),
            [odd, ..] => Err(format!("bench has no '{odd}'\n\n{HELP}")),
        }));
    if release && cfg!(debug_assertions) {
        return in_release(&[], args);
    }
    run(args.get(name.split(' ').count()..).unwrap_or_default())
}

#[cfg(not(feature = "measure"))]
fn measure(args: &[String]) -> Result<(), String> {
    in_release(&[], args)
}

/// Thousands of simulations: not in a debug build.
fn validate(rest: &[String]) -> Result<(), String> {
    #[cfg(feature = "validate")]
    if !cfg!(debug_assertions) {
        return validate::run(rest);
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
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    run(
        cargo_command(&["doc", "--workspace", "--no-deps", "--locked"])
            .args(["--features", "narrows-cli/full"])
            .env("RUSTDOCFLAGS", "-D warnings"),
        "cargo doc --workspace --no-deps (warnings are errors)",
    )?;
    prose::check(".".as_ref())?;
    fuzz::check_lock()?;
    bpf::check()?;
    crate_order::check(".".as_ref())?;
    file_order::check(".".as_ref())?;
    packages::check_counts()?;
    packages::check_packaging()?;
    deny::check_changed()?;
    validate(&["--check".into()])
}

/// Runs the schedules of `crates/transport/tests/faults`.
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
