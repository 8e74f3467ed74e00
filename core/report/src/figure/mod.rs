//! Static figures in SVG for the documentation: lines over an axis, bars with intervals, several
//! panels in one picture.
//!
//! ```
//! use narrows_lab::outcome::Estimate;
//! use narrows_report::figure::{Figure, bars, lines};
//!
//! let window = lines("Window")
//!     .x("time", "s")
//!     .y("window", "packets")
//!     .line("reno", vec![(0.0, 1.0), (1.0, 8.0), (2.0, 4.0)])
//!     .band("paper", vec![(0.0, 0.0, 2.0), (2.0, 3.0, 5.0)]);
//! let reno = Estimate::symmetric(1.2, Some(0.1));
//! let goodput = bars("Goodput").x("goodput", "Mbit/s").bar("reno", reno).mark("paper", "reno", 1.3);
//! let svg = Figure::new().panel(window).panel(goodput).caption("narrows compare, seed 1").svg();
//! assert!(svg.starts_with("<svg"));
//! ```
//!
//! A name keeps its colour in all panels of a figure. Values that are not numbers leave gaps.
//! Long series are thinned, so that a figure stays small. The text is set in the reader's sans-serif
//! font; plotters only estimates its width, which needs no font library.

mod axis;
mod canvas;
mod clip;
mod draw;
mod legend;
mod panel;

#[cfg(test)]
mod tests;

pub use crate::thin::thin;
pub use panel::{Figure, Panel, bars, lines};

impl Figure {
    /// The picture.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }
}
