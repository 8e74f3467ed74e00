//! NewReno (RFC 6582): a fast recovery that retransmits a hole per partial acknowledgement.

use super::duplicates::{Duplicates, fast_retransmit};
use super::{AckOutcome, Acked, LossRecovery, Lost, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use crate::protocol::TcpConfig;
use narrows_congestion::LossFoundBy;

#[derive(Debug)]
pub(super) struct NewReno {
    duplicates: Duplicates,
    /// Partial acknowledgements in this fast recovery.
    partials: u32,
}

impl NewReno {
    pub fn new(config: &TcpConfig) -> NewReno {
        NewReno { duplicates: Duplicates::new(config), partials: 0 }
    }

    /// RFC 6582 section 3.2: retransmit the next hole, deflate by the acknowledged segments, add back one.
    fn on_partial(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &Scoreboard,
        acked: u64,
    ) -> AckOutcome {
        state.inflation += 1 - acked.min(i64::MAX as u64) as i64;
        self.partials += 1;
        AckOutcome {
            keep_timer: self.partials > 1,
            force: Some(scoreboard.una),
            lost: Some(Lost::one(scoreboard, scoreboard.una, LossFoundBy::Duplicates)),
            ..AckOutcome::default()
        }
    }
}

impl LossRecovery for NewReno {
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
            if !recovering {
                state.advance(scoreboard);
            } else if scoreboard.una < state.recover {
                return self.on_partial(state, scoreboard, acked.newly_acked);
            } else {
                state.end(&mut outcome);
            }
        } else if acked.duplicate {
            if recovering {
                state.inflate();
            } else if self.duplicates.count(state, scoreboard) {
                self.partials = 0;
                return fast_retransmit(state, scoreboard, LossFoundBy::Duplicates);
            }
        }
        outcome
    }
}
