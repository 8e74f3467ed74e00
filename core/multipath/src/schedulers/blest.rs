//! Blocking estimation: a slower path is left idle if its packet would block the window of the connection for the
//! faster one.

use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready, usable};
use crate::scheduler::{Choice, Piece, Scheduler};
use narrows_base::{Descriptor, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "blest",
        summary: "minrtt, but leaves a slower path idle if its packets would block the send window",
        source: "Ferlin 2016, BLEST: Blocking Estimation-Based MPTCP Scheduler, section III",
        senses: "RTT, windows, waiting data",
        sets: "path of each packet",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(Blest { lambda: 1.0 }),
};

/// The connection's send window in bytes. The paper takes MPTCP's; rrtp's sender bounds the reordering instead, so this
/// is the default limit of Linux's receive buffer (`tcp_rmem`), 6 MiB.
const SEND_WINDOW: f64 = 6.0 * 1024.0 * 1024.0;

struct Blest {
    /// The paper's correction of the estimate. It grows by the blocking that a sender observes, which this sender's
    /// window never causes.
    lambda: f64,
}

impl Scheduler for Blest {
    fn choose(&mut self, now: Time, paths: &[PathState], piece: &Piece) -> Choice {
        let Some((path, slow)) = ready(now, paths).min_by_key(|(_, p)| p.srtt) else {
            return Choice::Wait(first_sendable(paths));
        };
        let Some((fastest, fast)) = usable(paths).min_by_key(|(_, p)| p.srtt) else {
            return Choice::Send(path);
        };
        let rtt_fast = fast.srtt.as_secs_f64();
        let rtt_slow = slow.srtt.as_secs_f64();
        if fastest == path || rtt_fast <= 0.0 {
            return Choice::Send(path);
        }
        let segment = f64::from(piece.length.max(1));
        let rounds = rtt_slow / rtt_fast;
        let window = fast.rate().map_or(fast.cwnd as f64, |r| (r * rtt_fast).min(fast.cwnd as f64));
        // The bytes that the fast path could send during a round trip of the slow one, in congestion avoidance.
        let sent_fast = segment * (window / segment + (rounds - 1.0) / 2.0) * rounds;
        let left = SEND_WINDOW - slow.bytes_in_flight as f64 - segment;
        if sent_fast * self.lambda > left {
            return Choice::Wait(fast.sendable);
        }
        Choice::Send(path)
    }
}
