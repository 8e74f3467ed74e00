//! Balanced linked adaptation: between LIA's friendliness and OLIA's responsiveness.

use crate::coupling::{CoupledPath, CouplingEntry};
use narrows_base::{Descriptor, Status, WindowChange};

pub const ENTRY: CouplingEntry = CouplingEntry {
    descriptor: &Descriptor {
        name: "balia",
        summary: "balanced linked adaptation: a slower path grows by more and is reduced by more",
        source: "Peng 2016, Multipath TCP: Analysis, Design, and Implementation; draft-walid-mptcp-congestion-control-04",
        senses: "windows, RTTs",
        sets: "increase and decrease of each path's window",
        params: &[],
        status: Status::NotValidated,
    },
    detects: false,
    change: |paths, path| {
        let own = &paths[path];
        let rate: f64 = paths.iter().map(CoupledPath::rate).sum();
        let fastest = paths.iter().map(CoupledPath::rate).fold(0.0, f64::max);
        let alpha = fastest / own.rate();
        let linked = own.rate() / own.srtt.as_secs_f64() / (rate * rate);
        Some(WindowChange {
            increase: linked * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0,
            decrease: 1.0 - alpha.min(1.5) / 2.0,
        })
    },
};
