//! The values of a varied parameter: `a,b,c`, `a..b:n` and `a..b:log:n`, in any mixture.

use narrows_base::units::{self, Unit};
use narrows_base::{SpecError, math, spec};
use narrows_scenario::access_link::AccessLink;

/// Limit on the values of one parameter.
pub const MAX_VALUES: usize = 100_000;

/// Values as texts, in their order, and whether a logarithmic range was among them.
pub type Values = (Vec<String>, bool);

/// Reads a list. `whole` rounds the values of a range; commas in parentheses do not split.
///
/// # Errors
/// An empty or malformed list, a range without a number of values, a value given twice.
pub fn parse(text: &str, whole: bool) -> Result<Values, SpecError> {
    let mut out: Vec<String> = Vec::new();
    let mut log: bool = false;
    for piece in spec::split(text)? {
        let piece = piece.trim();
        if piece.is_empty() {
            let e = "a value is missing; a list is written as 1,2,4, a range as 1..100:log:8";
            return Err(SpecError::new(e));
        }
        match range(piece, whole)? {
            Some((values, logarithmic)) => {
                log |= logarithmic;
                out.extend(values.into_iter().filter(|v| !out.contains(v)).collect::<Vec<_>>());
            }
            None if out.iter().any(|v| v == piece) => {
                return Err(SpecError::new(format!("'{piece}' is given twice")));
            }
            None => out.push(piece.to_string()),
        }
        if out.len() > MAX_VALUES {
            return Err(SpecError::new(format!("more than {MAX_VALUES} values")));
        }
    }
    Ok((out, log))
}

/// All values as numbers, and their unit; `None` if one of them is no number.
pub fn numbers(values: &[String]) -> Option<(Vec<f64>, &'static str)> {
    const PRODUCT: &str = "bdp";
    let all = |read: &dyn Fn(&str) -> Option<f64>| values.iter().map(|v| read(v)).collect();
    let known = [
        (Unit::None, ""),
        (Unit::Fraction, "fraction"),
        (Unit::BitsPerSecond, "bit/s"),
        (Unit::Seconds, "s"),
        (Unit::Bytes, "B"),
        (Unit::Packets, "packets"),
    ];
    let found = known.into_iter().find_map(|(unit, name)| {
        let numbers: Option<Vec<f64>> = all(&|v| units::number(v, unit).ok());
        Some((numbers?, name))
    });
    found.or_else(|| {
        let numbers: Option<Vec<f64>> = all(&|v| v.strip_suffix(PRODUCT)?.parse().ok());
        Some((numbers?, PRODUCT))
    })
}

/// The values of a range; `None` for another text.
fn range(text: &str, whole: bool) -> Result<Option<(Vec<String>, bool)>, SpecError> {
    let wrong = |what: &str| {
        SpecError::new(format!("'{text}': {what}; a range is written as 1..9:5 or 1..100:log:8"))
    };
    // `10Mbit/s/0.5ms..2ms` is one value: a flow's own link, drawn.
    if !text.contains(':') && (text.contains('(') || AccessLink::parse(text).is_ok()) {
        return Ok(None);
    }
    let Some((low, rest)) = text.split_once("..") else { return Ok(None) };
    let mut parts = rest.split(':').map(str::trim);
    let high = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let (log, count) = match rest[..] {
        [count] => (false, count),
        ["log", count] => (true, count),
        [] => return Err(wrong("it does not say how many values")),
        [spacing, _] => return Err(wrong(&format!("unknown spacing '{spacing}'"))),
        _ => return Err(wrong("too many colons")),
    };
    let count = match count.parse::<usize>() {
        Ok(n) if (2..=MAX_VALUES).contains(&n) => n,
        _ => {
            return Err(wrong(&format!(
                "'{count}' is not a number of values from 2 to {MAX_VALUES}"
            )));
        }
    };
    let (a, b, unit) = units::ends(low, high).map_err(wrong)?;
    if log && (a <= 0.0 || b <= 0.0) {
        return Err(wrong("a logarithmic range needs ends above 0"));
    }
    let whole = whole || unit == "p";
    let mut out: Vec<String> = Vec::with_capacity(count);
    for i in 0..count {
        let part = i as f64 / (count - 1) as f64;
        let value = match i {
            0 => a,
            _ if i == count - 1 => b,
            _ if log => tidy(a * math::pow(b / a, part)),
            _ => tidy(a + (b - a) * part),
        };
        let text = format!("{}{unit}", if whole { value.round() } else { value });
        if out.last() != Some(&text) {
            out.push(text);
        }
    }
    Ok(Some((out, log)))
}

