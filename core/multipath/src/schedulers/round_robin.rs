//! The paths in turn, among those that may send.

use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready};
use crate::scheduler::{Choice, Piece, Scheduler};
use narrows_base::{Descriptor, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "round-robin",
        summary: "the paths in turn, among those that may send",
        source: "Paasch 2014, Experimental Evaluation of Multipath TCP Schedulers, section 2",
        senses: "send limits",
        sets: "path of each packet",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(RoundRobin { last: usize::MAX }),
};

struct RoundRobin {
    last: usize,
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, now: Time, paths: &[PathState], _piece: &Piece) -> Choice {
        let mut ready = ready(now, paths);
        let after = ready.clone().find(|(path, _)| self.last != usize::MAX && *path > self.last);
        match after.or_else(|| ready.next()) {
            Some((path, _)) => {
                self.last = path;
                Choice::Send(path)
            }
            None => Choice::Wait(first_sendable(paths)),
        }
    }
}
