//! Vegas (1995), as in ns-2.35: Reno that also checks the oldest segment's age, at duplicates and at the first
//! advances after a retransmission.

use super::duplicates::{Duplicates, fast_retransmit};
use super::{AckOutcome, Acked, DUP_THRESH, LossRecovery, Lost, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use crate::protocol::TcpConfig;
use narrows_base::Duration;
use narrows_congestion::LossFoundBy;

#[derive(Debug)]
pub(super) struct VegasRecovery {
    duplicates: Duplicates,
    /// Advances that still check the oldest segment's age.
    checks: u32,
}

impl LossRecovery for VegasRecovery {
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if acked.newly_acked > 0 {
            state.dupacks = 0;
            if state.phase == RecoveryPhase::FastRecovery {
                state.end(&mut outcome);
            } else {
                state.advance(scoreboard);
            }
            self.check(state, scoreboard, acked, &mut outcome);
        } else if acked.duplicate {
            return self.on_duplicate(state, scoreboard, acked);
        }
        outcome
    }

    fn on_restart(&mut self, _scoreboard: &mut Scoreboard) {
        self.checks = 0;
    }
}

impl VegasRecovery {
    pub fn new(config: &TcpConfig) -> VegasRecovery {
        VegasRecovery { duplicates: Duplicates::new(config), checks: 0 }
    }

    /// The advances after a retransmission check the oldest segment's age. If it is lost too, the duplicates that
    /// follow belong to the same loss.
    fn check(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &Scoreboard,
        acked: Acked<'_>,
        outcome: &mut AckOutcome,
    ) {
        if self.checks == 0 || scoreboard.una == scoreboard.max {
            return;
        }
        self.checks -= 1;
        if is_late(scoreboard, acked) {
            outcome.force = Some(scoreboard.una);
            outcome.lost = Some(Lost::one(scoreboard, scoreboard.una, LossFoundBy::Clock));
            state.dupacks = DUP_THRESH;
        } else {
            self.checks = 0;
        }
    }

    fn on_duplicate(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        state.dupacks += 1;
        let late = is_late(scoreboard, acked);
        match state.phase {
            RecoveryPhase::FastRecovery if late => {
                // The retransmission itself was lost.
                return AckOutcome {
                    lost: Some(Lost::one(scoreboard, scoreboard.una, LossFoundBy::Clock)),
                    force: Some(scoreboard.una),
                    ..AckOutcome::default()
                };
            }
            RecoveryPhase::FastRecovery => state.inflation += 1,
            RecoveryPhase::SlowStart => self.duplicates.lend_in_slow_start(state),
            RecoveryPhase::Open if late || state.dupacks == DUP_THRESH => {
                self.checks = 2;
                let by = if late { LossFoundBy::Clock } else { LossFoundBy::Duplicates };
                return fast_retransmit(state, scoreboard, by);
            }
            // No limited transmit: with too few duplicates, the segment's age reveals the loss.
            RecoveryPhase::Open => state.inflation += i64::from(state.dupacks > DUP_THRESH),
        }
        AckOutcome::default()
    }
}

/// Whether the oldest segment is older than the fine-grained timeout: srtt + 2 rttvar and a sixteenth more.
fn is_late(scoreboard: &Scoreboard, acked: Acked<'_>) -> bool {
    let srtt = acked.rtt.srtt();
    let rttvar = acked.rtt.rttvar();
    let fine = (srtt.as_secs_f64() + 2.0 * rttvar.as_secs_f64()) * 17.0 / 16.0;
    acked.now.since(scoreboard.get(scoreboard.una).sent) >= Duration::from_secs_f64(fine)
}
