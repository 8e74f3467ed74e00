//! The values of flags: each is read, or refused in one line.

use narrows_base::{Duration, SpecError};
use narrows_lab::compare;
use narrows_lab::recommendation::Aim;
use narrows_scenario::{scenario_file, values};
use narrows_sim::SourceSpec;
use narrows_transport::Preset;

/// Errors of Narrows as errors of clap, which wants text.
fn plain<T>(result: Result<T, SpecError>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}

pub fn time(text: &str) -> Result<Duration, String> {
    let d = plain(narrows_base::units::duration(text))?;
    if d > values::MAX_DELAY { Err("that is longer than ten years".into()) } else { Ok(d) }
}

pub fn aim(text: &str) -> Result<Aim, String> {
    plain(Aim::parse(text))
}

pub fn source(text: &str) -> Result<SourceSpec, String> {
    plain(compare::source(text))
}

pub fn packet(text: &str) -> Result<u32, String> {
    plain(scenario_file::packet(text))
}

pub fn preset(text: &str) -> Result<Preset, String> {
    plain(scenario_file::preset(text))
}

pub fn seed() -> impl clap::builder::TypedValueParser<Value = u64> {
    // A TOML file holds no larger number.
    clap::value_parser!(u64).range(..=i64::MAX as u64)
}

pub fn seeds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err("a number from 1 to 100000 is expected".into()),
    }
}

pub fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("a number from 1 to 1024 is expected".into()),
    }
}

pub fn flows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1_000_000) => Ok(n),
        _ => Err("a number from 1 to 1000000 is expected".into()),
    }
}

/// How many networks an attack tries.
pub fn cases(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (16..=1_000_000).contains(n))
        .ok_or_else(|| format!("'{text}' is not a number of networks from 16 to 1000000"))
}
