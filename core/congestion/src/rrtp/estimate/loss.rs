//! The share of packets that the link loses without congestion, and the mean length of its loss bursts.

use super::super::constants::{ENOUGH, MAX_LOSS, MEMORY, SIGNIFICANT, UNTESTED_LOSS};

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    packets: f64,
    lost: f64,
}

impl Account {
    fn add(&mut self, packets: f64, lost: bool) {
        self.packets += packets;
        self.lost += f64::from(u8::from(lost));
        if self.packets.max(self.lost) > MEMORY {
            (self.packets, self.lost) = (0.5 * self.packets, 0.5 * self.lost);
        }
    }
    fn share(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }
}

/// Conditions under which a packet left, and the queue when its outcome arrived.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// It left outside of probe times.
    pub outside_probes: bool,
    /// It left with a gain below 1.
    pub reduced: bool,
    /// The queue was long in comparison with the longest recent one.
    pub long_queue: bool,
}

/// Accounts of packets that left outside of probes (section 2.5).
#[derive(Clone, Debug, Default)]
pub struct LossAccounts {
    /// Packets without a long queue.
    short: Account,
    /// Packets without a long queue that left with a gain below 1.
    reduced: Account,
    /// Packets with a long queue since the last reaction.
    long: Account,
    /// Runs of consecutive losses (as packets), and losses.
    runs: Account,
    /// Whether the previous packet was lost.
    was_lost: bool,
    /// Hinted loss share of the link, 0 to 1.
    pub hinted: f64,
}

impl LossAccounts {
    pub fn on_outcome(&mut self, lost: bool, when: Circumstances) {
        if when.outside_probes && when.long_queue {
            self.long.add(1.0, lost);
        } else if when.outside_probes {
            if lost {
                self.runs.add(f64::from(u8::from(!self.was_lost)), true);
            }
            self.short.add(1.0, lost);
            if when.reduced {
                self.reduced.add(1.0, lost);
            }
        }
        self.was_lost = lost;
    }
    /// Whether losses in long queues significantly exceed those of the link; if so, their account is emptied.
    pub fn take_unexplained(&mut self) -> bool {
        let unexplained = self.exceeds(self.long.packets, self.long.lost);
        if unexplained {
            self.long = Account::default();
        }
        unexplained
    }
    /// Mean length of the link's loss bursts in packets, at least 1. One burst is as significant as one single loss.
    pub fn burst(&self) -> f64 {
        ((self.runs.lost + 1.0) / (self.runs.packets + 1.0)).max(1.0)
    }
    /// Loss share of the link: that without a long queue, but at most one standard error above that at a gain below 1.
    pub fn link(&self) -> f64 {
        let share = self.short.share();
        let most = if self.reduced.packets < ENOUGH {
            UNTESTED_LOSS
        } else {
            let variance = self.burst() * share * (1.0 - share) / self.reduced.packets;
            self.reduced.share() + variance.sqrt()
        };
        share.min(most).max(self.hinted).min(MAX_LOSS)
    }
    /// Whether `lost` of `packets` packets are significantly more than the link loses.
    pub fn exceeds(&self, packets: f64, lost: f64) -> bool {
        let expected = packets * self.link();
        lost - expected > SIGNIFICANT * (self.burst() * (expected + 1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEADY: Circumstances =
        Circumstances { outside_probes: true, reduced: false, long_queue: false };

    /// Adds `packets` packets in runs of `run`; one of `every` runs is lost.
    fn count(loss: &mut LossAccounts, packets: u32, every: u32, run: u32, when: Circumstances) {
        for i in 0..packets {
            loss.on_outcome((i / run).is_multiple_of(every), when);
        }
    }

    #[test]
    fn losses_without_a_queue_at_any_rate_are_the_links() {
        let mut loss = LossAccounts::default();
        count(&mut loss, 400, 10, 1, STEADY);
        assert!((loss.link() - 0.1).abs() < 0.01, "{}", loss.link());
        count(&mut loss, 400, 10, 1, Circumstances { reduced: true, ..STEADY });
        assert!((loss.link() - 0.1).abs() < 0.01, "{}", loss.link());
        assert!(!loss.exceeds(100.0, 15.0) && loss.exceeds(100.0, 25.0));
    }

    #[test]
    fn losses_that_end_at_a_lower_rate_are_congestion() {
        let mut loss = LossAccounts::default();
        count(&mut loss, 400, 5, 1, STEADY);
        count(&mut loss, 100, 1000, 1, Circumstances { reduced: true, ..STEADY });
        assert!(loss.link() < 0.06, "{}", loss.link());
    }

    #[test]
    fn probes_do_not_count_and_losses_with_queue_are_unexplained() {
        let mut loss = LossAccounts::default();
        count(&mut loss, 400, 5, 1, Circumstances { outside_probes: false, ..STEADY });
        assert!(loss.link() == 0.0 && !loss.take_unexplained());
        count(&mut loss, 100, 10, 1, Circumstances { long_queue: true, ..STEADY });
        assert!(loss.link() == 0.0 && loss.take_unexplained());
        assert!(!loss.take_unexplained(), "the account is emptied");
    }

    /// If losses come in bursts of sixteen, a burst is as likely as a single loss elsewhere: it is no congestion.
    #[test]
    fn a_burst_counts_as_one_loss_where_bursts_are_usual() {
        let (mut single, mut bursts) = (LossAccounts::default(), LossAccounts::default());
        count(&mut single, 1000, 20, 1, STEADY);
        count(&mut bursts, 5000, 20, 16, STEADY);
        assert!(single.burst() < 1.1 && bursts.burst() > 8.0, "{}", bursts.burst());
        assert!(single.exceeds(100.0, 21.0) && !bursts.exceeds(100.0, 21.0));
    }
}
