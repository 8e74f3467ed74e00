//! Alone on the bottleneck: the window is what the path holds and little more. A cycle is a round that
//! probes for more, one in which that is seen, one that begins with an empty queue, to see the smallest
//! round trip, and five that hold.

use super::{Mode, Rrtp};
use crate::Ack;

/// Rounds of a cycle: one probes, the others hold.
const CYCLE: u32 = 8;
/// How much more a probe sends; each that finds more doubles it.
const PROBE: f64 = 0.15;
const MAX_PROBE: f64 = 1.0;
/// Acknowledgements after which a queue that was let run empty has been seen so.
const SEEN: u32 = 2;
/// Room that the window leaves above the product.
const ROOM_SECONDS: f64 = 0.004;
/// … and no more than this share of the product, or a packet.
const ROOM_SHARE: f64 = 0.1;
/// A bandwidth that falls to so much of what it was is shared, or is another.
const YIELDED: f64 = 0.8;
/// Rounds with a queue that is not ours before the mode changes.
const FOREIGN_ROUNDS: u32 = 2;

/// After so many rounds it was right to begin this mode.
const PROVEN: u32 = 40;

/// Packets above the product at slow rates.
const ROOM_PACKETS: f64 = 6.0;
/// Part of the round trip, and seconds, that a queue may exceed twice our room by before it is foreign.
const FOREIGN: f64 = 0.125;
const NOISE: f64 = 0.002;

#[derive(Clone, Debug, Default)]
pub struct DefaultMode {
    /// Round of the cycle.
    phase: u32,
    /// What this cycle's probe adds, and the bandwidth before it.
    probe: f64,
    before: f64,
    /// Rounds with a foreign queue in a row.
    foreign: u32,
    /// Rounds in this mode.
    rounds: u32,
    /// Acknowledgements in this round since no more was in flight than the path holds.
    seen: u32,
    /// The bandwidth when the mode began, or the most since.
    entered: f64,
}

impl Rrtp {
    pub(super) fn begin_default(&mut self) {
        self.mode = Mode::Default;
        self.default_mode = DefaultMode {
            phase: 0,
            probe: PROBE,
            before: self.path.bandwidth(),
            foreign: 0,
            rounds: 0,
            seen: 0,
            entered: self.path.bandwidth(),
        };
    }

    /// Packets that may wait.
    fn room(&self) -> f64 {
        let room = (self.path.bandwidth() * ROOM_SECONDS).max(ROOM_PACKETS);
        room.min((ROOM_SHARE * self.path.product()).max(1.0))
    }

    pub(super) fn default_ack(&mut self, ack: &Ack, round: bool) {
        if ack.outstanding as f64 <= self.path.product() + 1.0 {
            self.default_mode.seen += 1;
        }
        if !round {
            return;
        }
        self.default_mode.seen = 0;
        let bandwidth = self.path.bandwidth();
        let Some(base) = self.path.base() else { return };
        let room = self.room();
        let flooded = self.path.is_flooded();
        let a = &mut self.default_mode;
        let measured = a.phase;
        a.entered = a.entered.max(bandwidth);
        if flooded && a.rounds >= 1 {
            // Somebody's, or more than there is: what was delivered counts.
            self.path.set_bandwidth(bandwidth.min(self.path.round_rate.max(1e-3)));
            self.window = self.path.product();
            self.begin_competitive(ack, false);
            return;
        }
        a.rounds += 1;
        a.phase = (a.phase + 1) % CYCLE;
        if a.phase == 2 {
            // What the probe found is known a round later.
            if bandwidth > a.before * (1.0 + 0.5 * a.probe) {
                a.probe = (2.0 * a.probe).min(MAX_PROBE);
                a.phase = 0;
            } else {
                a.probe = PROBE;
            }
        }
        if a.phase == 0 {
            a.before = bandwidth;
        }
        self.path.most_rate = if a.phase <= 2 { 1e12 } else { bandwidth };
        // The probe's queue is gone two rounds later.
        if measured >= 3 || measured == 0 {
            let ours = 2.0 * room / bandwidth + FOREIGN * base + NOISE;
            if self.path.round_rtt > base + ours {
                a.foreign += 1;
            } else {
                a.foreign = 0;
            }
            if a.foreign >= FOREIGN_ROUNDS || bandwidth < YIELDED * a.entered {
                // Soon after the answers that began this mood they were wrong: not asked again at once.
                let proven = a.rounds >= PROVEN;
                self.begin_competitive(ack, proven);
                if !proven {
                    self.doubt();
                }
            }
        }
    }

    pub(super) fn default_limits(&self) -> (f64, Option<f64>) {
        let bandwidth = self.path.bandwidth();
        let Some(_) = self.path.base() else {
            return (f64::MAX, Some(bandwidth));
        };
        let product = self.path.product();
        match self.default_mode.phase {
            0 => {
                let gain = 1.0 + self.default_mode.probe;
                (product * gain + self.room(), Some(bandwidth * gain))
            }
            // What leaves then meets no queue of ours; longer would only leave the link idle.
            2 if self.default_mode.seen < SEEN => (product + 1.0, Some(bandwidth * 1.05)),
            _ => (product + self.room(), Some(bandwidth * 1.05)),
        }
    }
}
