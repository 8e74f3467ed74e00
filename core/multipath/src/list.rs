//! The lists of schedulers and of couplings.

use crate::coupling::CouplingEntry;
use crate::couplings::{balia, lia, olia, shared, uncoupled};
use crate::entry::SchedulerEntry;
use crate::schedulers::{blest, earliest, ecf, min_rtt, redundant, round_robin, weighted};
use narrows_base::list::List;

/// The names of all schedulers; the first is the default.
pub const SCHEDULER_NAMES: &[&str] =
    &["earliest", "minrtt", "ecf", "blest", "round-robin", "weighted", "redundant"];

/// All schedulers.
pub static SCHEDULERS: List<SchedulerEntry> = List::new(
    "scheduler",
    &[
        earliest::ENTRY,
        min_rtt::ENTRY,
        ecf::ENTRY,
        blest::ENTRY,
        round_robin::ENTRY,
        weighted::ENTRY,
        redundant::ENTRY,
    ],
);

/// The names of all couplings; the first is the default.
pub const COUPLING_NAMES: &[&str] = &["shared", "uncoupled", "lia", "olia", "balia"];

/// All couplings.
pub static COUPLINGS: List<CouplingEntry> = List::new(
    "coupling",
    &[shared::ENTRY, uncoupled::ENTRY, lia::ENTRY, olia::ENTRY, balia::ENTRY],
);
