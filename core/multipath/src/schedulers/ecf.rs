//! Earliest completion first: a slower path is left idle if the fastest one would deliver all waiting data sooner.

use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready, usable};
use crate::scheduler::{Choice, Piece, Scheduler};
use narrows_base::{Descriptor, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "ecf",
        summary: "minrtt, but waits for the fastest path if that delivers all waiting data sooner",
        source: "Lim 2017, ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, algorithm 1",
        senses: "RTT, RTT variation, windows, waiting data",
        sets: "path of each packet",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(Ecf { is_waiting: false }),
};

/// Hysteresis beta of algorithm 1; the value is that of its Linux code.
const BETA: f64 = 0.25;

struct Ecf {
    is_waiting: bool,
}

impl Scheduler for Ecf {
    fn choose(&mut self, now: Time, paths: &[PathState], piece: &Piece) -> Choice {
        let Some((path, second)) = ready(now, paths).min_by_key(|(_, p)| p.srtt) else {
            return Choice::Wait(first_sendable(paths));
        };
        let Some((fastest, first)) = usable(paths).min_by_key(|(_, p)| p.srtt) else {
            return Choice::Send(path);
        };
        if fastest == path {
            return Choice::Send(path);
        }
        // The paper's names: k waiting segments, windows w and RTTs of the fastest (f) and this path (s).
        let segment = f64::from(piece.length.max(1));
        let window = |p: &PathState| {
            let rate = p.rate().map_or(p.cwnd as f64, |rate| rate * p.srtt.as_secs_f64());
            (rate.min(p.cwnd as f64) / segment).max(1.0)
        };
        let k = piece.backlog as f64 / segment;
        let rtt_f = first.srtt.as_secs_f64();
        let rtt_s = second.srtt.as_secs_f64();
        let delta = first.rttvar.max(second.rttvar).as_secs_f64();
        let n = 1.0 + k / window(first);
        let beta = if self.is_waiting { BETA } else { 0.0 };
        if n * rtt_f < (1.0 + beta) * (rtt_s + delta) {
            if (k / window(second)).ceil() * rtt_s >= 2.0 * rtt_f + delta {
                self.is_waiting = true;
                return Choice::Wait(first.sendable);
            }
        } else {
            self.is_waiting = false;
        }
        Choice::Send(path)
    }
}
