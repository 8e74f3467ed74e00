//! Names and colours: which series has which colour, and the lines of keys above a panel.

use super::canvas::{Area, FONT, INK, PIXEL, colour, text};
use super::panel::{Figure, Panel, PanelKind, SeriesStyle};
use crate::palette;
use plotters::prelude::*;

/// Height of a line of keys and the size of its text, in pixels of the picture.
const LINE: i32 = 18;
const SIZE: i32 = 12;

/// How a name is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LegendKey {
    pub name: String,
    pub look: SeriesStyle,
    pub colour: RGBColor,
}

/// The colour of each name of a figure: in order of first use, over all panels.
pub(super) struct Colours(Vec<String>);

impl Colours {
    pub fn of(figure: &Figure) -> Self {
        // Bars have the first colour, so their marks must have a different one.
        let only_bars = figure.panels.iter().all(|p| p.kind == PanelKind::Bars);
        let mut names = if only_bars { vec![String::new()] } else { Vec::new() };
        for panel in &figure.panels {
            let series = panel.series.iter().map(|s| &s.name);
            for name in series.chain(panel.marks.iter().map(|m| &m.0)) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        Colours(names)
    }

    pub fn get(&self, name: &str) -> RGBColor {
        let place = self.0.iter().position(|n| n == name).unwrap_or(0);
        colour(palette::LIGHT[place % palette::LIGHT.len()])
    }
}

/// The keys of a panel, without repetition.
pub(super) fn keys(panel: &Panel, colours: &Colours) -> Vec<LegendKey> {
    let series = panel.series.iter().map(|s| (&s.name, s.look));
    let marks = panel.marks.iter().map(|m| (&m.0, SeriesStyle::Points));
    let mut keys: Vec<LegendKey> = Vec::new();
    for (name, look) in series.chain(marks) {
        let key = LegendKey { name: name.clone(), look, colour: colours.get(name) };
        if !name.is_empty() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    // A band around a line needs no key beside that of the line of the same name.
    let lines: Vec<String> =
        keys.iter().filter(|k| k.look == SeriesStyle::Line).map(|k| k.name.clone()).collect();
    keys.retain(|k| k.look != SeriesStyle::Band || !lines.contains(&k.name));
    keys
}

/// The keys of all panels, if they are the same and are drawn once for the whole figure.
pub(super) fn common(figure: &Figure, colours: &Colours) -> Option<Vec<LegendKey>> {
    let mut all = figure.panels.iter().map(|p| keys(p, colours));
    let first = all.next()?;
    (figure.panels.len() > 1 && !first.is_empty() && all.all(|k| k == first)).then_some(first)
}

/// Position of each key, in a width in pixels, and the height of all lines.
fn places(keys: &[LegendKey], width: i32) -> (Vec<(i32, i32)>, i32) {
    let mut x = 0;
    let mut y = 0;
    let mut places = Vec::new();
    for key in keys {
        let wide = 26 + key.name.chars().count() as i32 * 67 / 10 + 16;
        if x > 0 && x + wide > width {
            x = 0;
            y += LINE;
        }
        places.push((x, y));
        x += wide;
    }
    (places, if keys.is_empty() { 0 } else { y + LINE + 2 })
}

/// The height of the keys in a width, in pixels.
pub(super) fn height(keys: &[LegendKey], width: i32) -> i32 {
    places(keys, width).1
}

/// Draws keys from a point on, in pixels.
pub(super) fn draw(area: &Area<'_>, keys: &[LegendKey], at: (i32, i32), width: i32) {
    for (key, (x, y)) in keys.iter().zip(places(keys, width).0) {
        let p = |dx: i32, dy: i32| ((at.0 + x + dx) * PIXEL, (at.1 + y + dy) * PIXEL);
        let stroke = |width: i32| key.colour.stroke_width((width * PIXEL) as u32);
        let drawn = match key.look {
            SeriesStyle::Line => area.draw(&PathElement::new(vec![p(0, 8), p(20, 8)], stroke(2))),
            SeriesStyle::Dashed => area
                .draw(&PathElement::new(vec![p(0, 8), p(8, 8)], stroke(2)))
                .and_then(|()| area.draw(&PathElement::new(vec![p(12, 8), p(20, 8)], stroke(2)))),
            SeriesStyle::Points => area.draw(&Circle::new(p(10, 8), 4 * PIXEL, stroke(2))),
            SeriesStyle::Band => {
                area.draw(&Rectangle::new([p(0, 2), p(20, 14)], key.colour.mix(0.25).filled()))
            }
        };
        drawn.expect("a picture in memory takes every element");
        text(area, &key.name, p(26, 8), (FONT, SIZE, INK));
    }
}
