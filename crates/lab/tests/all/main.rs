//! The laboratory as a whole. One binary: each would link all of it again.

mod bounds;
mod coverage;
mod drawn;
mod input;
mod runs;
mod series;
mod sim_vs_real;
