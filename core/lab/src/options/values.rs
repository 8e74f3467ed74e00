//! Parsers of the options' values; errors have one line.

use crate::sweep::journal::SweepPart;
use narrows_base::Duration;
use narrows_scenario::values;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A time, as in `300ms`; at most ten years.
///
/// # Errors
/// The fault, in one line.
pub fn time(text: &str) -> Result<Duration, String> {
    let d = narrows_base::units::duration(text).map_err(|e| e.to_string())?;
    if d > values::MAX_DELAY { Err("that is longer than ten years".into()) } else { Ok(d) }
}

/// The first seed.
pub fn seed() -> impl clap::builder::TypedValueParser<Value = u64> {
    // The largest number of a TOML file.
    clap::value_parser!(u64).range(..=i64::MAX as u64)
}

/// A number within bounds.
pub fn number<N: FromStr + PartialOrd + Display + Clone>(
    bounds: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|n| bounds.contains(n));
        number.ok_or_else(|| {
            format!("a number from {} to {} is expected", bounds.start(), bounds.end())
        })
    }
}

/// Number of seeds.
pub const SEEDS: RangeInclusive<u32> = 1..=100_000;
/// Number of flows.
pub const FLOWS: RangeInclusive<usize> = 1..=1_000_000;
/// Number of parallel runs.
pub const JOBS: RangeInclusive<usize> = 1..=1024;
/// Number of networks that an attack tries.
pub const CASES: RangeInclusive<usize> = 16..=1_000_000;
/// Number of parts of a sweep, and of the tasks that share it.
pub const PARTS: RangeInclusive<usize> = 1..=10_000;

/// A part of a sweep: `I/N`.
///
/// # Errors
/// The fault, in one line.
pub fn part(text: &str) -> Result<SweepPart, String> {
    let read = |(number, of): (&str, &str)| {
        let of: usize = of.parse().ok().filter(|of| PARTS.contains(of))?;
        let number = number.parse().ok().filter(|n| (1..=of).contains(n))?;
        Some(SweepPart { number, of })
    };
    text.split_once('/').and_then(read).ok_or_else(|| {
        format!("a part is I/N as in 3/16, I from 1 to N, N at most {}", PARTS.end())
    })
}
