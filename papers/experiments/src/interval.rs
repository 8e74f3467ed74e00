//! Numbers with their intervals in printed form, and their position relative to a range.

use narrows_lab::outcome::Estimate;

/// Uncertainty of a value.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Uncertainty {
    /// It has no interval: a model, or one run.
    None,
    /// So far on either side.
    Half(f64),
    /// From … to …, further on one side than on the other: of a share of runs, of a median.
    Between(f64, f64),
}

/// A value with its uncertainty.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct UncertainValue {
    /// Point estimate.
    pub value: f64,
    /// Its uncertainty.
    pub interval: Uncertainty,
}

impl From<Estimate> for UncertainValue {
    fn from(x: Estimate) -> UncertainValue {
        UncertainValue {
            value: x.mean,
            interval: x.half().map_or(Uncertainty::None, Uncertainty::Half),
        }
    }
}

/// Where an interval lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalPosition {
    /// All of it in the accepted range.
    Inside,
    /// The interval is outside the range.
    Outside,
    /// Across an edge of the range.
    Across,
}

/// Position of the interval of `ours`, as printed, relative to the range.
pub fn place((min, max): (Option<f64>, Option<f64>), ours: UncertainValue) -> IntervalPosition {
    let (low, high) = printed(ours).1;
    let min = min.unwrap_or(f64::NEG_INFINITY);
    let max = max.unwrap_or(f64::INFINITY);
    // Digits are read back from text, so that edges compare as they are read.
    let slack = 1e-9 * low.abs().max(high.abs());
    if low >= min - slack && high <= max + slack {
        IntervalPosition::Inside
    } else if high < min || low > max {
        IntervalPosition::Outside
    } else {
        IntervalPosition::Across
    }
}

/// A number with its interval: at most four digits, and of the interval two of its half-width, or three of
/// each end, rounded outwards.
pub fn shown(x: UncertainValue, unit: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{}{unit}", printed(x).0)
}

/// The same without its unit, and the ends of the interval that those digits give.
fn printed(x: UncertainValue) -> (String, (f64, f64)) {
    let value = digits(x.value);
    let v = read(&value);
    match x.interval {
        Uncertainty::Half(half) if half > 0.0 => {
            let mut width = significant(half, 2);
            if read(&width) < half {
                width = significant(half * 1.05, 2);
            }
            let w = read(&width);
            (format!("{value} ± {width}"), (v - w, v + w))
        }
        Uncertainty::Between(low, high) if low < high => {
            let low = outwards(low, -1.0);
            let high = outwards(high, 1.0);
            let ends = (read(&low), read(&high));
            (format!("{value} ({low} to {high})"), ends)
        }
        Uncertainty::None | Uncertainty::Half(_) | Uncertainty::Between(..) => (value, (v, v)),
    }
}

fn read(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Three digits of an end, rounded away from the value.
fn outwards(end: f64, sign: f64) -> String {
    let text = significant(end, 3);
    if sign * (end - read(&text)) <= 1e-12 * end.abs() {
        return text;
    }
    // One more in the last digit.
    let scientific = format!("{end:.2e}");
    let exponent: i32 = scientific.split('e').nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    significant(read(&text) + sign * read(&format!("1e{}", exponent - 2)), 3)
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
