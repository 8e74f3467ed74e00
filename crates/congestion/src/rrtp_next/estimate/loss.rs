//! What the link loses by itself, and how long its bursts are.

use super::super::constants::{ENOUGH, MEMORY, MOST_LOSS, RUN_MEMORY, SIGNIFICANT, UNTESTED};

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    packets: f64,
    lost: f64,
}

impl Account {
    fn add(&mut self, packets: f64, lost: f64, memory: f64) {
        self.packets += packets;
        self.lost += lost;
        if self.packets.max(self.lost) > memory {
            (self.packets, self.lost) = (0.5 * self.packets, 0.5 * self.lost);
        }
    }
    fn share(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Loss {
    /// Of packets that left outside of probes: that met a short queue, of those that left while the sender held back, and
    /// since the last reaction of all that met a longer one.
    low: Account,
    held: Account,
    high: Account,
    /// Losses, and runs of them.
    run: Account,
    last: bool,
    pub told: f64,
}

impl Loss {
    pub fn on_outcome(&mut self, lost: bool, quiet: bool, low: bool, held: bool) {
        let lost_one = f64::from(u8::from(lost));
        if quiet && low {
            if lost {
                self.run.add(f64::from(u8::from(!self.last)), 1.0, RUN_MEMORY);
            }
            self.low.add(1.0, lost_one, MEMORY);
            if held {
                self.held.add(1.0, lost_one, MEMORY);
            }
        } else if quiet {
            self.high.add(1.0, lost_one, MEMORY);
        }
        self.last = lost;
    }
    /// Whether more was lost in longer queues than the link explains; it is counted anew then.
    pub fn take_unexplained(&mut self) -> bool {
        let more = self.exceeds(self.high.packets, self.high.lost);
        if more {
            self.high = Account::default();
        }
        more
    }
    /// Packets of a burst in the mean.
    pub fn burst(&self) -> f64 {
        ((self.run.lost + 1.0) / (self.run.packets + 1.0)).max(1.0)
    }
    /// Share of packets that the link loses: what is lost without a queue, as far as it is not less when holding back.
    pub fn link(&self) -> f64 {
        let low = self.low.share();
        let most = if self.held.packets < ENOUGH {
            UNTESTED
        } else {
            self.held.share() + (self.burst() * low * (1.0 - low) / self.held.packets).sqrt()
        };
        low.min(most).min(MOST_LOSS).max(self.told)
    }
    /// Whether so many lost of so many are more than the link's.
    pub fn exceeds(&self, packets: f64, lost: f64) -> bool {
        let expected = packets * self.link();
        lost - expected > SIGNIFICANT * (self.burst() * (expected + 1.0)).sqrt()
    }
}
