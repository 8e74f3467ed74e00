//! Loss recovery: which segments are lost, and which are retransmitted; a file per kind.
//!
//! ```text
//!            3rd duplicate, or loss by SACK
//!     Open ------------------------------------> FastRecovery (all but Tahoe)
//!      ^  \                                        |
//!      |   \ timeout; Tahoe's 3rd duplicate        | advance past `recover` (Reno: any advance)
//!      |    v                                      v
//!      +-- SlowStart --(advance past `recover`)--> Open
//! ```
//!
//! A recovery never sets a window. It counts outstanding segments, and adds a signed number to the window: Reno's
//! inflation by duplicates, limited transmit, NewReno's deflation.

mod any;
mod duplicates;
mod newreno;
mod rack;
mod reno;
mod reordering;
mod sack;
mod sack1;
mod sacked;
mod tahoe;
mod undo;
mod vegas;

pub(crate) use any::Recovery;

use super::scoreboard::{Scoreboard, SentSegment};
use narrows_base::{Duration, Time};
use narrows_congestion::LossFoundBy;
use narrows_recovery::rtt::RttEstimator;

/// Duplicates that indicate a loss (RFC 5681; DupThresh of RFC 6675).
const DUP_THRESH: u64 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecoveryPhase {
    Open,
    FastRecovery,
    /// The segments in flight at a timeout, or at Tahoe's loss, are retransmitted in slow start.
    SlowStart,
}

/// The part of a recovery's state that the sender reads for every packet, common to all kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryState {
    pub phase: RecoveryPhase,
    /// Duplicates since the last advance.
    dupacks: u64,
    /// The highest segment sent when the last episode began, plus one.
    recover: u64,
    /// Segments added to the window; may be negative.
    pub inflation: i64,
    /// Outstanding copies as the kind counts them, and whether this count is compared with the window.
    pipe: i64,
    by_pipe: bool,
}

/// An acknowledgement, after the scoreboard has been updated.
#[derive(Clone, Copy)]
pub(crate) struct Acked<'a> {
    pub now: Time,
    /// Segments newly acknowledged cumulatively.
    pub newly_acked: u64,
    /// Whether it acknowledges no new segment while some are outstanding.
    pub duplicate: bool,
    /// When the packet that it echoes was sent.
    pub echo: Time,
    /// The path's smallest RTT.
    pub min_rtt: Duration,
    /// Segments delivered so far, and of those, how many before the newest delivered one was sent.
    pub delivered: u64,
    pub prior_delivered: Option<u64>,
    pub rtt: &'a RttEstimator,
}

/// Segments found lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub segments: u64,
    /// When the last copy of the first one was sent, and how often it had been sent.
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

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckOutcome {
    pub lost: Option<Lost>,
    /// Fast recovery began.
    pub begins: bool,
    /// Fast recovery ended.
    pub ends: bool,
    /// Slow start restarts (Tahoe).
    pub restarts: bool,
    /// A segment to send at once, regardless of the window.
    pub force: Option<u64>,
    /// This advance must not restart the retransmission timer.
    pub keep_timer: bool,
    /// The losses since the last reduction were spurious.
    pub undo: bool,
    /// When to check again for losses by time.
    pub reorder_wait: Option<Duration>,
}

impl AckOutcome {
    /// Whether the sender has to act on it.
    pub fn is_relevant(&self) -> bool {
        self.lost.is_some() || self.begins || self.ends || self.restarts || self.undo
    }
}

/// A kind of loss recovery. The methods with a default are used by selective acknowledgements only.
trait LossRecovery {
    /// Finds losses, after the scoreboard has been updated.
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome;

    /// Slow start restarts: segments from `una` on are retransmitted.
    fn on_restart(&mut self, _scoreboard: &mut Scoreboard) {}

    /// Adds a SACK block; calls `fresh` with each newly reported segment.
    #[inline]
    fn on_block(
        &mut self,
        _state: &mut RecoveryState,
        _scoreboard: &mut Scoreboard,
        _block: (u64, u64),
        _fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
    }

    /// The receiver reported duplicates of these segments; `is_probe` if of the tail loss probe.
    fn on_duplicates(&mut self, _scoreboard: &Scoreboard, _block: (u64, u64), _is_probe: bool) {}

    /// Whether the path reorders by more segments than indicate a loss.
    #[inline]
    fn is_reordering_high(&self) -> bool {
        false
    }

    /// Segments above `una` that are acknowledged selectively.
    fn sacked(&self) -> u64 {
        0
    }

    /// In fast recovery: the next lost segment to retransmit, before new data.
    fn next_hole(&mut self, _state: &RecoveryState, _scoreboard: &Scoreboard) -> Option<u64> {
        None
    }

    /// In fast recovery without new data: a segment that may be lost.
    fn next_guess(&mut self, _scoreboard: &Scoreboard) -> Option<u64> {
        None
    }

    /// `seq` was retransmitted in this fast recovery.
    fn on_retransmitted(&mut self, _seq: u64) {}

    /// Processing of an acknowledgement begins.
    #[inline]
    fn begin_ack(&mut self, _now: Time, _min_rtt: Duration) {}

    /// A copy of a segment was sent; `repair` for a retransmission.
    #[inline]
    fn on_copy(&mut self, _now: Time, _seq: u64, _repair: bool) {}

    /// A segment is cumulatively acknowledged.
    #[inline]
    fn on_acked_segment(&mut self, _state: &RecoveryState, _seq: u64, _segment: &SentSegment) {}

    /// The time in [`AckOutcome::reorder_wait`] has passed.
    fn on_reorder_timeout(
        &mut self,
        _state: &mut RecoveryState,
        _scoreboard: &mut Scoreboard,
        _acked: Acked<'_>,
    ) -> AckOutcome {
        AckOutcome::default()
    }
}

impl RecoveryState {
    /// The cumulative acknowledgement advanced outside fast recovery.
    #[inline]
    fn advance(&mut self, scoreboard: &Scoreboard) {
        self.inflation = 0;
        if self.phase == RecoveryPhase::SlowStart && scoreboard.una >= self.recover {
            self.phase = RecoveryPhase::Open;
        }
    }

    /// Whether all segments of the last episode are acknowledged, and others are outstanding.
    #[inline]
    fn may_begin(&self, scoreboard: &Scoreboard) -> bool {
        self.phase == RecoveryPhase::Open
            && scoreboard.una >= self.recover
            && scoreboard.una < scoreboard.max
    }

    /// Begins fast recovery with the oldest segment.
    fn begin(&mut self, scoreboard: &Scoreboard, outcome: &mut AckOutcome) {
        self.phase = RecoveryPhase::FastRecovery;
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
    fn end(&mut self, outcome: &mut AckOutcome) {
        self.phase = RecoveryPhase::Open;
        self.inflation = 0;
        outcome.ends = true;
    }
}
