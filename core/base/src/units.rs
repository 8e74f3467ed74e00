//! Numbers with units, as users write them: `1.5Mbit/s`, `80ms`, `1%`, `30p`, `45kB`.

use crate::rate::{MAX_RATE, Rate};
use crate::spec::SpecError;
use crate::time::Duration;

/// The unit of a number. Programs store numbers in the unit's base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A bare number.
    None,
    /// Packets or segments; the suffix `p` is optional.
    Packets,
    /// Bytes; a kB is 1000 bytes.
    Bytes,
    /// Seconds; a unit is required.
    Seconds,
    /// Bits per second; a unit is required.
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
    /// Formats a value as a user would type it.
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
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// The two readings of a unit that people use for bits and for bytes.
struct Readings {
    /// The factor to bits if the unit counts bits.
    bits: f64,
    /// The factor to bits if the unit counts bytes.
    bytes: f64,
}

/// Readings of an ambiguous unit such as `MBps`, `MB/s` (rate), `Kb` or `Mbit` (size). Kilo is 1000, unless there is an
/// `i`.
fn readings(unit: &str, rate: bool) -> Option<Readings> {
    let lower = unit.to_lowercase();
    let stem = match rate {
        true => lower.strip_suffix("ps").or_else(|| lower.strip_suffix("/s")).unwrap_or(&lower),
        false => &lower,
    };
    let stem = ["bits", "bit", "bytes", "byte", "b"].iter().find_map(|b| stem.strip_suffix(b))?;
    let power = match stem.strip_suffix('i').unwrap_or(stem) {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let kilo: f64 = if stem.ends_with('i') { 1024.0 } else { 1000.0 };
    let factor = (0..power).fold(1.0, |factor, _| factor * kilo);
    Some(Readings { bits: factor, bytes: 8.0 * factor })
}

/// Formats a number of bytes: `45kB`.
fn size_text(bytes: f64) -> String {
    let written = |unit: &str, factor: f64| format!("{}{unit}", bytes / factor);
    match bytes {
        1e9.. => written("GB", 1e9),
        1e6.. => written("MB", 1e6),
        1e3.. => written("kB", 1e3),
        _ => written("B", 1.0),
    }
}

/// The error for a unit that could be bits or bytes. It shows the spelling of each.
fn ambiguous(text: &str, x: f64, unit: &str, rate: bool) -> Option<SpecError> {
    let r = readings(unit, rate)?;
    let (bits, bytes) = if rate {
        let written = |bps: f64| Rate::from_bps_f64(x * bps).to_string();
        (written(r.bits), written(r.bytes))
    } else {
        let written = |bits: f64| size_text(x * bits / 8.0);
        (written(r.bits), written(r.bytes))
    };
    let per = if rate { " per second" } else { "" };
    Some(SpecError::new(format!(
        "'{text}' may be bits or bytes{per}: write {bits} if '{unit}' is bits, {bytes} if it is bytes"
    )))
}

/// Whether two spellings of a unit have the same case in every `b` that distinguishes bits from bytes, which is any `b`
/// that does not begin `bit`.
fn same_b(a: &str, b: &str) -> bool {
    let is_bit = |s: &str| s.to_ascii_lowercase().contains("bit");
    let at = |s: &str| s.chars().find(|c| c.eq_ignore_ascii_case(&'b'));
    is_bit(a) || at(a) == at(b)
}

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

/// Splits a number from its unit where the unit may be missing.
fn bare(text: &str) -> Result<(f64, &str), SpecError> {
    let number = parts(text);
    if number.is_err() && !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(SpecError::new(format!("'{text}' is not a number")));
    }
    number
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
        // Case may differ (mbit/s), but not between bits and bytes: MBps, kb.
        .or_else(|| table.iter().find(|(n, _)| n.eq_ignore_ascii_case(unit) && same_b(n, unit)))
        .map(|(_, f)| *f)
        .ok_or_else(|| {
            let rate = what == "rate";
            let either = match (what, unit) {
                ("time", "m" | "M") => Some(SpecError::new(format!(
                    "'{text}': write {x}min for minutes, {x}ms for milliseconds"
                ))),
                ("time", _) => None,
                _ => ambiguous(text, x, unit, rate),
            };
            either.unwrap_or_else(|| {
                SpecError::new(format!(
                    "'{text}': unknown unit '{unit}'; a {what} is written as {example}"
                ))
            })
        })?;
    if x < 0.0 {
        return Err(SpecError::new(format!("'{text}': a {what} cannot be negative")));
    }
    Ok(x * factor)
}

