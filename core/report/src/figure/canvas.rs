//! Drawing primitives of a figure: pixels, colours, text.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Plotters counts in whole pixels; the picture is drawn larger and shown smaller, so that lines
/// are smooth.
pub(super) const PIXEL: i32 = 4;
pub(super) const FONT: &str = "sans-serif";
pub(super) const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
pub(super) const SURE: &str = "a picture in memory takes every element";

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A colour from `#rrggbb`.
pub(super) fn colour(hex: &str) -> RGBColor {
    let part = |at: usize| {
        hex.get(at..at + 2).and_then(|h| u8::from_str_radix(h, 16).ok()).unwrap_or_default()
    };
    RGBColor(part(1), part(3), part(5))
}

/// Text to the right of a point of the drawing, centred in height; the size is in pixels.
pub(super) fn text(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    (font, size, ink): (&str, i32, RGBColor),
) {
    let style = style(font, size).color(&ink).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(text.to_string(), at, style)).expect(SURE);
}

/// Plotters divides sizes by 1.24 for SVG.
pub(super) fn style(font: &str, size: i32) -> TextStyle<'_> {
    TextStyle::from((font, f64::from(size * PIXEL) * 1.24))
}
