//! What the link loses by itself, and how long its bursts are.

use super::super::constants::{ENOUGH, MEMORY, MOST_LOSS, SIGNIFICANT, UNTESTED};

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    packets: f64,
    lost: f64,
}

impl Account {
    fn add(&mut self, packets: f64, lost: bool, memory: f64) {
        self.packets += packets;
        self.lost += f64::from(u8::from(lost));
        if self.packets.max(self.lost) > memory {
            (self.packets, self.lost) = (0.5 * self.packets, 0.5 * self.lost);
        }
    }
    fn share(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }
}

/// When a packet left, and what queue it met.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Outside of probes.
    pub quiet: bool,
    /// The sender held back.
    pub held: bool,
    /// The queue was a long one.
    pub long: bool,
}

/// Accounts of packets that left outside of probes.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    /// Of those that met no long queue, and of these the ones that left while the sender held back.
    short: Account,
    held: Account,
    /// Of those that met a long queue since the last reaction.
    long: Account,
    /// Runs of losses, and losses.
    runs: Account,
    was_lost: bool,
    /// Share that the user says the link loses.
    pub told: f64,
}

impl Loss {
    pub fn on_outcome(&mut self, lost: bool, when: Circumstances) {
        if when.quiet && when.long {
            self.long.add(1.0, lost, MEMORY);
        } else if when.quiet {
            if lost {
                self.runs.add(f64::from(u8::from(!self.was_lost)), true, 2.0 * ENOUGH);
            }
            self.short.add(1.0, lost, MEMORY);
            if when.held {
                self.held.add(1.0, lost, MEMORY);
            }
        }
        self.was_lost = lost;
    }
    /// Whether more was lost in long queues than the link explains; if so they are counted anew.
    pub fn take_unexplained(&mut self) -> bool {
        let more = self.exceeds(self.long.packets, self.long.lost);
        if more {
            self.long = Account::default();
        }
        more
    }
    /// Packets of a burst in the mean. So many losses say as much as one that comes alone.
    pub fn burst(&self) -> f64 {
        ((self.runs.lost + 1.0) / (self.runs.packets + 1.0)).max(1.0)
    }
    /// Share of packets that the link loses: what is lost without a queue, but no more than chance explains beyond what
    /// is lost when holding back.
    pub fn link(&self) -> f64 {
        let share = self.short.share();
        let most = if self.held.packets < ENOUGH {
            UNTESTED
        } else {
            self.held.share() + (self.burst() * share * (1.0 - share) / self.held.packets).sqrt()
        };
        share.min(most).max(self.told).min(MOST_LOSS)
    }
    /// Share of packets lost in long queues since the last reaction beyond the link's.
    pub fn rate_loss(&self) -> f64 {
        (self.long.share() - self.link()).max(0.0)
    }
    /// Whether so many lost of so many packets are significantly more than the link loses.
    pub fn exceeds(&self, packets: f64, lost: f64) -> bool {
        let expected = packets * self.link();
        lost - expected > SIGNIFICANT * (self.burst() * (expected + 1.0)).sqrt()
    }
}
