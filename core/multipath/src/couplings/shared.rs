//! Paths that share a bottleneck carry data as one: see [`SharedBottleneck`](crate::SharedBottleneck).

use crate::coupling::CouplingEntry;
use narrows_base::{Descriptor, Status};

pub const ENTRY: CouplingEntry = CouplingEntry {
    descriptor: &Descriptor {
        name: "shared",
        summary: "of paths that share a bottleneck only one carries data; separate ones are not coupled",
        source: "of this project, for the purpose of RFC 8382",
        senses: "one-way delays",
        sets: "rate of further paths over one bottleneck",
        params: &[],
        status: Status::NotValidated,
    },
    detects: true,
    change: |_, _| None,
};
