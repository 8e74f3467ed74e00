//! Selective acknowledgements as ns-2's Sack1 uses them. It differs from [`Sack`](super::sack::Sack):
//!
//! - Only the third duplicate begins a fast recovery, and after a timeout only once all segments sent before it are
//!   acknowledged.
//! - Fast recovery has its own count of outstanding segments: every ACK subtracts one and a partial one two, whatever
//!   its blocks report.
//! - Any hole below a block is retransmitted, lost or not.
//! - A timeout clears the blocks, and new ones are ignored until slow start is over.

use super::sacked::Sacked;
use super::{AckOutcome, Acked, DUP_THRESH, LossRecovery, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use crate::protocol::TcpConfig;

#[derive(Debug)]
pub(super) struct Sack1 {
    sacked: Sacked,
    limited_transmit: bool,
    /// Whether a timeout began the last episode.
    after_timeout: bool,
}

impl Sack1 {
    pub fn new(config: &TcpConfig) -> Sack1 {
        Sack1 {
            sacked: Sacked::default(),
            limited_transmit: config.limited_transmit,
            after_timeout: false,
        }
    }
}

impl LossRecovery for Sack1 {
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        state.pipe -= if acked.newly_acked > 0 { 2 } else { 1 };
        if acked.newly_acked > 0 {
            state.dupacks = 0;
            self.sacked.trim(scoreboard);
            if state.phase != RecoveryPhase::FastRecovery {
                state.advance(scoreboard);
            } else if scoreboard.una >= state.recover {
                state.end(&mut outcome);
                state.by_pipe = false;
            }
        } else if acked.duplicate {
            state.dupacks += 1;
        }
        outcome.lost = self.sacked.find_lost(state, scoreboard);
        if state.phase != RecoveryPhase::FastRecovery {
            let max = if self.limited_transmit { DUP_THRESH - 1 } else { 0 };
            state.inflation = state.dupacks.min(max) as i64;
        }
        // bugFix_: after a timeout, only when all segments sent before it are acknowledged.
        let passed = !self.after_timeout || scoreboard.una > state.recover;
        if state.may_begin(scoreboard) && passed && state.dupacks >= DUP_THRESH {
            outcome.lost = self.sacked.mark_oldest(state, scoreboard).or(outcome.lost);
            state.begin(scoreboard, &mut outcome);
            self.sacked.begin(scoreboard);
            self.after_timeout = false;
            // The first retransmission leaves at once and is not counted.
            state.by_pipe = true;
            state.pipe = (scoreboard.max - scoreboard.una) as i64 - DUP_THRESH as i64 - 1;
        }
        outcome
    }

    fn on_restart(&mut self, scoreboard: &mut Scoreboard) {
        self.after_timeout = true;
        self.sacked.forget_blocks();
        for seq in scoreboard.una..scoreboard.max {
            scoreboard.get_mut(seq).sacked = false;
        }
        self.sacked.all_lost(scoreboard);
    }

    fn on_block(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        block: (u64, u64),
        fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
        if state.phase != RecoveryPhase::SlowStart {
            self.sacked.insert(state, scoreboard, block, fresh);
        }
    }

    fn sacked(&self) -> u64 {
        self.sacked.count()
    }

    fn next_hole(&mut self, state: &RecoveryState, scoreboard: &Scoreboard) -> Option<u64> {
        let highest = self.sacked.highest(scoreboard);
        self.sacked.hole_below(scoreboard, highest.min(state.recover))
    }

    fn next_guess(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        self.sacked.next_guess(scoreboard)
    }

    fn on_retransmitted(&mut self, seq: u64) {
        self.sacked.on_retransmitted(seq);
    }
}
