//! Opportunistic linked increases: moves window from the paths that have the largest to better ones.

use crate::coupling::{CoupledPath, CouplingEntry};
use narrows_base::{Descriptor, Status, WindowChange};

pub const ENTRY: CouplingEntry = CouplingEntry {
    descriptor: &Descriptor {
        name: "olia",
        summary: "linked increases that move window to the paths with the fewest losses",
        source: "Khalili 2012, MPTCP is not Pareto-optimal; draft-khalili-mptcp-congestion-control-05, section 3",
        senses: "windows, RTTs, packets between losses",
        sets: "increase of each path's window",
        params: &[],
        status: Status::NotValidated,
    },
    detects: false,
    change: |paths, path| {
        let own = &paths[path];
        let rate: f64 = paths.iter().map(CoupledPath::rate).sum();
        let linked = own.rate() / own.srtt.as_secs_f64() / (rate * rate);
        let increase = linked + alpha(paths, path) / own.cwnd;
        Some(WindowChange { increase, decrease: 0.5 })
    },
};

/// The shift of window to this path, in packets per window acknowledged; negative if it moves away. The sum over all
/// paths is 0.
pub(super) fn alpha(paths: &[CoupledPath], path: usize) -> f64 {
    let quality = |p: &CoupledPath| p.loss_interval * p.loss_interval / p.srtt.as_secs_f64();
    let best = paths.iter().map(quality).fold(0.0, f64::max);
    let largest = paths.iter().map(|p| p.cwnd).fold(0.0, f64::max);
    let has_largest = |p: &CoupledPath| p.cwnd >= largest;
    // The collected paths of the draft: among the best, without the largest window.
    let is_collected = |p: &CoupledPath| quality(p) >= best && !has_largest(p);
    let collected = paths.iter().filter(|p| is_collected(p)).count();
    let share = 1.0 / paths.len() as f64;
    if collected == 0 {
        0.0
    } else if is_collected(&paths[path]) {
        share / collected as f64
    } else if has_largest(&paths[path]) {
        -share / paths.iter().filter(|p| has_largest(p)).count() as f64
    } else {
        0.0
    }
}
