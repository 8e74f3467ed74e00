//! The laboratory as a whole. One binary: each would link all of it again.

mod attacks;
mod bounds;
mod coverage;
mod drawn;
mod limits;
mod questions;
