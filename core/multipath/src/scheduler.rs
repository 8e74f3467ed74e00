//! The interface of schedulers.

use crate::path::PathState;
use narrows_base::Time;

/// How a piece of data is to be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TrafficClass {
    /// As much per second as possible; the end of all waiting data counts.
    #[default]
    Bulk,
    /// Each piece as early as possible.
    Interactive,
}

/// A piece of data that waits to be sent: new, or declared lost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Piece {
    /// Bytes in it, at most a packet.
    pub length: u32,
    /// Bytes that wait, including the piece: of new data, `u64::MAX` if these have no end, or of lost data for a lost
    /// piece.
    pub backlog: u64,
    /// Bulk data, or data that must arrive soon.
    pub class: TrafficClass,
    /// When it is useless; [`Time::NEVER`] for never.
    pub deadline: Time,
    /// Whether it was sent before and declared lost.
    pub is_lost: bool,
}

/// A piece of data in flight on one path that could be sent again on another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InFlightPiece {
    /// Index of the path that carries it.
    pub path: usize,
    /// When it was sent there.
    pub sent: Time,
    /// Bytes in it.
    pub length: u32,
}

/// A scheduler's decision on a piece of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Send it on the path with this index, which may send now.
    Send(usize),
    /// Wait until this time or until a path's state changes, whichever is first.
    Wait(Time),
}

/// Chooses the path of each piece of data.
///
/// For each piece the transport calls [`choose`](Scheduler::choose), sends and calls [`on_sent`](Scheduler::on_sent).
/// If there is no piece, it offers each path that may send the pieces in flight elsewhere, by
/// [`repeats`](Scheduler::repeats).
pub trait Scheduler: Send {
    /// The path for the next piece. Never an unusable path, nor one that may not send now.
    fn choose(&mut self, now: Time, paths: &[PathState], piece: &Piece) -> Choice;

    /// Whether path `on`, which may send now, should carry a copy of a piece that is in flight on another path. The
    /// transport offers each piece once per path, oldest first. It offers the oldest one that it did not repeat again at
    /// each opportunity.
    fn repeats(
        &mut self,
        _now: Time,
        _paths: &[PathState],
        _on: usize,
        _piece: &InFlightPiece,
    ) -> bool {
        false
    }

    /// Whether copies precede new data.
    fn repeats_first(&self) -> bool {
        false
    }

    /// A piece was sent on a path; `is_copy` if [`repeats`](Scheduler::repeats) asked for it.
    fn on_sent(&mut self, _path: usize, _bytes: u32, _is_copy: bool) {}
}
