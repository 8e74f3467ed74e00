//! Every path carries all data: the earliest copy counts.

use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready, usable};
use crate::scheduler::{Choice, InFlightPiece, Piece, Scheduler};
use narrows_base::{Descriptor, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "redundant",
        summary: "every path carries all data; the earliest copy counts",
        source: "Frommgen 2016, ReMP TCP: Low Latency Multipath TCP",
        senses: "RTT, send limits",
        sets: "paths of each packet",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(Redundant),
};

struct Redundant;

impl Scheduler for Redundant {
    fn choose(&mut self, now: Time, paths: &[PathState], _piece: &Piece) -> Choice {
        let best = ready(now, paths).min_by_key(|(_, p)| p.srtt);
        best.map_or_else(|| Choice::Wait(first_sendable(paths)), |(path, _)| Choice::Send(path))
    }
    fn repeats(&mut self, _: Time, paths: &[PathState], on: usize, _: &InFlightPiece) -> bool {
        usable(paths).any(|(path, _)| path == on)
    }
    fn repeats_first(&self) -> bool {
        true
    }
}
