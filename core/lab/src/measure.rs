//! Measures of groups of flows and of single flows.

mod frames;
mod inputs;
mod list;

pub use inputs::{Better, FlowInputs, GroupInputs, Measure, ROUGHNESS, loss_events};
pub use list::{MEASURES, find};
