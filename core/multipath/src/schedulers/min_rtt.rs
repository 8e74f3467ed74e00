//! The path with the smallest smoothed RTT among those that may send: the default of the Linux kernel's MPTCP before
//! 5.19 and of most QUIC stacks.

use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready};
use crate::scheduler::{Choice, Piece, Scheduler};
use narrows_base::{Descriptor, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "minrtt",
        summary: "the path with the smallest smoothed RTT that may send",
        source: "Paasch 2014, Experimental Evaluation of Multipath TCP Schedulers, section 2",
        senses: "RTT, send limits",
        sets: "path of each packet",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(MinRtt),
};

struct MinRtt;

impl Scheduler for MinRtt {
    fn choose(&mut self, now: Time, paths: &[PathState], _piece: &Piece) -> Choice {
        let best = ready(now, paths).min_by_key(|(_, p)| p.srtt);
        best.map_or_else(|| Choice::Wait(first_sendable(paths)), |(path, _)| Choice::Send(path))
    }
}
