//! Deficit round robin by weight: the path that has sent least for its weight, among those that may send.

use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready};
use crate::scheduler::{Choice, Piece, Scheduler};
use narrows_base::{Descriptor, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "weighted",
        summary: "the path that has sent least for its weight, among those that may send",
        source: "Shreedhar and Varghese 1995, Efficient Fair Queuing Using Deficit Round Robin",
        senses: "weights, send limits",
        sets: "path of each packet",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(Weighted { sent: Vec::new() }),
};

struct Weighted {
    /// Bytes sent on each path, divided by its weight.
    sent: Vec<f64>,
}

/// A path that could not send does not catch up more than this, in bytes divided by the weight.
const MAX_DEFICIT: f64 = 64_000.0;

impl Scheduler for Weighted {
    fn choose(&mut self, now: Time, paths: &[PathState], piece: &Piece) -> Choice {
        self.sent.resize(paths.len(), 0.0);
        let least =
            ready(now, paths).min_by(|(a, _), (b, _)| self.sent[*a].total_cmp(&self.sent[*b]));
        let Some((path, state)) = least else { return Choice::Wait(first_sendable(paths)) };
        self.sent[path] += f64::from(piece.length) / state.weight();
        let most = self.sent.iter().copied().fold(0.0, f64::max);
        for sent in &mut self.sent {
            *sent = sent.max(most - MAX_DEFICIT);
        }
        Choice::Send(path)
    }
}
