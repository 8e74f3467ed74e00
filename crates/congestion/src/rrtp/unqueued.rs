//! Whether a link loses, or somebody's full queue: what becomes of the packets of rounds that meet no queue.

use super::round::Round;

/// What a round leaves of what those before it counted.
const FORGETS: f64 = 0.85;
/// Packets of a round in the mean: where it is less, many share the link.
const MIN_ROUND: f64 = 6.0;
/// Packets that say something.
const ENOUGH: f64 = 12.0;

/// Rounds in a row that met no queue, and what became of their packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unqueued {
    pub rounds: u32,
    /// Packets of a round in the mean.
    mean: f64,
    /// Packets, and those lost, of the smaller rounds of late and of the larger ones.
    small: [f64; 2],
    large: [f64; 2],
    /// … of all smaller rounds.
    all_small: [f64; 2],
}

impl Unqueued {
    pub fn add(&mut self, round: &Round) {
        let packets = round.delivered + round.lost;
        self.mean =
            if self.rounds == 0 { packets } else { self.mean + 0.25 * (packets - self.mean) };
        self.rounds += 1;
        for count in self.small.iter_mut().chain(&mut self.large) {
            *count *= FORGETS;
        }
        let add = |account: &mut [f64; 2]| {
            (account[0], account[1]) = (account[0] + packets, account[1] + round.lost);
        };
        if packets > self.mean {
            add(&mut self.large);
        } else {
            add(&mut self.small);
            add(&mut self.all_small);
        }
    }
    /// Whether more than such a share is lost, and neither only of the larger rounds, as at a policer, nor only at first,
    /// of what was too much.
    pub fn loses(&self, share: f64) -> bool {
        let [small, large, all] =
            [self.small, self.large, self.all_small].map(|a| a[1] / a[0].max(ENOUGH));
        self.mean >= MIN_ROUND
            && self.small[0] >= ENOUGH
            && small > share
            && small > 0.5 * large.max(all)
    }
    /// Packets of the smaller rounds, and how many of them were lost at the rate of late.
    pub fn expected(&self) -> (f64, f64) {
        let [packets, lost] = self.all_small;
        (packets, lost.min(packets * self.small[1] / self.small[0].max(ENOUGH)))
    }
}
