//! The schedulers, one file each.

pub(crate) mod blest;
pub(crate) mod earliest;
pub(crate) mod ecf;
pub(crate) mod min_rtt;
pub(crate) mod redundant;
pub(crate) mod round_robin;
pub(crate) mod weighted;
