//! Ranges and ticks. A logarithmic axis is a linear one over the decimal logarithm.

use super::panel::Axis;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis with its range and ticks, in axis coordinates.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    /// First and last coordinate; they differ.
    pub low: f64,
    pub high: f64,
    /// Coordinates of the ticks.
    pub ticks: Vec<f64>,
    decimals: usize,
}

impl Scale {
    /// The scale of an axis for these values; `tight` leaves no space beyond them.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>, tight: bool) -> Self {
        let usable = |v: &f64| v.is_finite() && (!axis.log || *v > 0.0);
        let given = axis.range.filter(|r| usable(&r.0) && usable(&r.1) && r.0 < r.1);
        let (low, high) = given.unwrap_or_else(|| {
            values.filter(usable).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            })
        });
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        if axis.log {
            Self::log(low, high, given.is_some())
        } else {
            Self::linear(low, high, given.is_some() || tight)
        }
    }

    fn linear(low: f64, high: f64, exact: bool) -> Self {
        // Zero is in view unless the values are far from it.
        let mut low = if !exact && low > 0.0 && low < 0.5 * high { 0.0 } else { low };
        let mut high = high;
        if high - low <= 1e-12 * high.abs().max(low.abs()) {
            (low, high) = if low == 0.0 { (0.0, 1.0) } else { (low.min(0.0), high.max(0.0)) };
        }
        if !exact {
            let pad = 0.05 * (high - low);
            high += pad;
            if low != 0.0 {
                low -= pad;
            }
        }
        let rough = (high - low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (low / step - 1e-9).ceil();
        let ticks = (0..20)
            .map(|i| (first + f64::from(i)) * step)
            .take_while(|t| *t <= high + 1e-9 * step)
            .collect();
        let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
        Scale { log: false, low, high, ticks, decimals }
    }

    fn log(low: f64, high: f64, exact: bool) -> Self {
        let low = low.log10();
        let high = high.log10();
        let pad = if exact { 0.0 } else { (0.04 * (high - low)).max(0.05) };
        let low = low - pad;
        let high = high + pad;
        // Decades; within two decades 2 and 5 as well; and of very many only some.
        let between = if high - low < 2.2 { &[1.0, 2.0, 5.0][..] } else { &[1.0][..] };
        let every = ((high - low) / 8.0).ceil().max(1.0) as i32;
        let ticks = (low.floor() as i32..=high.ceil() as i32)
            .filter(|decade| decade % every == 0)
            .flat_map(|decade| between.iter().map(move |b| f64::from(decade) + f64::log10(*b)))
            .filter(|t| *t >= low - 1e-9 && *t <= high + 1e-9)
            .collect();
        Scale { log: true, low, high, ticks, decimals: 0 }
    }

    /// The coordinate of a value; `None` if it is not finite, or not positive on a logarithmic axis.
    pub fn at(&self, value: f64) -> Option<f64> {
        let coordinate = if self.log { value.log10() } else { value };
        coordinate.is_finite().then_some(coordinate)
    }

    /// Text at a tick.
    pub fn label(&self, coordinate: f64) -> String {
        if self.log {
            let exponent = coordinate.floor();
            return match exponent as i32 {
                -4..=4 => format!("{}", (10f64.powf(coordinate) * 1e6).round() / 1e6),
                e => format!("{:.0}·10{}", 10f64.powf(coordinate - exponent), superscript(e))
                    .replace("1·", ""),
            };
        }
        let value =
            if coordinate.abs() < 1e-12 * (self.high - self.low) { 0.0 } else { coordinate };
        let largest = self.low.abs().max(self.high.abs());
        match largest {
            l if l >= 1e6 => {
                format!("{:.2}", value / 1e6)
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_string()
                    + " M"
            }
            _ => format!("{value:.*}", self.decimals),
        }
    }
}

/// Plotters reads the coordinates, the ticks and their labels from here.
impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, coordinate: &f64, limit: (i32, i32)) -> i32 {
        let part = (coordinate - self.low) / (self.high - self.low);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(coordinate: &f64) -> String {
        coordinate.to_string()
    }
}

fn superscript(number: i32) -> String {
    let digit = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => char::from_u32(c as u32 - '0' as u32 + 0x2070).unwrap_or(c),
    };
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::new(&axis, values.iter().copied(), false);
        scale.ticks.iter().map(|t| scale.label(*t)).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(Axis::default(), &[0.0, 60.0]), ["0", "20", "40", "60"]);
        assert_eq!(labels(Axis::default(), &[0.161, 0.17]).first().map(String::len), Some(5));
        assert_eq!(labels(Axis::default(), &[f64::NAN]), labels(Axis::default(), &[1.0]));
        let log = Axis { log: true, ..Axis::default() };
        assert_eq!(labels(log.clone(), &[0.01, 100.0]), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(log.clone(), &[0.0, 1.0, 10.0]), ["1", "2", "5", "10"]);
        assert_eq!(labels(log, &[1e5, 1e8]), ["10⁵", "10⁶", "10⁷", "10⁸"]);
    }

    #[test]
    fn any_values_give_a_few_ticks() {
        for values in [[0.0, 0.0], [5.0, 5.0], [-1e-300, 1e300], [1e-9, 2e-9], [-7.0, -3.0]] {
            let scale = Scale::new(&Axis::default(), values.into_iter(), false);
            assert!(scale.low < scale.high && (2..20).contains(&scale.ticks.len()), "{scale:?}");
        }
    }
}
