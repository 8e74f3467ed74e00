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
    /// Of packets that met no queue and left outside of probes, and of those of them that left while the sender held
    /// back.
    quiet: Account,
    held: Account,
    /// Losses, and runs of them.
    run: Account,
    last: bool,
    pub told: f64,
}

impl Loss {
    pub fn on_outcome(&mut self, lost: bool, quiet: bool, held: bool) {
        let lost_one = f64::from(u8::from(lost));
        if lost && quiet {
            self.run.add(f64::from(u8::from(!self.last)), 1.0, RUN_MEMORY);
        }
        self.last = lost;
        if quiet {
            self.quiet.add(1.0, lost_one, MEMORY);
        }
        if held {
            self.held.add(1.0, lost_one, MEMORY);
        }
    }
    /// Packets of a burst in the mean.
    pub fn burst(&self) -> f64 {
        ((self.run.lost + 1.0) / (self.run.packets + 1.0)).max(1.0)
    }
    /// Share of packets that the link loses: what is lost without a queue, as far as it is not less when holding back.
    pub fn link(&self) -> f64 {
        let quiet = self.quiet.share();
        let most = if self.held.packets < ENOUGH {
            UNTESTED
        } else {
            self.held.share() + (self.burst() * quiet * (1.0 - quiet) / self.held.packets).sqrt()
        };
        quiet.min(most).min(MOST_LOSS).max(self.told)
    }
    /// Whether so many lost of so many are more than the link's.
    pub fn exceeds(&self, packets: f64, lost: f64) -> bool {
        let expected = packets * self.link();
        lost - expected > SIGNIFICANT * (self.burst() * (expected + 1.0)).sqrt()
    }
}
