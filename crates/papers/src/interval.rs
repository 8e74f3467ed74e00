//! Numbers with their intervals as they are printed, and where these lie beside a range.

use narrows_lab::outcome::Estimate;

/// Where an interval lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All of it in the accepted range.
    Inside,
    /// None of it.
    Outside,
    /// Across an edge of the range.
    Across,
}

/// Where the interval of `ours` lies, taken as it is printed.
pub fn place((min, max): (Option<f64>, Option<f64>), ours: Estimate) -> Place {
    let (low, high) = printed(ours).1;
    let (min, max) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
    // Digits are read back from text, so that edges compare as they are read.
    let slack = 1e-9 * low.abs().max(high.abs());
    if low >= min - slack && high <= max + slack {
        Place::Inside
    } else if high < min || low > max {
        Place::Outside
    } else {
        Place::Across
    }
}

/// A number with its interval: at most four digits, and two of the half-width, rounded up.
pub fn shown(x: Estimate, unit: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{}{unit}", printed(x).0)
}

/// The same without its unit, and the ends of the interval that those digits give.
fn printed(x: Estimate) -> (String, (f64, f64)) {
    let mean = digits(x.mean);
    let read = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    match x.ci95 {
        Some(half) if half > 0.0 => {
            let mut width = significant(half, 2);
            if read(&width) < half {
                width = significant(half * 1.05, 2);
            }
            let (v, w) = (read(&mean), read(&width));
            (format!("{mean} ± {width}"), (v - w, v + w))
        }
        _ => {
            let v = read(&mean);
            (mean, (v, v))
        }
    }
}

/// Four significant digits, without an exponent where that is readable.
pub fn digits(x: f64) -> String {
    significant(x, 4)
}

fn significant(x: f64, n: i32) -> String {
    if !x.is_finite() {
        return "-".into();
    }
    if x == 0.0 {
        return "0".into();
    }
    // Through text, so that no logarithm of the machine decides about a digit.
    let scientific = format!("{:.*e}", (n - 1) as usize, x);
    let exponent: i32 = scientific.split('e').nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    let decimals = n - 1 - exponent;
    if !(-7..=9).contains(&decimals) {
        return scientific;
    }
    let text = format!("{:.*}", decimals.max(0) as usize, scientific.parse::<f64>().unwrap_or(x));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}
