//! Formats numbers for sentences.

use crate::outcome::Estimate;

/// `1.43 ± 0.01 Mbit/s`.
pub fn rate(e: Estimate) -> String {
    let (scale, unit) = match e.mean {
        x if x >= 1e9 => (1e9, "Gbit/s"),
        x if x >= 1e6 => (1e6, "Mbit/s"),
        x if x >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    scaled(e, scale, unit)
}

/// `0.53 ± 0.02 s`.
pub fn seconds(e: Estimate) -> String {
    if e.mean < 0.1 { scaled(e, 1e-3, "ms") } else { scaled(e, 1.0, "s") }
}

fn scaled(e: Estimate, scale: f64, unit: &str) -> String {
    let value = e.mean / scale;
    let digits = if value < 10.0 { 3 } else { 1 };
    let number = |x: f64| format!("{:.digits$}", x / scale);
    match e.interval_text(number) {
        interval if interval.is_empty() => format!("{value:.digits$} {unit}"),
        interval => format!("{value:.digits$} {} {unit}", interval.replace('±', "± ")),
    }
}

/// A time of some milliseconds.
pub fn milliseconds(seconds: f64) -> String {
    let ms = 1e3 * seconds.max(0.0);
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// `99%`, `3.2%`, `0.01%`: a value above zero is never shown as 0.0%.
pub fn percent(x: f64) -> String {
    let p = 100.0 * x;
    match p.abs() {
        a if !(1e-9..10.0).contains(&a) => format!("{p:.0}%"),
        a if a >= 0.1 => format!("{p:.1}%"),
        a => {
            let decimals = (-a.log10()).ceil().clamp(1.0, 9.0) as usize;
            format!("{p:.decimals$}%")
        }
    }
}

/// `a`, `a and b`, `a, b and c`, `a, b, c and others`.
pub fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_string(),
        [max @ .., last] if names.len() <= 3 => format!("{} and {last}", max.join(", ")),
        _ => format!("{} and others", names[..3].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_share_is_not_shown_as_zero() {
        for (x, text) in
            [(0.0001, "0.01%"), (0.00093, "0.09%"), (0.0, "0%"), (0.032, "3.2%"), (0.99, "99%")]
        {
            assert_eq!(percent(x), text);
        }
    }
}
