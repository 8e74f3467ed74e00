//! What the link loses by itself.
//!
//! A link's loss does not ask how fast one sends; that of a full buffer or a policer does. So outcomes are counted in
//! two accounts: of packets that left while the sender held back (or while more still arrived when more was sent),
//! and of all others. If the second lost significantly more, the difference follows the rate and is not the
//! link's (after PCC Vivace's loss gradient, NSDI 2018, with a test in place of a utility); otherwise both
//! together tell the link's loss, and sooner.

use super::round::Round;
use crate::RateSample;
use std::collections::VecDeque;

/// Packets after which an account forgets half of what it has.
const MEMORY: f64 = 400.0;
/// Packets that say something.
const ENOUGH: f64 = 24.0;
/// Standard deviations that are significant …
const SIGNIFICANT: f64 = 2.5;
/// … or that are, where a link loses this share however little is sent: this is asked with every packet, so
/// that chance answers yes every few seconds, and who believes it gives up a belief that much speaks for.
const SURE: f64 = 4.0;
const LOSES_QUIETLY: f64 = 0.05;
/// … if losses come in bursts, which have so many times the variance of single ones.
const BURSTS: f64 = 4.0;
/// More is not believed before anything left while the sender held back.
const UNTESTED: f64 = 0.1;
/// … if the rate was told: then it takes the link to be no slower.
const UNTESTED_TOLD: f64 = 0.3;
/// How much further the trend between the accounts is believed to go.
const TREND: f64 = 2.0;
/// More is not believed of any link.
const MOST: f64 = 0.4;

/// Standard deviations of single losses by which more may be lost than the link's share: bursts of four are twice to
/// three times as far off.
const CHANCE: f64 = 6.0;
/// Moments that are remembered at most.
const MAX_MOMENTS: usize = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    packets: f64,
    lost: f64,
}

impl Account {
    fn add(&mut self, lost: bool) {
        if self.packets >= MEMORY {
            (self.packets, self.lost) = (0.5 * self.packets, 0.5 * self.lost);
        }
        self.packets += 1.0;
        self.lost += f64::from(u8::from(lost));
    }
    fn share(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }
    fn chance(&self) -> f64 {
        let share = self.share();
        (share * (1.0 - share) / self.packets.max(1.0)).sqrt()
    }
}

/// Both accounts, and when what was lost.
#[derive(Clone, Debug, Default)]
pub struct LossModel {
    quiet: Account,
    loud: Account,
    /// Packets delivered and lost in all, at moments since the oldest packet in flight left.
    moments: VecDeque<(u64, u64)>,
    lost: u64,
    /// No more than this, if anything is said.
    most: Option<f64>,
    /// The rate was told, and no loss.
    pub told: bool,
}

impl LossModel {
    /// From now on no more is believed than now: the sender does not hold back as a rule.
    pub fn hold(&mut self) {
        self.most = Some(self.link());
    }
    /// What is lost follows the rate.
    pub fn distrust(&mut self) {
        (self.quiet, self.loud, self.most) = (Account::default(), Account::default(), Some(0.0));
        self.told = false;
    }
    /// Nothing was full in this round: what it lost is the link's, and what was counted before may not be. No more is
    /// believed until the next such round.
    pub fn not_full(&mut self, round: &Round) {
        let packets = round.delivered + round.lost;
        self.quiet = Account { packets, lost: round.lost };
        self.loud = Account::default();
        self.most = Some((self.quiet.share() + self.quiet.chance()).min(MOST));
    }
    /// Of so many packets so many were lost at a small rate; whether more are at a larger one is to be seen.
    pub fn expect(&mut self, packets: f64, lost: f64) {
        self.quiet = Account { packets, lost };
        (self.loud, self.most) = (Account::default(), None);
    }
    /// The accounts count again.
    pub fn trust(&mut self) {
        self.most = None;
    }
    /// What is known now may be exceeded a little; nothing new is believed from now on without an experiment: losses that
    /// come later are those of others who came. Where nothing was counted yet, everything is new.
    pub fn settle(&mut self) {
        if self.quiet.packets + self.loud.packets >= ENOUGH {
            let known = self.most.unwrap_or(MOST).min(self.share());
            self.most = Some((1.25 * known + 0.005).min(MOST));
        }
    }
    /// A packet arrived or was lost; `quiet` if it left while the sender held back.
    pub fn on_outcome(&mut self, lost: bool, quiet: bool) {
        if quiet { &mut self.quiet } else { &mut self.loud }.add(lost);
    }

    /// A packet was lost, whatever it says of the link.
    pub fn on_loss(&mut self) {
        self.lost += 1;
    }

    /// Of so many packets that were lost while so many arrived: how many the link may have lost.
    pub fn credit(&self, lost: f64, delivered: f64) -> f64 {
        let mean = self.link() * (lost + delivered);
        lost.min(mean + CHANCE * mean.sqrt())
    }

    /// While a delivery rate was sampled: how many the link lost in the mean, and may have lost.
    pub fn credit_of(&mut self, rate: &RateSample) -> (f64, f64) {
        while self.moments.get(1).is_some_and(|m| m.0 <= rate.prior_delivered)
            || self.moments.len() >= MAX_MOMENTS
        {
            self.moments.pop_front();
        }
        let before = self.moments.front().map_or(self.lost, |m| m.1);
        self.moments.push_back((rate.total_delivered, self.lost));
        let (lost, delivered) = ((self.lost - before) as f64, rate.delivered as f64);
        (lost.min(self.link() * (lost + delivered)), self.credit(lost, delivered))
    }