/// Four significant digits, for readable axes.
fn tidy(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> Vec<String> {
        parse(text, false).unwrap().0
    }

    #[test]
    fn lists_and_ranges_make_values_in_order() {
        assert_eq!(list("1Mbit/s, 2Mbit/s"), ["1Mbit/s", "2Mbit/s"]);
        assert_eq!(list("vegas(alpha=1,beta=3),reno"), ["vegas(alpha=1,beta=3)", "reno"]);
        assert_eq!(list("0..10:3"), ["0", "5", "10"]);
        assert_eq!(list("10..0:3"), ["10", "5", "0"]);
        assert_eq!(list("0.1mbit..10mbit:log:3"), ["0.1mbit", "1mbit", "10mbit"]);
        assert_eq!(list("100kbit..1Mbit:log:2"), ["100kbit", "1000kbit"]);
        assert_eq!(list("1..20ms:2"), ["1ms", "20ms"]);
        assert_eq!(list("0.5bdp..2bdp:log:3"), ["0.5bdp", "1bdp", "2bdp"]);
        assert_eq!(list("5p..10p:3"), ["5p", "8p", "10p"], "packets are whole");
        assert_eq!(list("0%,0.1%..10%:log:3"), ["0%", "0.1%", "1%", "10%"]);
        assert_eq!(list("10Mbit/s/0.5ms..2ms"), ["10Mbit/s/0.5ms..2ms"], "one link, drawn");
        assert_eq!(
            parse("1..4:log:8", true).unwrap(),
            (vec!["1", "2", "3", "4"].into_iter().map(String::from).collect(), true)
        );
    }

    #[test]
    fn malformed_lists_name_the_fault() {
        for (bad, hint) in [
            ("", "missing"),
            ("1,,2", "missing"),
            ("1,2,1", "twice"),
            ("a(1", "')' is missing"),
            ("1..5", "how many"),
            ("1Mbit/s..5Mbit/s", "how many"),
            ("1..5:x", "not a number of values"),
            ("1..5:1", "not a number of values"),
            ("1..5:999999999", "not a number of values"),
            ("1..5:lin:3", "unknown spacing 'lin'"),
            ("1..5:log:3:4", "colons"),
            ("0..5:log:3", "above 0"),
            ("..5:3", "begins with no number"),
            ("1..x:3", "ends with no number"),
            ("1ms..5Mbit/s:3", "different kinds"),
            ("1e999..2:3", "begins with no number"),
        ] {
            let e = parse(bad, false).unwrap_err().to_string();
            assert!(e.contains(hint), "{bad:?}: {e}");
        }
    }

    #[test]
    fn numbers_share_a_unit_or_are_words() {
        let of = |list: &[&str]| numbers(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["1", "2"]), Some((vec![1.0, 2.0], "")));
        assert_eq!(of(&["1%", "0"]), Some((vec![0.01, 0.0], "fraction")));
        assert_eq!(of(&["100kbit/s", "1Mbit/s"]), Some((vec![1e5, 1e6], "bit/s")));
        assert_eq!(of(&["5p", "10"]), Some((vec![5.0, 10.0], "packets")));
        assert_eq!(of(&["1bdp", "0.5bdp"]), Some((vec![1.0, 0.5], "bdp")));
        assert_eq!(of(&["1bdp", "5p"]), None);
        assert_eq!(of(&["reno"]), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-z.:,()%/ -]{0,40}") {
            let _ = parse(&text, true);
        }

        #[test]
        fn a_range_keeps_its_ends_its_order_and_its_number(
            low in 1u32..1000, more in 1u32..100_000, n in 2usize..60, log: bool,
        ) {
            let high = low + more;
            let spacing = if log { "log:" } else { "" };
            let values = parse(&format!("{low}ms..{high}ms:{spacing}{n}"), false).unwrap().0;
            let numbers: Vec<f64> =
                values.iter().map(|v| v.strip_suffix("ms").unwrap().parse().unwrap()).collect();
            prop_assert_eq!(numbers[0], f64::from(low));
            prop_assert_eq!(numbers[numbers.len() - 1], f64::from(high));
            prop_assert!(numbers.len() <= n);
            // Rounding to four digits can make neighbours of a narrow range equal, or exceed an end by a little.
            let slack = 1e-3 * f64::from(high);
            prop_assert!(numbers.windows(2).all(|w| w[0] < w[1] + slack));
            let counts = parse(&format!("{low}..{high}:{spacing}{n}"), true).unwrap().0;
            prop_assert!(counts.iter().all(|c| c.parse::<u32>().is_ok()));
        }
    }
}
