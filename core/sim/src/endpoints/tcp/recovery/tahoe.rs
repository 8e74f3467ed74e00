//! Tahoe (1988): the third duplicate restarts slow start from the hole.

use super::duplicates::Duplicates;
use super::{AckOutcome, Acked, LossRecovery, Lost, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use crate::protocol::TcpConfig;
use narrows_congestion::LossFoundBy;

#[derive(Debug)]
pub(super) struct Tahoe(Duplicates);

impl Tahoe {
    pub fn new(config: &TcpConfig) -> Tahoe {
        Tahoe(Duplicates::new(config))
    }
}

impl LossRecovery for Tahoe {
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if acked.newly_acked > 0 {
            state.dupacks = 0;
            state.advance(scoreboard);
        } else if acked.duplicate && self.0.count(state, scoreboard) {
            outcome.lost = Some(Lost::one(scoreboard, scoreboard.una, LossFoundBy::Duplicates));
            outcome.restarts = true;
        }
        outcome
    }
}