    /// What was counted so far was quiet: more arrived when more was sent.
    pub fn followed(&mut self) {
        let loud = std::mem::take(&mut self.loud);
        self.quiet.packets += loud.packets;
        self.quiet.lost += loud.lost;
    }

    /// Share of packets whose loss follows the own rate.
    pub fn excess(&self) -> f64 {
        let (quiet, loud) = (self.quiet, self.loud);
        if quiet.packets < ENOUGH || loud.packets < ENOUGH {
            return 0.0;
        }
        let all = (quiet.lost + loud.lost) / (quiet.packets + loud.packets);
        let each = 1.0 / quiet.packets + 1.0 / loud.packets;
        let deviation = (BURSTS * all * (1.0 - all) * each).sqrt();
        let excess = loud.share() - quiet.share();
        let significant = if quiet.share() > LOSES_QUIETLY { SURE } else { SIGNIFICANT };
        if excess > significant * deviation { excess } else { 0.0 }
    }

    /// Share of packets that the link loses, as far as is known: of all, but by no more than chance above what
    /// was lost while the sender held back. Who believed all would raise the rate by what a full buffer
    /// drops, and lose more; by this he ends where holding back loses what the link does.
    pub fn link(&self) -> f64 {
        self.share().min(self.most.unwrap_or(MOST))
    }

    fn untested(&self) -> f64 {
        if self.told { UNTESTED_TOLD } else { UNTESTED }
    }

    fn share(&self) -> f64 {
        let packets = self.quiet.packets + self.loud.packets;
        if packets < ENOUGH {
            return 0.0;
        }
        let share = self.quiet.share();
        let excess = self.excess();
        if excess > 0.0 {
            // Who held back may have held back too little: the trend is followed on.
            return (share - TREND * excess).max(0.0);
        }
        let all = (self.quiet.lost + self.loud.lost) / packets;
        if self.quiet.packets < 1.0 {
            return all.min(self.untested());
        }
        // Chance is that of all: of few packets that left quietly none may have been lost.
        all.min(share + (all * (1.0 - all) / self.quiet.packets).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    fn model(quiet: (u32, u32), loud: (u32, u32)) -> LossModel {
        let mut model = LossModel::default();
        for (is_quiet, (packets, every)) in [(true, quiet), (false, loud)] {
            for i in 0..packets {
                model.on_outcome(every > 0 && i % every == 0, is_quiet);
            }
        }
        model
    }

    #[test]
    fn what_is_lost_at_any_rate_is_the_links() {
        let m = model((100, 10), (500, 10));
        assert!((m.link() - 0.1).abs() < 1e-9 && m.excess() == 0.0, "{m:?}");
        // Before anything left quietly, only up to a tenth.
        assert_eq!(model((0, 0), (100, 5)).link(), UNTESTED);
    }

    /// A quiet round of fifty packets that loses none says little where bursts take a tenth of all others.
    #[test]
    fn a_quiet_round_that_chance_spared_does_not_end_the_belief() {
        let m = model((50, 0), (200, 10));
        assert!(m.link() > 0.03 && m.link() < 0.1, "{}", m.link());
    }

    #[test]
    fn what_follows_the_rate_is_not() {
        let m = model((200, 0), (500, 5));
        assert!(m.link() == 0.0 && (m.excess() - 0.2).abs() < 1e-9, "{m:?}");
    }

    /// A probe that lost what it added must not find a larger bandwidth by it.
    #[test]
    fn what_chance_may_have_lost_is_more_than_what_the_link_lost_in_the_mean() {
        let mut m = model((200, 10), (0, 0));
        for _ in 0..30 {
            m.on_loss();
        }
        let rate = RateSample {
            delivered: 70,
            interval: Duration::from_millis(50),
            prior_delivered: 0,
            total_delivered: 70,
            app_limited: false,
        };
        m.moments.push_front((0, 0));
        let (likely, possible) = m.credit_of(&rate);
        assert!((likely - 10.0).abs() < 1e-9 && possible > 28.0, "{likely} {possible}");
    }

    /// Three deviations, which chance brings every few seconds: enough where nothing is lost quietly, and not where a
    /// fifth is.
    #[test]
    fn a_link_that_loses_quietly_is_not_doubted_by_chance() {
        assert!(model((100, 0), (300, 4)).excess() > 0.0);
        let m = model((100, 5), (300, 2));
        assert!(m.excess() == 0.0 && m.link() > 0.2, "{m:?}");
        // All that is sent more is lost.
        assert!(model((400, 5), (400, 2)).excess() > 0.0);
    }

    #[test]
    fn a_told_rate_is_believed_before_anything_left_quietly() {
        let told = LossModel { told: true, ..model((0, 0), (100, 3)) };
        assert_eq!(told.link(), UNTESTED_TOLD);
    }

    #[test]
    fn a_handful_of_packets_says_nothing() {
        assert_eq!(model((0, 0), (10, 2)).link(), 0.0);
        assert_eq!(model((5, 0), (100, 5)).excess(), 0.0);
    }
}
