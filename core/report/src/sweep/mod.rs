//! Presents the outcome of a sweep, in a terminal and as files.

pub mod json;
pub mod report;
pub mod shown;
mod tables;
#[cfg(feature = "files")]
pub mod write;

#[cfg(test)]
mod tests;

pub use tables::{long, points};
