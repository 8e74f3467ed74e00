//! The figure of an experiment: its panels as data, drawn by [`narrows_report::figure`].

use super::experiment::{Experiment, PanelAxis, PanelLine, PanelSpec};
use super::run::{Points, RunResults};
use narrows_report::figure::{self, Figure};

/// Horizontal extent of a panel's lines.
type Reach = (f64, f64);

/// `figure.svg` of an experiment.
///
/// # Errors
/// A line without data: a table or column that does not exist.
pub fn figure(e: &Experiment, observed: &RunResults) -> Result<String, String> {
    let mut figure = Figure::new().caption(format!("{}: cargo xtask validate {0}", e.file.id));
    for (panel, lines) in e.file.panel.iter().zip(&observed.lines) {
        for (line, points) in panel.line.iter().zip(lines) {
            if !points.y.iter().any(|y| y.is_finite()) {
                let id = &e.file.id;
                let title = &panel.title;
                let label = &line.label;
                return Err(format!("{id}: panel '{title}', line '{label}': nothing to draw"));
            }
        }
        figure = figure.panel(draw(panel, lines));
    }
    Ok(figure.svg())
}

fn draw(panel: &PanelSpec, lines: &[Points]) -> figure::Panel {
    let mut out = figure::lines(&*panel.title)
        .x(&panel.x.label, &panel.x.unit)
        .y(&panel.y.label, &panel.y.unit);
    if panel.x.log {
        out = out.log_x();
    }
    if panel.y.log {
        out = out.log_y();
    }
    let reach = reach(&panel.x, lines);
    if let Some([a, b]) = panel.x.range {
        out = out.x_range(a, b);
    }
    if let Some([a, b]) = panel.y.range {
        out = out.y_range(a, b);
    }
    for level in &panel.level {
        out = out.dashed(&*level.label, vec![(reach.0, level.at), (reach.1, level.at)]);
    }
    for (line, points) in panel.line.iter().zip(lines) {
        out = one(out, line, points, &panel.x);
    }
    for stated in &panel.stated {
        out = out.points(&*stated.label, stated.at.clone());
    }
    out
}

fn one(panel: figure::Panel, line: &PanelLine, points: &Points, x: &PanelAxis) -> figure::Panel {
    let at: Vec<(f64, f64)> = points.x.iter().copied().zip(points.y.iter().copied()).collect();
    if points.ci95.iter().any(|half| *half > 0.0) && !line.dashed {
        let band = at.iter().zip(&points.ci95).map(|((x, y), half)| (*x, y - half, y + half));
        return panel.band(&*line.label, band.collect()).line(&*line.label, at);
    }
    let seen = inside(at, x);
    if line.fill {
        let below =
            seen.iter().map(|(x, y)| (*x, f64::MIN_POSITIVE, y.max(f64::MIN_POSITIVE))).collect();
        return panel.band(&*line.label, below);
    }
    if line.dashed { panel.dashed(&*line.label, seen) } else { panel.line(&*line.label, seen) }
}

fn reach(axis: &PanelAxis, lines: &[Points]) -> Reach {
    if let Some([a, b]) = axis.range {
        return (a, b);
    }
    let all = || lines.iter().flat_map(|l| &l.x).copied();
    (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
}

/// The points of a line within the axis, and one to either side. They are selected before long lines are thinned, so
/// that the visible part keeps its detail.
fn inside(at: Vec<(f64, f64)>, axis: &PanelAxis) -> Vec<(f64, f64)> {
    let Some([a, b]) = axis.range else { return at };
    let seen = |i: usize| at.get(i).is_some_and(|p| p.0 >= a && p.0 <= b);
    (0..at.len())
        .filter(|&i| seen(i) || seen(i + 1) || i > 0 && seen(i - 1))
        .map(|i| at[i])
        .collect()
}
