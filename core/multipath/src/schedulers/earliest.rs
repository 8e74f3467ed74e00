//! Our default: each piece takes the path that delivers it first, counting the bytes that wait before it.
//!
//! For each path the scheduler estimates when it would deliver a piece: see `arrival`. The piece leaves on the path that
//! delivers it first of those that may send now, unless faster paths would deliver everything that waits before that.
//! So bulk data use all paths, the last bytes of a transfer leave on the fast ones, and a flow that fits on the best path
//! waits for no other. Interactive pieces go to the path that delivers them first, even if it must be waited for.
//!
//! If no data wait, pieces in flight that a path would deliver before the path that carries them are sent again, within
//! a share of extra bytes.

use crate::arrival::{delay, delay_of_lost, departure, transmission};
use crate::entry::SchedulerEntry;
use crate::path::{PathState, first_sendable, ready, usable};
use crate::scheduler::{Choice, InFlightPiece, Piece, Scheduler, TrafficClass};
use narrows_base::{Descriptor, Duration, Status, Time};

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    descriptor: &Descriptor {
        name: "earliest",
        summary: "each packet on the path that delivers it first, counting the data that wait before it",
        source: "of this project, after ECF (Lim 2017) and XLINK (Zheng 2021)",
        senses: "rate, RTT, RTT variation, loss, send limits, waiting data",
        sets: "path of each packet; late packets are repeated at the end of data",
        params: &[],
        status: Status::NotValidated,
    },
    build: || Box::new(Earliest::default()),
};

/// Limit on copies, as a share of all bytes sent. XLINK measured 2.1% (section 7).
const EXTRA_SHARE: f64 = 0.03;
/// Copies that a short transfer may send beyond that share, in bytes: an initial window (RFC 6928).
const EXTRA_BYTES: f64 = 14_600.0;

#[derive(Default)]
struct Earliest {
    sent: f64,
    copied: f64,
}

impl Scheduler for Earliest {
    fn choose(&mut self, now: Time, paths: &[PathState], piece: &Piece) -> Choice {
        let delay = |path: &PathState| match piece.is_lost {
            true => delay_of_lost(path, piece.length),
            false => delay(path),
        };
        let arrival =
            |path: &PathState| now + transmission(path, u64::from(piece.length)) + delay(path);
        let Some((path, best)) = ready(now, paths).min_by_key(|(_, p)| arrival(p)) else {
            return Choice::Wait(first_sendable(paths));
        };
        let here = arrival(best);
        let backlog = if piece.class == TrafficClass::Interactive {
            u64::from(piece.length)
        } else {
            piece.backlog
        };
        if backlog == u64::MAX {
            return Choice::Send(path);
        }
        // Paths that would have delivered their share of all waiting data before this one delivers the piece.
        let mut rate = 0.0;
        let mut sendable = Time::NEVER;
        let mut delivered = Time::ZERO;
        for (_, faster) in usable(paths) {
            let start = departure(now, faster, piece.length) + delay(faster);
            if !faster.is_sendable(now)
                && start < here
                && let Some(r) = faster.rate()
            {
                rate += r;
                sendable = sendable.min(faster.sendable);
                delivered = delivered.max(start);
            }
        }
        let end = delivered + Duration::from_secs_f64(backlog as f64 / rate);
        if rate > 0.0 && end < here { Choice::Wait(sendable) } else { Choice::Send(path) }
    }

    fn repeats(
        &mut self,
        now: Time,
        paths: &[PathState],
        on: usize,
        piece: &InFlightPiece,
    ) -> bool {
        let length = u64::from(piece.length);
        if self.copied + length as f64 > EXTRA_BYTES + EXTRA_SHARE * self.sent {
            return false;
        }
        let target = usable(paths).find(|(path, _)| *path == on);
        let (Some((_, target)), Some(carrier)) = (target, paths.get(piece.path)) else {
            return false;
        };
        let answered = piece.sent + carrier.srtt + carrier.rttvar.saturating_mul(2);
        let there = if now <= answered { piece.sent } else { now } + delay(carrier);
        now + transmission(target, length) + delay(target) < there
    }

    fn on_sent(&mut self, _path: usize, bytes: u32, is_copy: bool) {
        self.sent += f64::from(bytes);
        if is_copy {
            self.copied += f64::from(bytes);
        }
    }
}
