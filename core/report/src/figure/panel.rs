//! What a figure draws: panels with their axes, lines, bands and bars.

use narrows_lab::outcome::Estimate;

/// A picture of one or more panels.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    pub(super) panels: Vec<Panel>,
    pub(super) columns: Option<usize>,
    pub(super) caption: String,
    pub(super) size: Option<(u32, u32)>,
}

impl Figure {
    /// A figure without panels.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a panel, row by row.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Number of panels in a row. Default: 1 for one panel, else 2.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns.max(1));
        self
    }

    /// A small line under the figure: the command, the seed and the version.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Width and height of a panel in pixels.
    pub fn panel_size(mut self, width: u32, height: u32) -> Self {
        self.size = Some((width.clamp(160, 4000), height.clamp(120, 4000)));
        self
    }
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PanelKind {
    Lines,
    Bars,
}

/// One pair of axes with its contents.
#[derive(Clone, Debug)]
pub struct Panel {
    pub(super) kind: PanelKind,
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<PanelSeries>,
    pub(super) bars: Vec<Bar>,
    pub(super) marks: Vec<(String, String, f64)>,
}

/// An axis: label, unit and range.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) log: bool,
    pub(super) range: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SeriesStyle {
    Line,
    Dashed,
    Points,
    Band,
}

/// Points; a band has a lower and an upper value at each, else both are the same.
#[derive(Clone, Debug)]
pub(super) struct PanelSeries {
    pub(super) name: String,
    pub(super) look: SeriesStyle,
    pub(super) points: Vec<(f64, f64, f64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: Estimate,
}

/// A panel of lines, points and bands.
pub fn lines(title: impl Into<String>) -> Panel {
    Panel::new(PanelKind::Lines, title.into())
}

/// A panel of horizontal bars, the first on top; its numbers are on the x axis.
pub fn bars(title: impl Into<String>) -> Panel {
    Panel::new(PanelKind::Bars, title.into())
}

impl Panel {
    fn new(kind: PanelKind, title: String) -> Self {
        let x = Axis::default();
        let y = Axis::default();
        Panel { kind, title, x, y, series: Vec::new(), bars: Vec::new(), marks: Vec::new() }
    }

    /// Label of the x axis; the unit may be empty.
    pub fn x(mut self, label: &str, unit: &str) -> Self {
        self.x.label = labelled(label, unit);
        self
    }

    /// Label of the y axis; the unit may be empty.
    pub fn y(mut self, label: &str, unit: &str) -> Self {
        self.y.label = labelled(label, unit);
        self
    }

    /// A logarithmic x axis; values that are not positive leave gaps.
    pub fn log_x(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// A logarithmic y axis; values that are not positive leave gaps.
    pub fn log_y(mut self) -> Self {
        self.y.log = true;
        self
    }

    /// The x axis from `low` to `high`; without it, all values are in view.
    pub fn x_range(mut self, low: f64, high: f64) -> Self {
        self.x.range = Some((low, high));
        self
    }

    /// The y axis from `low` to `high`; without it, all values are in view.
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y.range = Some((low, high));
        self
    }

    /// A solid line.
    pub fn line(self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.series(name.into(), SeriesStyle::Line, points)
    }

    /// A dashed line.
    pub fn dashed(self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.series(name.into(), SeriesStyle::Dashed, points)
    }

    /// Single points, such as a paper's numbers.
    pub fn points(self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.series(name.into(), SeriesStyle::Points, points)
    }

    /// A band of `(x, low, high)` behind the lines, such as an expected range.
    pub fn band(mut self, name: impl Into<String>, points: Vec<(f64, f64, f64)>) -> Self {
        self.series.push(PanelSeries { name: name.into(), look: SeriesStyle::Band, points });
        self
    }

    /// A bar, with its interval.
    pub fn bar(mut self, name: impl Into<String>, value: Estimate) -> Self {
        self.bars.push(Bar { name: name.into(), value });
        self
    }

    /// A mark on the bar of that name, such as a paper's number.
    pub fn mark(mut self, name: impl Into<String>, bar: impl Into<String>, value: f64) -> Self {
        self.marks.push((name.into(), bar.into(), value));
        self
    }

    fn series(mut self, name: String, look: SeriesStyle, points: Vec<(f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| (x, y, y)).collect();
        self.series.push(PanelSeries { name, look, points });
        self
    }
}

fn labelled(label: &str, unit: &str) -> String {
    match (label, unit) {
        (label, "") => label.to_string(),
        ("", unit) => unit.to_string(),
        (label, unit) => format!("{label}, {unit}"),
    }
}
