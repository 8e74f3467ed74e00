//! Reno (1990, RFC 5681): fast retransmit, and a fast recovery that any advance ends.

use super::duplicates::{Duplicates, fast_retransmit};
use super::{AckOutcome, Acked, LossRecovery, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use crate::protocol::TcpConfig;
use narrows_congestion::LossFoundBy;

#[derive(Debug)]
pub(super) struct RenoRecovery(Duplicates);

impl RenoRecovery {
    pub fn new(config: &TcpConfig) -> RenoRecovery {
        RenoRecovery(Duplicates::new(config))
    }
}

impl LossRecovery for RenoRecovery {
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        let recovering = state.phase == RecoveryPhase::FastRecovery;
        if acked.newly_acked > 0 {
            state.dupacks = 0;
            if recovering {
                state.end(&mut outcome);
            } else {
                state.advance(scoreboard);
            }
        } else if acked.duplicate {
            if recovering {
                state.inflate();
            } else if self.0.count(state, scoreboard) {
                return fast_retransmit(state, scoreboard, LossFoundBy::Duplicates);
            }
        }
        outcome
    }
}
