//! Selective acknowledgements (RFC 2018, RFC 6675): losses by SACK blocks, outstanding segments by the pipe.

use super::sacked::Sacked;
use super::{AckOutcome, Acked, DUP_THRESH, LossRecovery, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;

#[derive(Debug, Default)]
pub(super) struct Sack(Sacked);

impl LossRecovery for Sack {
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if acked.newly_acked > 0 {
            state.dupacks = 0;
            self.0.trim(scoreboard);
            if state.phase != RecoveryPhase::FastRecovery {
                state.advance(scoreboard);
            } else if scoreboard.una >= state.recover {
                state.end(&mut outcome);
            }
        } else if acked.duplicate {
            state.dupacks += 1;
        }
        outcome.lost = self.0.find_lost(state, scoreboard);
        if state.may_begin(scoreboard)
            && (state.dupacks >= DUP_THRESH || scoreboard.get(scoreboard.una).lost)
        {
            outcome.lost = self.0.mark_oldest(state, scoreboard).or(outcome.lost);
            state.begin(scoreboard, &mut outcome);
            self.0.begin(scoreboard);
        }
        outcome
    }

    fn on_restart(&mut self, scoreboard: &mut Scoreboard) {
        self.0.all_lost(scoreboard);
    }

    fn on_block(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        block: (u64, u64),
        fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
        self.0.insert(state, scoreboard, block, fresh);
    }

    fn sacked(&self) -> u64 {
        self.0.count()
    }

    /// RFC 6675 NextSeg rule 1.
    fn next_hole(&mut self, state: &RecoveryState, scoreboard: &Scoreboard) -> Option<u64> {
        self.0.hole_below(scoreboard, self.0.lost_edge.min(state.recover))
    }

    fn next_guess(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        self.0.next_guess(scoreboard)
    }

    fn on_retransmitted(&mut self, seq: u64) {
        self.0.on_retransmitted(seq);
    }
}
