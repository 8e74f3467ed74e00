//! Parsers of the options' values; errors have one line.

use narrows_base::{Duration, SpecError};
use narrows_lab::compare;
use narrows_lab::recommendation::Aim;
use narrows_lab::sweep::journal::SweepPart;
use narrows_scenario::{scenario_file, values};
use narrows_sim::SourceSpec;
use narrows_transport::Preset;

/// Converts errors for clap, which expects text.
fn plain<T>(result: Result<T, SpecError>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}

/// A time, as in `300ms`; at most ten years.
///
/// # Errors
/// The fault, in one line.
pub fn time(text: &str) -> Result<Duration, String> {
    let d = plain(narrows_base::units::duration(text))?;
    if d > values::MAX_DELAY { Err("that is longer than ten years".into()) } else { Ok(d) }
}

/// The application to optimise for.
///
/// # Errors
/// The fault, and the permitted aims.
pub fn aim(text: &str) -> Result<Aim, String> {
    plain(Aim::parse(text))
}

/// The traffic of an application.
///
/// # Errors
/// The fault, in one line.
pub fn source(text: &str) -> Result<SourceSpec, String> {
    plain(compare::source(text))
}

/// A packet size.
///
/// # Errors
/// The fault, in one line.
pub fn packet(text: &str) -> Result<u32, String> {
    plain(scenario_file::packet(text))
}

/// The TCP endpoint to model.
///
/// # Errors
/// The fault, and the permitted presets.
pub fn preset(text: &str) -> Result<Preset, String> {
    plain(scenario_file::preset(text))
}

/// The first seed.
pub fn seed() -> impl clap::builder::TypedValueParser<Value = u64> {
    // The largest number of a TOML file.
    clap::value_parser!(u64).range(..=i64::MAX as u64)
}

/// Number of seeds: 1 to 100,000.
///
/// # Errors
/// Another value.
pub fn seeds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err("a number from 1 to 100000 is expected".into()),
    }
}

/// Number of parallel runs: 1 to 1024.
///
/// # Errors
/// Another value.
pub fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("a number from 1 to 1024 is expected".into()),
    }
}

/// Number of flows: 1 to 1,000,000.
///
/// # Errors
/// Another value.
pub fn flows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1_000_000) => Ok(n),
        _ => Err("a number from 1 to 1000000 is expected".into()),
    }
}

/// Number of networks that an attack tries.
///
/// # Errors
/// A value out of range.
pub fn cases(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (16..=1_000_000).contains(n))
        .ok_or_else(|| format!("'{text}' is not a number of networks from 16 to 1000000"))
}

/// Most parts of a sweep.
const MAX_PARTS: usize = 10_000;

/// Number of tasks that share a sweep.
///
/// # Errors
/// A value out of range.
pub fn tasks(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=MAX_PARTS) => Ok(n),
        _ => Err(format!("a number from 1 to {MAX_PARTS} is expected")),
    }
}

/// A part of a sweep: `I/N`.
///
/// # Errors
/// The fault, in one line.
pub fn part(text: &str) -> Result<SweepPart, String> {
    let read = |(number, of): (&str, &str)| {
        let (number, of): (usize, usize) = (number.parse().ok()?, tasks(of).ok()?);
        (1..=of).contains(&number).then_some(SweepPart { number, of })
    };
    text.split_once('/')
        .and_then(read)
        .ok_or_else(|| format!("a part is I/N as in 3/16, I from 1 to N, N at most {MAX_PARTS}"))
}
