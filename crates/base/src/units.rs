//! Numbers with units, as users write them: `1.5Mbit/s`, `80ms`, `1%`, `30p`, `45kB`.

use crate::rate::Rate;
use crate::spec::SpecError;
use crate::time::Duration;

/// What a number is measured in; its base is what programs hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A bare number.
    None,
    /// Packets or segments; `p` may be written.
    Packets,
    /// Bytes; kB is 1000.
    Bytes,
    /// Time in seconds; a unit is required.
    Seconds,
    /// bit/s; a unit is required.
    BitsPerSecond,
    /// A fraction; `1%` and `0.01` are the same.
    Fraction,
}

impl Unit {
    /// The base unit's name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Packets => "packets",
            Unit::Bytes => "B",
            Unit::Seconds => "s",
            Unit::BitsPerSecond => "bit/s",
            Unit::Fraction => "fraction",
        }
    }
    /// A value in the form in which it could be typed.
    pub fn show(self, x: f64) -> String {
        match self {
            Unit::None | Unit::Packets | Unit::Fraction => format!("{x}"),
            Unit::Bytes => format!("{x}B"),
            Unit::Seconds => Duration::from_secs_f64(x).to_string(),
            Unit::BitsPerSecond => Rate::from_bps_f64(x).to_string(),
        }
    }
}

const TIMES: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
];
const RATES: &[(&str, f64)] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("Tbit/s", 1e12),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("Tbps", 1e12),
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("Gbit", 1e9),
    ("Tbit", 1e12),
];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
];

/// Splits `1.5Mbit/s` into its number and its unit.
fn parts(text: &str) -> Result<(f64, &str), SpecError> {
    let text = text.trim();
    let mut end = 0;
    let bytes = text.as_bytes();
    while end < bytes.len() {
        let c = bytes[end];
        let exponent = (c == b'e' || c == b'E')
            && bytes.get(end + 1).is_some_and(|n| {
                n.is_ascii_digit()
                    || ((*n == b'-' || *n == b'+')
                        && bytes.get(end + 2).is_some_and(u8::is_ascii_digit))
            });
        if c.is_ascii_digit() || c == b'.' || (end == 0 && (c == b'-' || c == b'+')) {
            end += 1;
        } else if exponent {
            end += 2;
        } else {
            break;
        }
    }
    let x: f64 = text[..end]
        .parse()
        .map_err(|_| SpecError::new(format!("'{text}' is not a number with a unit")))?;
    if !x.is_finite() {
        return Err(SpecError::new(format!("'{text}' is too large")));
    }
    Ok((x, text[end..].trim()))
}

fn scaled(text: &str, what: &str, table: &[(&str, f64)], example: &str) -> Result<f64, SpecError> {
    let (x, unit) = parts(text)
        .map_err(|_| SpecError::new(format!("'{text}' is not a {what}, such as {example}")))?;
    if unit.is_empty() {
        return Err(SpecError::new(format!(
            "'{text}' has no unit; a {what} is written as {example}"
        )));
    }
    let factor = table
        .iter()
        .find(|(n, _)| *n == unit)
        .or_else(|| table.iter().find(|(n, _)| n.eq_ignore_ascii_case(unit) && *n != "B"))
        .map(|(_, f)| *f)
        .ok_or_else(|| {
            SpecError::new(format!(
                "'{text}': unknown unit '{unit}'; a {what} is written as {example}"
            ))
        })?;
    if x < 0.0 {
        return Err(SpecError::new(format!("'{text}': a {what} cannot be negative")));
    }
    Ok(x * factor)
}

/// A number in `unit`'s base.
///
/// # Errors
/// Not a number, a unit that is missing or unknown, or a negative quantity.
pub fn number(text: &str, unit: Unit) -> Result<f64, SpecError> {
    match unit {
        Unit::None => match parts(text)? {
            (x, "") => Ok(x),
            (_, u) => {
                Err(SpecError::new(format!("'{text}': a bare number is expected, without '{u}'")))
            }
        },
        Unit::Packets => match parts(text)? {
            (x, "" | "p") => Ok(x),
            (_, u) => Err(SpecError::new(format!("'{text}': packets are expected, not '{u}'"))),
        },
        Unit::Bytes => scaled(text, "size", SIZES, "1000B or 45kB"),
        Unit::Seconds => scaled(text, "time", TIMES, "80ms or 1.5s"),
        Unit::BitsPerSecond => scaled(text, "rate", RATES, "1.5Mbit/s"),
        Unit::Fraction => match parts(text)? {
            (x, "%") => Ok(x / 100.0),
            (x, "") => Ok(x),
            (_, u) => Err(SpecError::new(format!(
                "'{text}': a share such as 1% or 0.01 is expected, not '{u}'"
            ))),
        },
    }
}

/// A time such as `80ms`.
///
/// # Errors
/// As [`number`].
pub fn duration(text: &str) -> Result<Duration, SpecError> {
    number(text, Unit::Seconds).map(Duration::from_secs_f64)
}

/// A rate such as `1.5Mbit/s`.
///
/// # Errors
/// As [`number`]; also a rate below 1 bit/s.
pub fn rate(text: &str) -> Result<Rate, SpecError> {
    let bps = number(text, Unit::BitsPerSecond)?;
    if bps < 1.0 {
        return Err(SpecError::new(format!("'{text}': a rate must be at least 1bit/s")));
    }
    Ok(Rate::from_bps_f64(bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_required() {
        assert_eq!(rate("1.5Mbit/s").unwrap(), Rate::from_bps(1_500_000));
        assert_eq!(rate("1mbit").unwrap(), Rate::from_bps(1_000_000));
        assert_eq!(rate("10mbit/s").unwrap(), Rate::from_bps(10_000_000));
        assert_eq!(duration("80ms").unwrap(), Duration::from_millis(80));
        assert_eq!(duration("1e-3s").unwrap(), Duration::from_millis(1));
        assert_eq!(number("45kB", Unit::Bytes).unwrap(), 45_000.0);
        assert_eq!(number("1%", Unit::Fraction).unwrap(), 0.01);
        assert_eq!(number("30p", Unit::Packets).unwrap(), 30.0);
        for bad in ["80", "ms", "80 parsecs", "-3ms", "", "1e999s", "..", "NaNs", "80m"] {
            assert!(duration(bad).is_err(), "{bad:?} was taken for a time");
        }
        assert!(rate("0bit/s").is_err());
    }
}
