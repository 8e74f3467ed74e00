//! Undoes the effects of a loss recovery that turned out spurious (section 5.5.11).

use super::state::{Bbr3, Bbr3State, ModelBeforeLosses};

impl Bbr3 {
    /// Saves the model at the first losses of an episode (SaveStateUponLoss).
    pub(super) fn save_model(&mut self) {
        self.before_losses = Some(ModelBeforeLosses {
            bandwidth_short_term: self.bandwidth.short_term(),
            short_term: self.in_flight.short_term,
            long_term: self.in_flight.long_term,
            ended: None,
        });
    }

    /// Losses end the present state.
    pub(super) fn losses_end_state(&mut self) {
        let state = self.state;
        if let Some(before) = &mut self.before_losses {
            before.ended = Some(state);
        }
    }

    /// No packet of the last loss episode was lost (HandleSpuriousLossDetection).
    pub(super) fn undo_losses(&mut self) {
        let Some(before) = self.before_losses.take() else { return };
        self.window.in_recovery = false;
        self.window.restore();
        self.losses.any = false;
        self.full.restart(0.0);
        self.bandwidth.raise_short_term(before.bandwidth_short_term);
        self.in_flight.short_term = self.in_flight.short_term.max(before.short_term);
        self.in_flight.long_term = self.in_flight.long_term.max(before.long_term);
        let is_measuring_rtt = self.state == Bbr3State::ProbeRtt;
        match before.ended {
            Some(Bbr3State::Startup) if self.state != Bbr3State::Startup => {
                self.full.reached = false;
                if !is_measuring_rtt {
                    self.state = Bbr3State::Startup;
                }
            }
            Some(Bbr3State::Up) if self.state != Bbr3State::Up && !is_measuring_rtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
