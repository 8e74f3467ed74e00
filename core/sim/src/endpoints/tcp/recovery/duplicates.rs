//! Common part of the recoveries without selective acknowledgements, which only count duplicates.

use super::{AckOutcome, DUP_THRESH, Lost, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::Scoreboard;
use crate::protocol::TcpConfig;
use narrows_congestion::LossFoundBy;

/// Settings: when duplicates indicate a loss, and whether the first ones send segments.
#[derive(Debug)]
pub(super) struct Duplicates {
    limited_transmit: bool,
    once_per_window: bool,
}

impl Duplicates {
    pub fn new(config: &TcpConfig) -> Duplicates {
        let TcpConfig { limited_transmit, once_per_window, .. } = *config;
        Duplicates { limited_transmit, once_per_window }
    }

    /// Counts a duplicate outside fast recovery. Returns whether it shows that the oldest segment is lost.
    pub fn count(&self, state: &mut RecoveryState, scoreboard: &Scoreboard) -> bool {
        state.dupacks += 1;
        if state.phase == RecoveryPhase::SlowStart {
            self.lend_in_slow_start(state);
            return false;
        }
        // At most once per window: RFC 6582 section 3.2 step 2; ns-2's bugFix_.
        let new_window = scoreboard.una > state.recover || !self.once_per_window;
        let lost = state.dupacks >= DUP_THRESH && new_window;
        if !lost {
            self.lend(state);
        }
        lost
    }

    /// In slow start after a restart, duplicates inflate the window as in ns-2, except those of the flight before
    /// Tahoe's restart.
    pub fn lend_in_slow_start(&self, state: &mut RecoveryState) {
        if state.dupacks < DUP_THRESH {
            self.lend(state);
        }
    }

    /// Limited transmit (RFC 3042): each of the first two duplicates sends a segment.
    fn lend(&self, state: &mut RecoveryState) {
        if self.limited_transmit {
            state.inflation = state.dupacks.min(DUP_THRESH - 1) as i64;
        }
    }
}

/// Fast retransmit of the oldest segment: fast recovery begins, the window inflated by the duplicates.
pub(super) fn fast_retransmit(
    state: &mut RecoveryState,
    scoreboard: &Scoreboard,
    found_by: LossFoundBy,
) -> AckOutcome {
    let lost = Some(Lost::one(scoreboard, scoreboard.una, found_by));
    let mut outcome = AckOutcome { lost, ..AckOutcome::default() };
    state.begin(scoreboard, &mut outcome);
    state.inflation = state.dupacks.min(DUP_THRESH) as i64;
    state.dupacks = state.dupacks.max(DUP_THRESH);
    outcome
}
