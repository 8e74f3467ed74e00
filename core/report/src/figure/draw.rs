//! Draws a figure with plotters.

use super::axis::Scale;
use super::canvas::{Area, FONT, INK, PIXEL, SURE, colour, style, text};
use super::clip::clip;
use super::legend::{self, Colours, LegendKey};
use super::panel::{Axis, Figure, Panel, PanelKind, PanelSeries, SeriesStyle};
use crate::palette;
use crate::thin::thin;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

const QUIET: RGBColor = RGBColor(0x5a, 0x64, 0x72);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xeb);
const FRAME: RGBColor = RGBColor(0x9a, 0xa5, 0xb3);
/// Each of these colours, and of the palette's, on a dark ground; as the SVG writes them.
const IN_THE_DARK: [(&str, &str); 5] = [
    ("#FFFFFF", "#14171c"),
    ("#1B1F24", "#e6e9ee"),
    ("#5A6472", "#9aa5b3"),
    ("#E3E6EB", "#2a303a"),
    ("#9AA5B3", "#5a6472"),
];
/// Most points of a line.
const POINTS: usize = 1200;
/// Space around a panel, height of its title and of the caption, in pixels.
const MARGIN: i32 = 14;
const TITLE: i32 = 24;
const CAPTION: i32 = 22;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

pub(super) fn svg(figure: &Figure) -> String {
    let columns = figure.columns.unwrap_or(2).min(figure.panels.len()).max(1) as i32;
    let rows = (figure.panels.len() as i32 + columns - 1) / columns;
    let default = if columns == 1 { (760, 380) } else { (480, 300) };
    let (wide, high) = figure.size.map_or(default, |(w, h)| (w as i32, h as i32));
    let colours = Colours::of(figure);
    let common = legend::common(figure, &colours);
    let width = wide * columns;
    let keys = common.as_deref().unwrap_or_default();
    let head = match legend::height(keys, width - 2 * MARGIN) {
        0 => 0,
        height => height + MARGIN / 2,
    };
    let foot = if figure.caption.is_empty() { 0 } else { CAPTION };
    let height = head + rows * high + foot;

    let mut out = String::new();
    {
        let size = ((width * PIXEL) as u32, (height * PIXEL) as u32);
        let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
        root.fill(&WHITE).expect(SURE);
        legend::draw(&root, keys, (MARGIN, MARGIN / 2), width - 2 * MARGIN);
        for (place, panel) in figure.panels.iter().enumerate() {
            let column = place as i32 % columns;
            let row = place as i32 / columns;
            let x = column * wide;
            let y = head + row * high;
            let area = root.clone().shrink((x * PIXEL, y * PIXEL), (wide * PIXEL, high * PIXEL));
            let keys = if common.is_some() { Vec::new() } else { legend::keys(panel, &colours) };
            draw_panel(&area, panel, &colours, &keys, (wide, high));
        }
        if foot > 0 {
            let at = (MARGIN * PIXEL, (height - CAPTION / 2 - 2) * PIXEL);
            text(&root, &figure.caption, at, (FONT, 11, QUIET));
        }
        root.present().expect(SURE);
    }
    shown(&out, figure, (width, height))
}

/// Shows the drawing at its size in pixels, with a description as text.
fn shown(drawing: &str, figure: &Figure, (width, height): (i32, i32)) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let titles: Vec<&str> = figure.panels.iter().map(|p| p.title.as_str()).collect();
    let body = drawing.split_once('>').map_or("", |(_, body)| body);
    let mut out = String::with_capacity(drawing.len() + 400);
    let _ = write!(
        out,
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n<desc>{}</desc>\n{}",
        width * PIXEL,
        height * PIXEL,
        escape(&titles.join(", ")),
        escape(&figure.caption),
        dark_style()
    );
    out.push_str(body);
    // Names in it may come from a file.
    narrows_base::text::escaped_lines(&out).into_owned()
}

