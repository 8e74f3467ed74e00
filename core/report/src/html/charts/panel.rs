//! A panel over time: its lines, its marks, and their JSON.

use crate::html::text::{list, number, numbers, string};
use crate::thin::thin;
use narrows_sim::SeriesTable;
use std::fmt::Write;

/// Most points of a line.
const POINTS: usize = 1500;
/// Digits of times and of values.
pub(super) const TIME_DIGITS: usize = 7;
pub(super) const DIGITS: usize = 5;

/// 0 instead of NaN and infinity.
pub(super) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Sample times, each set once.
#[derive(Default)]
pub(super) struct Times(pub Vec<Vec<f64>>);

impl Times {
    fn index(&mut self, time: Vec<f64>) -> usize {
        self.0.iter().position(|t| *t == time).unwrap_or_else(|| {
            self.0.push(time);
            self.0.len() - 1
        })
    }
}

#[derive(Clone, Copy)]
pub(super) enum Style {
    Solid,
    Dashed,
    Faint,
}

/// Colour, by its number in the palette, and style of a line.
#[derive(Clone, Copy)]
pub(super) struct LineLook {
    pub colour: usize,
    pub style: Style,
}

struct ChartLine {
    name: String,
    look: LineLook,
    time: usize,
    values: Vec<f64>,
}

struct ChartMarks {
    name: String,
    symbol: &'static str,
    colour: usize,
    /// Time, height and number of events.
    events: Vec<(f64, f64, f64)>,
}

pub(super) struct ChartPanel {
    pub title: &'static str,
    unit: &'static str,
    limit: Option<(&'static str, f64)>,
    lines: Vec<ChartLine>,
    marks: Vec<ChartMarks>,
}

impl ChartPanel {
    /// An empty one.
    pub fn new(
        title: &'static str,
        unit: &'static str,
        limit: Option<(&'static str, f64)>,
    ) -> Self {
        ChartPanel { title, unit, limit, lines: Vec::new(), marks: Vec::new() }
    }

    /// Whether the panel has no contents.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Draws a column of the table, if it has it with a finite value.
    pub fn line(
        &mut self,
        times: &mut Times,
        table: &SeriesTable,
        column: &str,
        name: String,
        look: LineLook,
        scale: f64,
    ) {
        let Some(values) = table.column(column).filter(|v| v.iter().any(|v| v.is_finite())) else {
            return;
        };
        let values = &values[..values.len().min(table.time_s.len())];
        let kept = thin(values, POINTS);
        let time = times.index(kept.iter().map(|&i| table.time_s[i]).collect());
        let values = kept.iter().map(|&i| values[i] * scale).collect();
        self.lines.push(ChartLine { name, look, time, values });
    }

    /// Marks the samples in which the column counts events, at the height of another column or
    /// on the ground.
    pub fn marks(
        &mut self,
        table: &SeriesTable,
        column: &str,
        height: Option<&str>,
        name: String,
        symbol: &'static str,
        colour: usize,
    ) {
        let Some(counts) = table.column(column) else { return };
        let heights = height.and_then(|h| table.column(h));
        let at = |i: usize| finite(heights.and_then(|h| h.get(i).copied()).unwrap_or(0.0));
        let mut events: Vec<(f64, f64, f64)> = std::iter::zip(&table.time_s, counts)
            .enumerate()
            .filter(|(_, (_, count))| **count > 0.0)
            .map(|(i, (&time, &count))| (time, at(i), count))
            .collect();
        if events.len() > POINTS {
            // Neighbours become one mark that counts for all of them.
            let together = events.len().div_ceil(POINTS);
            let merge = |group: &[(f64, f64, f64)]| {
                group.iter().copied().reduce(|a, b| (a.0, a.1.max(b.1), a.2 + b.2))
            };
            events = events.chunks(together).filter_map(merge).collect();
        }
        if !events.is_empty() {
            self.marks.push(ChartMarks { name, symbol, colour, events });
        }
    }

    pub fn json(&self, out: &mut String) {
        out.push_str("{\"title\":");
        string(out, self.title);
        out.push_str(",\"unit\":");
        string(out, self.unit);
        out.push_str(",\"limit\":");
        match self.limit {
            Some((name, y)) => {
                out.push_str("{\"name\":");
                string(out, name);
                out.push_str(",\"y\":");
                number(out, y, DIGITS);
                out.push('}');
            }
            None => out.push_str("null"),
        }
        out.push_str(",\"lines\":");
        list(out, &self.lines, |out, line| {
            out.push_str("{\"name\":");
            string(out, &line.name);
            let style = line.look.style as u8;
            let _ = write!(
                out,
                ",\"colour\":{},\"style\":{style},\"x\":{},\"y\":",
                line.look.colour, line.time
            );
            numbers(out, line.values.iter().copied(), DIGITS);
            out.push('}');
        });
        out.push_str(",\"marks\":");
        list(out, &self.marks, |out, marks| {
            out.push_str("{\"name\":");
            string(out, &marks.name);
            out.push_str(",\"symbol\":");
            string(out, marks.symbol);
            let _ = write!(out, ",\"colour\":{},\"x\":", marks.colour);
            numbers(out, marks.events.iter().map(|e| e.0), TIME_DIGITS);
            out.push_str(",\"y\":");
            numbers(out, marks.events.iter().map(|e| e.1), DIGITS);
            out.push_str(",\"n\":");
            numbers(out, marks.events.iter().map(|e| e.2), DIGITS);
            out.push('}');
        });
        out.push('}');
    }
}
