//! Beside BBR. A flow that brakes at losses keeps a tenth of a short buffer's link beside one that does not. So this mode
//! paces as BBR does, at the largest delivery rate of ten rounds with what BBR has in flight, as long as BBR shows that it
//! is there (`probe_rtt.rs`). When its next probe is due there is no more in flight than one product: with more the queue
//! would not be empty without BBR's packets, and the probe not be seen.
//!
//! Others who brake at losses have next to nothing beside BBR already, and keep that.

use super::{Mode, Rrtp};
use crate::Ack;
use crate::bbr::{Aggregation, burst};
use narrows_base::Time;

/// Cardwell et al. 2016, `PROBE_BW`: gains of the pacing rate, a smallest round trip each.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// BBR has two products in flight, for what hosts send and acknowledge together three bursts (Linux
/// `bbr_quantization_budget`), and what came together lately (`bbr_ack_aggregation_cwnd`).
const PRODUCTS: f64 = 2.0;
const BURSTS: f64 = 3.0;
/// Packets that may be in flight in any case (Linux `bbr_cwnd_min_target`).
const MIN_WINDOW: f64 = 4.0;
/// BBR holds the rate that it had alone until its filter forgets it, ten rounds, and then what it had of the link in
/// those. For three such times this climbs; with one or two it has less than half of the link for most of a minute.
const CLIMB_ROUNDS: u32 = 32;
/// Part of the largest bandwidth that was known: BBR is there and has some of it. Without this bound what is free while
/// BBR probes becomes the rate after it, and on a link that loses BBR is left a third.
const MOST: f64 = 0.9;

#[derive(Clone, Debug, Default)]
pub struct BesideBbr {
    phase: usize,
    /// When the phase began.
    began: Time,
    /// Rounds in this mode.
    rounds: u32,
    /// Bandwidth when it began.
    from: f64,
    aggregation: Aggregation,
}

impl Rrtp {
    pub(super) fn begin_beside_bbr(&mut self, now: Time) {
        self.mode = Mode::BesideBbr;
        self.path.most_rate = 1e12;
        self.beside_bbr =
            BesideBbr { began: now, from: self.path.bandwidth(), ..BesideBbr::default() };
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
        let (bandwidth, product) = (self.path.bandwidth(), self.path.product());
        b.aggregation.on_ack(ack.now, round, ack.newly_delivered, bandwidth, self.window);
        self.window = if self.probe_rtt.is_due(ack.now, base) {
            product
        } else {
            let burst = burst(bandwidth * self.packet_bits, self.packet_bits);
            PRODUCTS * product + BURSTS * burst + b.aggregation.extra_acked(bandwidth)
        };
    }

    pub(super) fn beside_bbr_limits(&self) -> (f64, Option<f64>) {
        let rate = GAINS[self.beside_bbr.phase] * self.path.bandwidth();
        let most = (MOST * self.probe_rtt.most()).max(self.beside_bbr.from);
        (self.window.max(MIN_WINDOW), Some(rate.min(most)))
    }
}
