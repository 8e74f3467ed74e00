//! Segments reported by SACK blocks, and the holes between them: shared by [`Sack`](super::sack::Sack) and ns-2's
//! [`Sack1`](super::sack1::Sack1).

use super::{DUP_THRESH, Lost, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use narrows_congestion::LossFoundBy;
use narrows_recovery::ranges::Ranges;

#[derive(Debug, Default)]
pub(super) struct Sacked {
    /// Segments above `una` that have arrived.
    ranges: Ranges,
    /// Unsacked segments below this are lost (RFC 6675 IsLost).
    pub lost_edge: u64,
    /// Next candidate for retransmission in this fast recovery (above RFC 6675's HighRxt).
    retransmit_next: u64,
    rescued: bool,
}

impl Sacked {
    /// Adds a block; calls `fresh` with each newly reported segment.
    pub fn insert(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        (from, to): (u64, u64),
        mut fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
        let from = from.max(scoreboard.una);
        let to = to.min(scoreboard.max);
        self.ranges.insert(from, to, |a, b| {
            for seq in a..b {
                let segment = scoreboard.get_mut(seq);
                segment.sacked = true;
                state.pipe -= i64::from(segment.copies);
                segment.copies = 0;
                fresh(scoreboard, seq);
            }
        });
    }

    /// The cumulative acknowledgement advanced.
    #[inline]
    pub fn trim(&mut self, scoreboard: &Scoreboard) {
        if !self.ranges.is_empty() {
            self.ranges.trim_below(scoreboard.una);
        }
    }

    /// Number of segments that have arrived.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|r| r.1 - r.0).sum()
    }

    /// The highest segment that has arrived, plus one.
    pub fn highest(&self, scoreboard: &Scoreboard) -> u64 {
        self.ranges.iter().next_back().map_or(scoreboard.una, |r| r.1)
    }

    /// The same; 0 if no block was reported.
    pub fn top(&self) -> u64 {
        self.ranges.iter().next_back().map_or(0, |r| r.1)
    }

    pub fn forget_blocks(&mut self) {
        self.ranges.clear();
    }

    /// Marks segments that the blocks above show to be lost (RFC 6675 IsLost, in segments).
    #[inline]
    pub fn find_lost(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
    ) -> Option<Lost> {
        if self.ranges.is_empty() {
            return None;
        }
        let edge = self.ranges.kth_from_top(DUP_THRESH)?;
        let from = self.lost_edge.max(scoreboard.una);
        if edge <= from {
            return None;
        }
        let mut first = None;
        let mut segments = 0;
        for seq in from..edge {
            if mark_lost(state, scoreboard, seq) {
                first.get_or_insert(seq);
                segments += 1;
            }
        }
        self.lost_edge = edge;
        first.map(|seq| Lost { segments, ..Lost::one(scoreboard, seq, LossFoundBy::Sack) })
    }

    /// Marks the oldest segment lost, unless it already is.
    pub fn mark_oldest(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
    ) -> Option<Lost> {
        let oldest = scoreboard.una;
        let marked = mark_lost(state, scoreboard, oldest);
        self.lost_edge = self.lost_edge.max(oldest + 1);
        marked.then(|| Lost::one(scoreboard, oldest, LossFoundBy::Duplicates))
    }

    /// Marks all outstanding segments lost, except those that have arrived.
    pub fn all_lost(&mut self, scoreboard: &mut Scoreboard) {
        self.lost_edge = scoreboard.max;
        for seq in scoreboard.una..scoreboard.max {
            let segment = scoreboard.get_mut(seq);
            segment.lost = !segment.sacked;
            segment.copies = 0;
        }
    }

    /// Fast recovery begins.
    pub fn begin(&mut self, scoreboard: &Scoreboard) {
        self.rescued = false;
        self.retransmit_next = scoreboard.una;
    }

    /// `seq` was retransmitted in this fast recovery.
    pub fn on_retransmitted(&mut self, seq: u64) {
        self.retransmit_next = self.retransmit_next.max(seq + 1);
    }

    /// The next hole below `edge` that was not retransmitted yet.
    pub fn hole_below(&mut self, scoreboard: &Scoreboard, edge: u64) -> Option<u64> {
        let mut seq = self.retransmit_next.max(scoreboard.una);
        while seq < edge {
            if !scoreboard.get(seq).sacked {
                return Some(seq);
            }
            // Skips the block that contains it.
            seq = self.ranges.find(seq).map_or(seq + 1, |r| r.1);
            self.retransmit_next = seq;
        }
        None
    }

    /// Without new data: RFC 6675 NextSeg rules 3 and 4. By rule 4 the last segment is retransmitted, once, while holes
    /// below it that later blocks reveal can still be repaired.
    pub fn next_guess(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        let highest = self.highest(scoreboard);
        if let Some(seq) = self.hole_below(scoreboard, highest) {
            self.on_retransmitted(seq);
            return Some(seq);
        }
        let last = scoreboard.max - 1;
        if self.rescued || last < scoreboard.una || scoreboard.get(last).sacked {
            return None;
        }
        self.rescued = true;
        Some(last)
    }
}

/// Marks a segment lost, and subtracts its oldest copy from the pipe. Returns whether it was not marked before.
fn mark_lost(state: &mut RecoveryState, scoreboard: &mut Scoreboard, seq: u64) -> bool {
    let segment = scoreboard.get_mut(seq);
    if segment.sacked || segment.lost {
        return false;
    }
    segment.lost = true;
    if segment.copies > 0 {
        segment.copies -= 1;
        state.pipe -= 1;
    }
    true
}