/// Reads a number with its unit and returns it in `unit`'s base.
///
/// # Errors
/// Not a number, a unit that is missing or unknown, or a negative quantity.
pub fn number(text: &str, unit: Unit) -> Result<f64, SpecError> {
    match unit {
        Unit::None => match bare(text)? {
            (x, "") => Ok(x),
            (_, u) => {
                Err(SpecError::new(format!("'{text}': a bare number is expected, without '{u}'")))
            }
        },
        Unit::Packets => match bare(text)? {
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

/// Reads a share of packets: `1%`, or `0.01`. From 0.1 on it needs `%`, since 0.5 may mean 0.5% or 50%. Errors name the
/// key.
///
/// # Errors
/// As [`number`]; also a share above 1, and a number from 0.1 on without `%`.
pub fn share(key: &str, text: &str) -> Result<f64, SpecError> {
    let share = number(text, Unit::Fraction)?;
    if !(0.0..=1.0).contains(&share) {
        let why = format!("{key} '{text}' must be between 0 and 1 (100%)");
        return Err(SpecError::new(why));
    }
    if share >= 0.1 && !text.contains('%') {
        let percent = (share * 1e10).round() * 1e-8;
        let why = format!("{key} '{text}' may be {text}% or {percent}%: write one of these");
        return Err(SpecError::new(why));
    }
    Ok(share)
}

/// Writes a share so that [`share`] reads it: exactly if it was read, else to the last bit or two.
pub fn share_text(share: f64) -> String {
    if share < 0.1 {
        return share.to_string();
    }
    let percent = share * 100.0;
    let nearest = [percent, percent.next_down(), percent.next_up()];
    let exact = nearest.iter().filter(|percent| *percent / 100.0 == share);
    let shortest = exact.map(f64::to_string).min_by_key(String::len);
    format!("{}%", shortest.unwrap_or_else(|| percent.to_string()))
}

/// Reads a time such as `80ms`.
///
/// # Errors
/// As [`number`].
pub fn duration(text: &str) -> Result<Duration, SpecError> {
    number(text, Unit::Seconds).map(Duration::from_secs_f64)
}

/// Reads a rate such as `1.5Mbit/s`.
///
/// # Errors
/// As [`number`]; also a rate below 1 bit/s.
pub fn rate(text: &str) -> Result<Rate, SpecError> {
    let bps = number(text, Unit::BitsPerSecond)?;
    if bps < 1.0 {
        return Err(SpecError::new(format!("'{text}': a rate must be at least 1bit/s")));
    }
    if bps > MAX_RATE.as_bps() as f64 {
        return Err(SpecError::new(format!("'{text}': a rate is at most 1000Tbit/s")));
    }
    Ok(Rate::from_bps_f64(bps))
}

/// The ends of a range as numbers in one unit, and this unit: `1` and `20Mbit`, `100kbit` and `1Mbit`, `5p` and `10p`.
///
/// # Errors
/// Names the fault in the two ends.
pub fn ends<'a>(low: &'a str, high: &'a str) -> Result<(f64, f64, &'a str), &'static str> {
    let (a, first) = leading_number(low);
    let (b, second) = leading_number(high);
    let a = a.ok_or("it begins with no number")?;
    let b = b.ok_or("it ends with no number")?;
    match (first, second) {
        (x, y) if x == y => Ok((a, b, x)),
        ("", y) => Ok((a, b, y)),
        (x, "") => Ok((a, b, x)),
        (x, _) => {
            let kinds =
                [Unit::Fraction, Unit::BitsPerSecond, Unit::Seconds, Unit::Bytes, Unit::Packets];
            let one = format!("1{x}");
            let ratio = kinds
                .into_iter()
                .find_map(|kind| Some(number(high.trim(), kind).ok()? / number(&one, kind).ok()?));
            Ok((a, ratio.ok_or("its ends have different kinds of units")?, x))
        }
    }
}

/// The leading number of a text, and the rest of the text.
fn leading_number(text: &str) -> (Option<f64>, &str) {
    let text = text.trim();
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with(['-', '+']));
    let mut end = sign + digits(&text[sign..]);
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    // An exponent needs digits: "1em" is 1 and a strange unit.
    if text[end..].starts_with(['e', 'E']) {
        let signed = 1 + usize::from(text[end + 1..].starts_with(['-', '+']));
        match digits(&text[end + signed..]) {
            0 => {}
            n => end += signed + n,
        }
    }
    let number = text[..end].parse().ok().filter(|x: &f64| x.is_finite());
    (number, text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_without_unit_is_refused_and_text_reads_back() {
        let e = share("duplicate", "0.5").unwrap_err().to_string();
        assert_eq!(e, "duplicate '0.5' may be 0.5% or 50%: write one of these");
        for tenths in 0..=1000 {
            let text = format!("{}%", f64::from(tenths) / 10.0);
            let read = share("duplicate", &text).unwrap();
            assert_eq!(share("duplicate", &share_text(read)).unwrap(), read, "{text}");
        }
        for x in (1..1000).map(|n| f64::from(n) / 999.7) {
            let read = share("corrupt", &share_text(x)).unwrap();
            assert!((read - x).abs() <= 2.0 * f64::EPSILON * x, "{x}");
        }
        assert_eq!(share_text(1.0), "100%");
    }

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
        assert!(duration("5m").unwrap_err().to_string().contains("5min for minutes, 5ms"));
        assert!(number("alpha", Unit::None).unwrap_err().to_string().ends_with("is not a number"));
        assert!(rate("1e9Tbit/s").unwrap_err().to_string().contains("at most"));
    }

    /// A unit that could be bits or bytes is refused with both readings, because a factor of eight
    /// would go unnoticed.
    #[test]
    fn bits_are_not_taken_for_bytes() {
        for (good, bps) in [
            ("10Mbps", 10e6),
            ("10Mbit/s", 10e6),
            ("10mbps", 10e6),
            ("10MBit/s", 10e6),
            ("10kbps", 10e3),
            ("10Kbps", 10e3),
            ("8bps", 8.0),
            ("1gbit", 1e9),
        ] {
            assert_eq!(rate(good).map(|r| r.as_bps() as f64), Ok(bps), "{good}");
        }
        for (good, bytes) in [
            ("45kB", 45e3),
            ("45KB", 45e3),
            ("1KiB", 1024.0),
            ("1MiB", 1_048_576.0),
            ("3MB", 3e6),
            ("2GB", 2e9),
            ("7B", 7.0),
        ] {
            assert_eq!(number(good, Unit::Bytes), Ok(bytes), "{good}");
        }
        let refused = |text: &str, unit| number(text, unit).unwrap_err().to_string();
        for (bad, one, other) in [
            ("10MBps", "10Mbit/s", "80Mbit/s"),
            ("10MB/s", "10Mbit/s", "80Mbit/s"),
            ("10MBPS", "10Mbit/s", "80Mbit/s"),
            ("1KBps", "1kbit/s", "8kbit/s"),
            ("1GB", "1Gbit/s", "8Gbit/s"),
            ("5Bps", "5bit/s", "40bit/s"),
            ("1MiB/s", "1.048576Mbit/s", "8.388608Mbit/s"),
        ] {
            let e = refused(bad, Unit::BitsPerSecond);
            assert!(e.contains(one) && e.contains(other) && e.contains(bad), "{e}");
        }
        for (bad, one, other) in [
            ("45Kb", "5.625kB", "45kB"),
            ("45kb", "5.625kB", "45kB"),
            ("8Mb", "1MB", "8MB"),
            ("8mb", "1MB", "8MB"),
            ("80b", "10B", "80B"),
            ("8Mbit", "1MB", "8MB"),
            ("8kib", "1.024kB", "8.192kB"),
        ] {
            let e = refused(bad, Unit::Bytes);
            assert!(e.contains(one) && e.contains(other) && e.contains(bad), "{e}");
        }
        assert!(refused("3parsec", Unit::Bytes).contains("unknown unit"));
    }
}
