//! Colours that colour-blind readers can tell apart, on paper and on dark screens.
//!
//! After Okabe and Ito, "Color Universal Design" (2008); its yellow, too pale for a line on white,
//! is left out. The report's page takes its colours from here too.

/// Colours of series on a light ground, in the order of use.
pub const LIGHT: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b98500", "#4d4d4d"];

/// The same colours for a dark ground, in the same order.
pub const DARK: [&str; 7] =
    ["#4aa8e8", "#ff8a3d", "#2fc79b", "#e39ac4", "#9bd6ff", "#e6b94a", "#b8b8b8"];
