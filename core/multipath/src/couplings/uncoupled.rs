//! No coupling: each path's controller as if it were alone.

use crate::coupling::CouplingEntry;
use narrows_base::{Descriptor, Status};

pub const ENTRY: CouplingEntry = CouplingEntry {
    descriptor: &Descriptor {
        name: "uncoupled",
        summary: "each path's controller alone: over a shared bottleneck, the share of as many flows",
        source: "RFC 6356, section 1",
        senses: "-",
        sets: "-",
        params: &[],
        status: Status::NotValidated,
    },
    detects: false,
    change: |_, _| None,
};
