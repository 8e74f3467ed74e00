//! Linked increases: all paths together grow as one flow on the best path.

use crate::coupling::{CoupledPath, CouplingEntry};
use narrows_base::{Descriptor, Status, WindowChange};

pub const ENTRY: CouplingEntry = CouplingEntry {
    descriptor: &Descriptor {
        name: "lia",
        summary: "linked increases: together no faster than one flow on the best path",
        source: "RFC 6356, section 3",
        senses: "windows, RTTs",
        sets: "increase of each path's window",
        params: &[],
        status: Status::NotValidated,
    },
    detects: false,
    change: |paths, path| {
        let total: f64 = paths.iter().map(|p| p.cwnd).sum();
        let increase = (alpha(paths) / total).min(1.0 / paths[path].cwnd);
        Some(WindowChange { increase, decrease: 0.5 })
    },
};

/// Equation 2.
pub(super) fn alpha(paths: &[CoupledPath]) -> f64 {
    let total: f64 = paths.iter().map(|p| p.cwnd).sum();
    let best = paths.iter().map(|p| p.rate() / p.srtt.as_secs_f64()).fold(0.0, f64::max);
    let rate: f64 = paths.iter().map(CoupledPath::rate).sum();
    total * best / (rate * rate)
}