/// Colours for systems in dark mode. Viewers without support for style sheets draw the light colours.
fn dark_style() -> String {
    let palette = palette::LIGHT.iter().zip(palette::DARK);
    let palette = palette.map(|(light, dark)| (light.to_uppercase(), dark));
    let others = IN_THE_DARK.iter().map(|(light, dark)| ((*light).to_string(), *dark));
    let mut out = String::from("<style>@media (prefers-color-scheme: dark) {");
    for (light, dark) in others.chain(palette) {
        let _ =
            write!(out, " [fill=\"{light}\"]{{fill:{dark}}} [stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    out.push_str(" }</style>");
    out
}

fn draw_panel(
    area: &Area<'_>,
    panel: &Panel,
    colours: &Colours,
    keys: &[LegendKey],
    size: (i32, i32),
) {
    let (wide, high) = size;
    let mut top = MARGIN / 2;
    if !panel.title.is_empty() {
        let at = (MARGIN * PIXEL, (top + TITLE / 2) * PIXEL);
        let bold = style(FONT, 14).color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        let bold = TextStyle { font: bold.font.clone().style(FontStyle::Bold), ..bold };
        area.draw(&Text::new(panel.title.clone(), at, bold)).expect(SURE);
        top += TITLE;
    }
    legend::draw(area, keys, (MARGIN, top), wide - 2 * MARGIN);
    top += legend::height(keys, wide - 2 * MARGIN) + 4;

    let (x, y) = scales(panel);
    let name = |at: f64| panel.bars.get(at.round() as usize).map_or("", |b| b.name.as_str());
    let y_label = |at: &f64| match panel.kind {
        PanelKind::Lines => y.label(*at),
        PanelKind::Bars => name(*at).to_string(),
    };
    let longest = y.ticks.iter().map(|t| y_label(t).chars().count()).max().unwrap_or(0) as i32;
    let left = longest * 7 + 12 + if panel.y.label.is_empty() { 0 } else { 20 };
    let below = 20 + if panel.x.label.is_empty() { 0 } else { 16 };
    let chart_area =
        area.clone().shrink((0, top * PIXEL), (wide * PIXEL, (high - top).max(40) * PIXEL));
    let mut chart = ChartBuilder::on(&chart_area)
        .margin_left((MARGIN - 6) * PIXEL)
        .margin_right(MARGIN * PIXEL)
        .margin_bottom(6 * PIXEL)
        .x_label_area_size(below * PIXEL)
        .y_label_area_size(left.min(wide / 2) * PIXEL)
        .build_cartesian_2d(x.clone(), y.clone())
        .expect(SURE);
    let mut mesh = chart.configure_mesh();
    if panel.kind == PanelKind::Bars {
        mesh.disable_y_mesh();
    }
    mesh.bold_line_style(GRID.stroke_width(PIXEL as u32))
        .light_line_style(TRANSPARENT)
        .axis_style(FRAME.stroke_width(PIXEL as u32))
        .label_style(style(FONT, 12).color(&INK))
        .axis_desc_style(style(FONT, 12).color(&QUIET))
        .set_all_tick_mark_size(3 * PIXEL)
        .x_labels(20)
        .y_labels(panel.bars.len().max(20))
        .x_label_formatter(&|at| x.label(*at))
        .y_label_formatter(&y_label)
        .x_desc(panel.x.label.as_str())
        .y_desc(panel.y.label.as_str())
        .draw()
        .expect(SURE);

    // Bands lie behind lines, and points on top of them.
    let depth = |look| match look {
        SeriesStyle::Band => 0,
        SeriesStyle::Line | SeriesStyle::Dashed => 1,
        SeriesStyle::Points => 2,
    };
    let mut series: Vec<&PanelSeries> = panel.series.iter().collect();
    series.sort_by_key(|s| depth(s.look));
    for one in series {
        draw_series(&mut chart, one, colours.get(&one.name), &x, &y);
    }
    draw_bars(&mut chart, panel, colours, &x);
}

fn scales(panel: &Panel) -> (Scale, Scale) {
    match panel.kind {
        PanelKind::Lines => {
            let points = || panel.series.iter().flat_map(|s| &s.points);
            let heights = points().flat_map(|p| [p.1, p.2]);
            (
                Scale::new(&panel.x, points().map(|p| p.0), true),
                Scale::new(&panel.y, heights, false),
            )
        }
        PanelKind::Bars => {
            let ends = panel
                .bars
                .iter()
                .flat_map(|b| [b.value.mean, b.value.ci95().map_or(f64::NAN, |e| e.high)]);
            let ends = ends.chain(panel.marks.iter().map(|m| m.2));
            // Bars start at zero, on a logarithmic axis at its left end.
            let zero = (!panel.x.log).then_some(0.0);
            let mut y = Scale::new(&Axis::default(), std::iter::empty(), true);
            y.low = panel.bars.len().max(1) as f64 - 0.4;
            y.high = -0.6;
            y.ticks = (0..panel.bars.len()).map(|i| i as f64).collect();
            (Scale::new(&panel.x, ends.chain(zero), false), y)
        }
    }
}

fn draw_series(
    chart: &mut Chart<'_, '_>,
    series: &PanelSeries,
    ink: RGBColor,
    x: &Scale,
    y: &Scale,
) {
    let low = (x.low, y.low);
    let high = (x.high, y.high);
    let at = |a: f64, b: f64| Some((x.at(a)?, y.at(b)?));
    let stroke = ink.stroke_width((17 * PIXEL / 10) as u32);
    match series.look {
        SeriesStyle::Line | SeriesStyle::Dashed => {
            let heights: Vec<f64> = series.points.iter().map(|p| p.1).collect();
            let kept = thin(&heights, POINTS);
            let points = kept.into_iter().map(|i| at(series.points[i].0, heights[i]));
            for part in clip(points, low, high) {
                if series.look == SeriesStyle::Line {
                    chart.plotting_area().draw(&PathElement::new(part, stroke)).expect(SURE);
                } else {
                    let dashed = DashedPathElement::new(part, 7 * PIXEL, 5 * PIXEL, stroke);
                    chart.plotting_area().draw(&dashed).expect(SURE);
                }
            }
        }
        SeriesStyle::Points => {
            let inside =
                |p: &(f64, f64)| (low.0..=high.0).contains(&p.0) && (low.1..=high.1).contains(&p.1);
            for p in series.points.iter().filter_map(|p| at(p.0, p.1)).filter(inside) {
                chart.plotting_area().draw(&Circle::new(p, 4 * PIXEL, stroke)).expect(SURE);
            }
        }
        SeriesStyle::Band => {
            let inside = |p: (f64, f64)| (p.0.clamp(low.0, high.0), p.1.clamp(low.1, high.1));
            let upper = series.points.iter().filter_map(|p| at(p.0, p.2));
            let lower = series.points.iter().rev().filter_map(|p| at(p.0, p.1));
            let outline: Vec<(f64, f64)> = upper.chain(lower).map(inside).collect();
            if outline.len() > 2 {
                chart.plotting_area().draw(&Polygon::new(outline, ink.mix(0.2))).expect(SURE);
            }
        }
    }
}

fn draw_bars(chart: &mut Chart<'_, '_>, panel: &Panel, colours: &Colours, x: &Scale) {
    let ink = colour(palette::LIGHT[0]);
    let at = |value: f64| x.at(value).map(|v| v.clamp(x.low, x.high));
    let start = if panel.x.log { x.low } else { 0f64.clamp(x.low, x.high) };
    let stroke = |ink: RGBColor, tenths: i32| ink.stroke_width((tenths * PIXEL / 10) as u32);
    for (place, bar) in panel.bars.iter().enumerate() {
        let place = place as f64;
        let Some(end) = at(bar.value.mean) else { continue };
        let corners = [(start, place - 0.33), (end, place + 0.33)];
        chart.plotting_area().draw(&Rectangle::new(corners, ink.mix(0.85).filled())).expect(SURE);
        let Some(ends) = bar.value.ci95().filter(|e| e.high > e.low) else { continue };
        let low = at(ends.low).unwrap_or(x.low);
        let high = at(ends.high).unwrap_or(x.high);
        let tick = |at| vec![(at, place - 0.14), (at, place + 0.14)];
        for line in [vec![(low, place), (high, place)], tick(low), tick(high)] {
            chart.plotting_area().draw(&PathElement::new(line, stroke(INK, 13))).expect(SURE);
        }
    }
    for (name, bar, value) in &panel.marks {
        let place = panel.bars.iter().position(|b| b.name == *bar);
        if let (Some(place), Some(value)) = (place, at(*value)) {
            let mark = Circle::new((value, place as f64), 4 * PIXEL, stroke(colours.get(name), 20));
            chart.plotting_area().draw(&mark).expect(SURE);
        }
    }
}
