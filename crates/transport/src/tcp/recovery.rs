//! Loss recovery: which segments are lost, and which are sent again; a file per kind.
//!
//! ```text
//!            3rd duplicate, or SACK says lost
//!     Open ------------------------------------> FastRecovery (all but Tahoe)
//!      ^  \                                        |
//!      |   \ timeout; Tahoe's 3rd duplicate        | advance past `recover` (Reno: any advance)
//!      |    v                                      v
//!      +-- SlowStart --(advance past `recover`)--> Open
//! ```
//!
//! A recovery never sets a window. It counts what is outstanding, and adds a signed number to the window:
//! Reno's inflation by duplicates, limited transmit, NewReno's deflation.

mod any;
mod duplicates;
mod newreno;
mod rack;
mod reno;
mod sack;
mod sack1;
mod sacked;
mod tahoe;
mod vegas;

pub(crate) use any::Recovery;

use super::scoreboard::{Scoreboard, Segment};
use crate::rtt::RttEstimator;
use narrows_base::{Duration, Time};
use narrows_congestion::LossFoundBy;

/// Duplicates that make a loss (RFC 5681; DupThresh of RFC 6675).
const DUP_THRESH: u64 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    FastRecovery,
    /// What was in flight at a timeout, or at Tahoe's loss, is sent again from slow start.
    SlowStart,
}

/// Where a recovery stands: what the sender reads for every packet, the same for every kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub phase: Phase,
    /// Duplicates since the last advance.
    dupacks: u64,
    /// One past the highest segment sent when the last episode began.
    recover: u64,
    /// Segments added to the window; may be negative.
    pub inflation: i64,
    /// Copies outstanding by the kind's own count, and whether that is what is held against the window.
    pipe: i64,
    by_pipe: bool,
}

/// An acknowledgement, once the scoreboard has been updated by it.
#[derive(Clone, Copy)]
pub(crate) struct Acked<'a> {
    pub now: Time,
    /// Segments that it acknowledges cumulatively for the first time.
    pub newly_acked: u64,
    /// It acknowledges none, and some are outstanding.
    pub duplicate: bool,
    /// When the packet left that it answers.
    pub echo: Time,
    /// The smallest RTT of the path.
    pub min_rtt: Duration,
    pub rtt: &'a RttEstimator,
}

/// Segments found lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub segments: u64,
    /// When the last copy of the first of them left, and which copy that was.
    pub sent: Time,
    pub transmissions: u32,
    pub found_by: LossFoundBy,
}

impl Lost {
    fn one(scoreboard: &Scoreboard, seq: u64, found_by: LossFoundBy) -> Lost {
        let segment = scoreboard.get(seq);
        let transmissions = u32::from(segment.transmissions);
        Lost { segments: 1, sent: segment.sent, transmissions, found_by }
    }
}

/// What an acknowledgement did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub lost: Option<Lost>,
    /// Fast recovery began.
    pub begins: bool,
    /// Fast recovery ended.
    pub ends: bool,
    /// The window begins anew (Tahoe).
    pub restarts: bool,
    /// A segment to send at once, whatever the window.
    pub force: Option<u64>,
    /// The retransmission timer must not be restarted by this advance.
    pub keep_timer: bool,
    /// What was held for lost since the last reduction was not.
    pub undo: bool,
    /// When to look again whether what is missing is lost.
    pub reorder_wait: Option<Duration>,
}

/// A kind of loss recovery. What has a default here only selective acknowledgements need.
trait LossRecovery {
    /// Decides, after the scoreboard is up to date.
    fn on_ack(
        &mut self,
        state: &mut State,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> Outcome;

    /// The flight was given up: what follows `una` is sent again.
    fn on_restart(&mut self, _scoreboard: &mut Scoreboard) {}

    /// Takes in a SACK block; calls `fresh` with each segment that is newly reported.
    #[inline]
    fn on_block(
        &mut self,
        _state: &mut State,
        _scoreboard: &mut Scoreboard,
        _block: (u64, u64),
        _fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
    }

    /// Segments above `una` that are known to have arrived.
    fn sacked(&self) -> u64 {
        0
    }

    /// In fast recovery: the lost segment to send again next, before new data.
    fn next_hole(&mut self, _state: &State, _scoreboard: &Scoreboard) -> Option<u64> {
        None
    }

    /// In fast recovery without new data: a segment that may be lost.
    fn next_guess(&mut self, _scoreboard: &Scoreboard) -> Option<u64> {
        None
    }

    /// `seq` was sent again in this fast recovery.
    fn on_retransmitted(&mut self, _seq: u64) {}

    /// An acknowledgement is about to be read.
    #[inline]
    fn begin_ack(&mut self, _now: Time, _min_rtt: Duration) {}

    /// A copy of a segment left; `repair` if it was sent before.
    #[inline]
    fn on_copy(&mut self, _now: Time, _seq: u64, _repair: bool) {}

    /// A segment is cumulatively acknowledged.
    #[inline]
    fn on_acked_segment(&mut self, _state: &State, _seq: u64, _segment: &Segment) {}

    /// The time has come that [`Outcome::reorder_wait`] asked for.
    fn on_reorder_timeout(
        &mut self,
        _state: &mut State,
        _scoreboard: &mut Scoreboard,
        _acked: Acked<'_>,
    ) -> Outcome {
        Outcome::default()
    }
}

impl State {
    /// The cumulative acknowledgement advanced outside fast recovery.
    #[inline]
    fn advance(&mut self, scoreboard: &Scoreboard) {
        self.inflation = 0;
        if self.phase == Phase::SlowStart && scoreboard.una >= self.recover {
            self.phase = Phase::Open;
        }
    }

    /// Whether all that the last episode sent is acknowledged, and something else is outstanding.
    #[inline]
    fn may_begin(&self, scoreboard: &Scoreboard) -> bool {
        self.phase == Phase::Open
            && scoreboard.una >= self.recover
            && scoreboard.una < scoreboard.max
    }

    /// Fast recovery begins with the oldest segment.
    fn begin(&mut self, scoreboard: &Scoreboard, outcome: &mut Outcome) {
        self.phase = Phase::FastRecovery;
        self.recover = scoreboard.max;
        self.inflation = 0;
        outcome.begins = true;
        outcome.force = Some(scoreboard.una);
    }

    /// A duplicate in fast recovery: a segment has left the network.
    fn inflate(&mut self) {
        self.dupacks += 1;
        self.inflation += 1;
    }

    /// Fast recovery ends.
    fn end(&mut self, outcome: &mut Outcome) {
        self.phase = Phase::Open;
        self.inflation = 0;
        outcome.ends = true;
    }
}
