//! Tests of the whole crate, in one binary to save link time.

mod attacks;
mod bounds;
mod coverage;
mod drawn;
mod judgement;
mod limits;
mod questions;
