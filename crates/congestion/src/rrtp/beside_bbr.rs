//! Beside BBR. A flow that brakes at losses keeps a tenth of a short buffer's link beside one that does not. So this mode
//! paces as BBR does, at the largest delivery rate of ten rounds with two products in flight, as long as BBR shows that it
//! is there (`probe_rtt.rs`). It does not probe for the smallest round trip itself: all would hold back at the same time,
//! and it could not see the others do so.
//!
//! Others who brake at losses have next to nothing beside BBR already, and keep that.

use super::{Mode, Rrtp};
use crate::Ack;
use narrows_base::Time;

/// Cardwell et al. 2016, `PROBE_BW`: gains of the pacing rate, a smallest round trip each.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// BBR has two products in flight, and what it adds where acknowledgements come together (Linux `bbr_ack_aggregation_cwnd`).
const PRODUCTS: f64 = 2.2;
/// Packets that may be in flight in any case (Linux `bbr_cwnd_min_target`).
const MIN_WINDOW: f64 = 4.0;
/// Packets beyond that, for what hosts send and acknowledge together (Linux `bbr_quantization_budget`).
const BUDGET: f64 = 3.0;
/// BBR holds the rate that it had alone until its filter forgets it, ten rounds; for so many this climbs.
const CLIMB_ROUNDS: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub struct BesideBbr {
    phase: usize,
    /// When the phase began.
    began: Time,
    /// Rounds in this mode.
    rounds: u32,
}

impl Rrtp {
    pub(super) fn begin_beside_bbr(&mut self, now: Time) {
        self.mode = Mode::BesideBbr;
        self.path.most_rate = 1e12;
        self.beside_bbr = BesideBbr { phase: 0, began: now, rounds: 0 };
    }

    pub(super) fn beside_bbr_ack(&mut self, ack: &Ack, round: bool) {
        let base = self.path.base().unwrap_or(0.0);
        if self.probe_rtt.is_over(ack.now, base) {
            self.window = (ack.outstanding as f64).max(2.0);
            self.begin_competitive(ack, false);
            return;
        }
        let b = &mut self.beside_bbr;
        b.rounds += u32::from(round);
        if b.rounds > CLIMB_ROUNDS && ack.now.since(b.began).as_secs_f64() > base {
            (b.phase, b.began) = ((b.phase + 1) % GAINS.len(), ack.now);
        }
        self.window = PRODUCTS * self.path.product() + BUDGET;
    }

    pub(super) fn beside_bbr_limits(&self) -> (f64, Option<f64>) {
        let gain = GAINS[self.beside_bbr.phase];
        (self.window.max(MIN_WINDOW), Some(gain * self.path.bandwidth()))
    }
}
