//! Comparisons and scenarios from the question to what is written of them.

mod runs;
mod series;
