//! Measures of frames: sums over the flows that have frames, NaN without such flows.

use super::inputs::{FlowInputs, GroupInputs, ratio};
use narrows_sim::{FrameResult, Histogram};

/// A quantile of frame delays in seconds.
pub(super) fn delay(delays: &Histogram, quantile: f64) -> f64 {
    delays.quantile(quantile).map_or(f64::NAN, |ns| ns as f64 * 1e-9)
}

/// For one flow.
pub(super) fn of_one(flow: &FlowInputs<'_>, of: fn(&FrameResult) -> f64) -> f64 {
    flow.frames.as_deref().map_or(f64::NAN, of)
}

/// The sum over the group's flows of one figure over that of another.
pub(super) fn share(
    view: &GroupInputs<'_>,
    of: fn(&FrameResult) -> f64,
    over: fn(&FrameResult) -> f64,
) -> f64 {
    let frames = || view.flows().filter_map(|f| f.frames.as_deref());
    ratio(frames().map(of).sum(), frames().map(over).sum())
}

/// NaN for a single layer.
pub(super) fn layered(result: &FrameResult, value: f64) -> f64 {
    if result.most_layers > 1 { value } else { f64::NAN }
}
