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
        let most =
            if self.held.packets < ENOUGH { UNTESTED } else { self.held.share() + self.chance() };
        share.min(most).max(self.told).min(MOST_LOSS)
    }
    /// … that it loses at least, unless chance made it lose more when holding back.
    pub fn link_at_least(&self) -> f64 {
        (self.held.share().min(self.short.share()) - self.chance()).max(self.told)
    }
    /// Standard error of the share that is lost when holding back.
    fn chance(&self) -> f64 {
        let share = self.short.share();
        (self.burst() * share * (1.0 - share) / self.held.packets.max(1.0)).sqrt()
    }
    /// Whether so many lost of so many packets are significantly more than the link loses.
    pub fn exceeds(&self, packets: f64, lost: f64) -> bool {
        let expected = packets * self.link();
        lost - expected > SIGNIFICANT * (self.burst() * (expected + 1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Circumstances = Circumstances { quiet: true, held: false, long: false };

    /// So many packets of which one of `every` is lost, in runs of so many.
    fn count(loss: &mut Loss, packets: u32, every: u32, run: u32, when: Circumstances) {
        for i in 0..packets {
            loss.on_outcome((i / run).is_multiple_of(every), when);
        }
    }

    #[test]
    fn what_is_lost_at_any_rate_without_a_queue_is_the_links() {
        let mut loss = Loss::default();
        count(&mut loss, 400, 10, 1, QUIET);
        assert!((loss.link() - 0.1).abs() < 0.01, "{}", loss.link());
        count(&mut loss, 400, 10, 1, Circumstances { held: true, ..QUIET });
        assert!((loss.link() - 0.1).abs() < 0.01, "{}", loss.link());
        assert!(!loss.exceeds(100.0, 15.0) && loss.exceeds(100.0, 25.0));
    }

    #[test]
    fn what_is_not_lost_when_holding_back_follows_the_rate() {
        let mut loss = Loss::default();
        count(&mut loss, 400, 5, 1, QUIET);
        count(&mut loss, 100, 1000, 1, Circumstances { held: true, ..QUIET });
        assert!(loss.link() < 0.06, "{}", loss.link());
    }

    #[test]
    fn probes_say_nothing_of_the_link_and_long_queues_something_of_others() {
        let mut loss = Loss::default();
        count(&mut loss, 400, 5, 1, Circumstances { quiet: false, ..QUIET });
        assert!(loss.link() == 0.0 && !loss.take_unexplained());
        count(&mut loss, 100, 10, 1, Circumstances { long: true, ..QUIET });
        assert!(loss.link() == 0.0 && loss.take_unexplained());
        assert!(!loss.take_unexplained(), "they are counted anew");
    }

    /// Sixteen in a row are as likely as one alone where losses come so: they are no congestion.
    #[test]
    fn a_burst_counts_as_one_loss_where_bursts_are_usual() {
        let (mut single, mut bursts) = (Loss::default(), Loss::default());
        count(&mut single, 1000, 20, 1, QUIET);
        count(&mut bursts, 5000, 20, 16, QUIET);
        assert!(single.burst() < 1.1 && bursts.burst() > 8.0, "{}", bursts.burst());
        assert!(single.exceeds(100.0, 21.0) && !bursts.exceeds(100.0, 21.0));
    }
}
