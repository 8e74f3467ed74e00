//! Comparisons and scenarios, from the question to the written results.

mod runs;
mod series;
