//! The list of loss recoveries.

use super::tcp_config::RecoveryKind;
use narrows_base::list::{List, Listed};
use narrows_base::{Descriptor, Status};

/// A loss recovery.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecoveryEntry {
    /// Name, summary and sources.
    pub descriptor: &'static Descriptor,
    /// The value in [`TcpConfig`](super::TcpConfig).
    pub kind: RecoveryKind,
}

impl Listed for RecoveryEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

/// All loss recoveries.
pub static RECOVERIES: List<RecoveryEntry> = List::new(
    "recovery",
    &[
        RecoveryEntry { descriptor: &TAHOE, kind: RecoveryKind::Tahoe },
        RecoveryEntry { descriptor: &RENO, kind: RecoveryKind::Reno },
        RecoveryEntry { descriptor: &NEWRENO, kind: RecoveryKind::NewReno },
        RecoveryEntry { descriptor: &SACK, kind: RecoveryKind::Sack },
        RecoveryEntry { descriptor: &SACK1, kind: RecoveryKind::Sack1 },
        RecoveryEntry { descriptor: &VEGAS, kind: RecoveryKind::Vegas },
        RecoveryEntry { descriptor: &RACK, kind: RecoveryKind::Rack },
    ],
);

const fn recovery(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    status: Status,
) -> Descriptor {
    Descriptor {
        name,
        summary,
        source,
        senses: "acknowledgements",
        sets: "which segments are sent again, and how many are outstanding",
        params: &[],
        status,
    }
}

const AGAINST_NS2: Status = Status::Validated("ns-2.35 (docs/validation.md)");
const TAHOE: Descriptor = recovery(
    "tahoe",
    "the third duplicate starts the window anew and goes back to the hole",
    "Jacobson 1988; RFC 5681 section 3.1",
    AGAINST_NS2,
);
const RENO: Descriptor = recovery(
    "reno-1990",
    "fast retransmit; any advance ends fast recovery",
    "RFC 5681 section 3.2",
    AGAINST_NS2,
);
const NEWRENO: Descriptor =
    recovery("newreno", "one hole per partial acknowledgement", "RFC 6582", AGAINST_NS2);
const SACK: Descriptor = recovery(
    "sack",
    "selective acknowledgements, pipe and scoreboard",
    "RFC 2018, RFC 6675",
    AGAINST_NS2,
);
const SACK1: Descriptor = recovery(
    "sack1",
    "selective acknowledgements as in ns-2 Sack1: counts ACKs, forgets blocks at a timeout",
    "ns-2.35 tcp-sack1; Fall and Floyd 1996",
    AGAINST_NS2,
);
const VEGAS: Descriptor = recovery(
    "vegas",
    "Reno that also checks a segment's age at the first duplicates",
    "Brakmo and Peterson 1995; ns-2 Vegas",
    AGAINST_NS2,
);
const RACK: Descriptor = recovery(
    "rack",
    "losses by time of sending, tail loss probes, proportional rate reduction, F-RTO: today's Linux",
    "RFC 8985, RFC 9937, RFC 5682",
    Status::Validated("Linux 6.1 (docs/validation.md)"),
);
