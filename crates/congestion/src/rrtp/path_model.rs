//! What is known of the path: rates, round trips, queues, losses. `rrtp-lasthop` keeps the same books.
//!
//! *Bandwidth* is the largest delivery rate of the last rounds. What the link lost of a sample had been sent by the
//! bottleneck, too, and counts; what a full queue dropped does not ([`LossModel`]).
//!
//! *Round trips* lack what packets waited on the way back, where the receiver says when they arrived: its queues are
//! not ours. The *noise* is what round trips are above the smallest one without any queue: jitter, and what hosts need.
//! It rises only when an experiment showed that a delay does not follow the own window, and falls by itself.

use super::KNOWN_LOSS;
use super::loss_model::LossModel;
use super::round::{Counting, Round};
use crate::{Ack, positive};
use narrows_base::{Time, math};

/// Rounds over which the largest delivery rate counts.
const RATE_ROUNDS: usize = 10;
/// Seconds for which a smallest round trip counts at least, and rounds.
const BASE_SECONDS: f64 = 10.0;
/// On paths shorter than this, round trips tell when hosts get round to it and not of queues.
const HOST_SECONDS: f64 = 0.001;
/// A band of round trips narrower than this share of the smallest tells nothing.
const TELLING_BAND: f64 = 0.1;
/// Share of a round's packets that no radio link loses.
const FLOOD: f64 = 0.1;
/// Part of the band above which a loss is congestion.
const SPIKE: f64 = 0.4;
/// Differences of neighbouring round trips that are jitter: share of the base, and packets' times.
const SCATTER: f64 = 0.01;
const SCATTER_TURNS: f64 = 0.7;
/// … and part of what jitter makes round trips longer by, over the square root of the packets that come within twice that:
/// 0.3 to 1.3 on links that jitter, 0.03 to 0.04 where thirty flows kept a queue that stood.
const LEAPS: f64 = 0.1;
/// Rounds over which the multiple of these that round trips scatter by is averaged, where none counts for more, and those
/// without any that it begins with. Where it is above this, the path jitters: it mostly is 0.8 to 2 on links that do so by
/// 20 ms and more, 0.1 to 0.6 in queues of TCP, BBR and thirty flows, above 0.8 in at most 1 of 1,000 rounds.
const LEAP_ROUNDS: f64 = 16.0;
const NO_LEAPS: f64 = 4.0;
const MOST_LEAP: f64 = 2.0;
const JITTERS: f64 = 0.8;
/// … by at least this share of the base: less arises where acknowledgements are lost.
const SURE_SCATTER: f64 = 0.02;
/// … and counted in rounds that are so many times as long as the base: less hinders nobody.
const LONGER: f64 = 1.1;
/// … and not in those that are so many times as long as the one before: a queue that grows in bursts leaps, too.
const GROWS: f64 = 1.5;
/// Part of what they are longer by within which round trips stay, in so many rounds.
const STEADY: f64 = 0.2;
const STEADY_ROUNDS: usize = 4;
/// What is less probable is no chance.
const RARE: f64 = 1e-4;
/// Losses in a row that are an outage's: few bursts are as long.
const SILENT: u32 = 16;
/// Rounds between outages at least: a slower link's full queue lets one of many pass, too, but in each round.
const APART: u32 = 8;
/// Multiple of the noise that was learnt by which round trips may turn out to be above the smallest.
const MOST_MISSED: f64 = 2.0;
/// Part of the way that the noise falls when a round shows less.
const NOISE_FALLS: f64 = 0.25;

/// Estimates; a round is the time in which what is in flight is answered.
#[derive(Clone, Debug)]
pub struct PathModel {
    /// Largest rate sample of each of the last rounds, packets per second; the first is of now.
    best: [f64; RATE_ROUNDS],
    /// The first has a sample of the path, not of the application.
    sampled: bool,
    /// Smallest RTT, seconds, of this and of the last period.
    base: [f64; 2],
    period_began: f64,
    told: bool,
    /// Newest RTT.
    pub rtt: f64,
    /// Largest RTT, as the smallest.
    most: [f64; 2],
    /// The round that ended last, and the one that goes on.
    pub round: Round,
    now: Counting,
    pub rounds: u64,
    /// Mean round trips of the last rounds, seconds.
    means: [f64; STEADY_ROUNDS],
    /// Multiple of what a queue may make them scatter by, in the mean of the last rounds.
    leapt: f64,
    /// Packets lost since the last one that arrived, and the seconds at which the first and the last of them left.
    lost_in_a_row: u32,
    lost_from: f64,
    lost_until: f64,
    /// Rounds since an outage was told from a flood.
    since_outage: u32,
    /// Samples above this do not count.
    pub most_rate: f64,
    /// Share that the radio link is known to lose.
    pub radio_loss: f64,
    /// What the link loses by itself, where it is asked.
    pub losses: Option<LossModel>,
    /// Whether that counts now.
    pub crediting: bool,
    /// Seconds that round trips are longer than the base without a queue: mean and deviation.
    noise: [f64; 2],
    /// … the mean when it was learnt.
    learnt: f64,
    /// The smallest time back of this and of the last period; the mean excess over it.
    back: [f64; 2],
    back_excess: f64,
}

impl Default for PathModel {
    fn default() -> PathModel {
        PathModel {
            best: [0.0; RATE_ROUNDS],
            sampled: false,
            base: [f64::INFINITY; 2],
            period_began: 0.0,
            told: false,
            rtt: 0.0,
            most: [0.0; 2],
            round: Round::default(),
            now: Counting::default(),
            rounds: 0,
            means: [0.0; STEADY_ROUNDS],
            leapt: 0.0,
            lost_in_a_row: 0,
            lost_from: 0.0,
            lost_until: 0.0,
            since_outage: APART,
            most_rate: 1e12,
            radio_loss: 0.0,
            losses: None,
            crediting: true,
            noise: [0.0; 2],
            learnt: 0.0,
            back: [f64::INFINITY; 2],
            back_excess: 0.0,
        }
    }
}

impl PathModel {
    /// One that finds out what the link loses and counts it as sent by the bottleneck.
    pub fn with_losses() -> PathModel {
        PathModel { losses: Some(LossModel::default()), ..PathModel::default() }
    }
    /// Somebody says what the smallest RTT is: it counts until one is measured, as the time of
    /// transmission is not in it.
    pub fn set_base(&mut self, base: f64) {
        self.base = [base, f64::INFINITY];
        self.told = true;
    }
    /// The bandwidth is this, and what was measured is forgotten.
    pub fn set_bandwidth(&mut self, per_second: f64) {
        self.best = [0.0; RATE_ROUNDS];
        self.best[0] = per_second;
    }
    /// The bandwidth is not known.
    pub fn forget_rates(&mut self) {
        self.best = [0.0; RATE_ROUNDS];
    }
    /// The path may be another one: a silence ended.
    pub fn forget_round_trips(&mut self) {
        (self.base, self.most, self.noise) = ([f64::INFINITY; 2], [0.0; 2], [0.0; 2]);
    }
    /// Largest delivery rate of the last rounds, packets per second; 0 if none is known.
    pub fn bandwidth(&self) -> f64 {
        self.best.iter().copied().fold(0.0, f64::max)
    }
    /// Smallest RTT in seconds, and no less than hosts need to say anything.
    pub fn base(&self) -> Option<f64> {
        let base = self.base[0].min(self.base[1]);
        base.is_finite().then_some(base.max(HOST_SECONDS))
    }
    /// Bandwidth-delay product, packets: what fills the path without a queue of ours.
    pub fn product(&self) -> f64 {
        self.bandwidth() * (self.base().unwrap_or(0.0) + self.noise[0] + self.back_excess)
    }
    /// … without what hosts need: what fills the path where they are fast.
    pub fn least_product(&self) -> f64 {
        if self.is_short() { self.bandwidth() * self.least() } else { self.product() }
    }
    /// Whether round trips are so short that they tell of hosts and not of queues.
    pub fn is_short(&self) -> bool {
        self.base[0].min(self.base[1]) < HOST_SECONDS
    }
    /// What round trips are without a queue: the smallest, and the noise.
    pub fn floor(&self) -> Option<f64> {
        Some(self.base()? + self.noise[0])
    }
    /// Mean of the noise, seconds.
    pub fn noise(&self) -> f64 {
        self.noise[0]
    }
    /// What the noise varies by, seconds.
    pub fn spread(&self) -> f64 {
        2.0 * self.noise[1]
    }
    /// Whether the round trips of the last round scatter from packet to packet, more than turns at the bottleneck make
    /// them, and as much as jitter does that makes them as long: a queue grows and falls step by step, jitter leaps. Where
    /// packets do not overtake each other one that is late holds up those behind it, so leaps are the smaller the
    /// more packets come within the time that round trips vary by.
    pub fn varies(&self) -> bool {
        self.round.scatter > self.smooth(SCATTER)
    }
    /// Whether they scattered in the last rounds as no queue makes them: what a single round shows, a burst may have done.
    pub fn jitters(&self) -> bool {
        self.leapt > JITTERS
    }
    /// … and those of the last round were no longer than what is known of it: no queue shows beyond that.
    pub fn jitters_only(&self) -> bool {
        let floor = self.floor().unwrap_or(0.0);
        self.jitters() && self.round.mean_rtt <= floor + self.spread() + self.chance()
    }
    /// Root mean square difference of neighbouring round trips that a queue may make, `share` of the base at least.
    fn smooth(&self, share: f64) -> f64 {
        let base = self.base().unwrap_or(0.0);
        let turns = SCATTER_TURNS / self.bandwidth().max(1.0);
        let longer = self.round.mean_rtt - base;
        let within = (2.0 * longer * self.round.delivered_rate()).max(1.0);
        (share * base).max(turns).max(LEAPS * longer / within.sqrt())
    }
    /// Whether round trips have been longer than the base by nearly as much in each of the last rounds: a longer path's
    /// are, and a queue of others comes and goes.
    pub fn is_steady(&self) -> bool {
        let longest = self.means.iter().copied().fold(0.0, f64::max);
        let shortest = self.means.iter().copied().fold(f64::INFINITY, f64::min);
        longest - shortest <= STEADY * (self.round.mean_rtt - self.base().unwrap_or(0.0))
    }
    /// By how much the mean round trip of the last round may be off by chance; 0 where there is no jitter.
    pub fn chance(&self) -> f64 {
        let each = 2.0 * self.round.deviation / self.round.delivered.max(1.0).sqrt();
        if self.varies() { each } else { 0.0 }
    }
    /// What was taken for noise was somebody's queue.
    pub fn forget_noise(&mut self) {
        self.noise = [0.0; 2];
    }
    /// The delay of the last round is nobody's queue.
    pub fn learn_noise(&mut self) {
        let base = self.base().unwrap_or(0.0);
        self.noise = [(self.round.mean_rtt - base).max(0.0), self.round.deviation];
        self.learnt = self.noise[0];
        self.most = [0.0; 2];
    }
    /// Whether a queue shows; a band too narrow to tell acquits: nobody else's queue can be there.
    pub fn shows_queue(&self) -> bool {
        self.queue_shows().unwrap_or(false)
    }
    /// … where it is known that there is none.
    pub fn shows_no_queue(&self) -> bool {
        self.queue_shows() == Some(false)
    }
    /// Whether the newest round trip is in the upper part of a band that is wide enough to tell.
    pub fn queue_shows(&self) -> Option<bool> {
        let base = self.floor()? + self.spread();
        let band = self.most[0].max(self.most[1]) - base;
        (band >= TELLING_BAND * base).then_some(self.rtt > base + SPIKE * band)
    }

    /// What round trips are without a queue and the band above it, in seconds, and where in it the newest is, from 0 to
    /// 1; nothing, if the band is too narrow to tell.
    pub fn level(&self) -> Option<(f64, f64, f64)> {
        let base = self.floor()? + self.spread();
        let band = self.most[0].max(self.most[1]) - base;
        (band >= TELLING_BAND * base).then(|| (base, band, ((self.rtt - base) / band).max(0.0)))
    }

    /// What round trips are without a queue where hosts are fast.
    fn least(&self) -> f64 {
        let floor = self.floor().unwrap_or(0.0);
        if self.is_short() { self.base[0].min(self.base[1]) } else { floor }
    }
    /// The part of what is in flight that the path itself holds when its queue is as long as in this round
    /// or the last.
    pub fn held(&self) -> f64 {
        let most = self.now.max_rtt.max(self.round.max_rtt);
        self.least() / most.max(1e-9)
    }
    /// … as long as in the last period at most.
    pub fn held_at_most(&self) -> f64 {
        self.least() / self.most[0].max(self.most[1]).max(1e-9)
    }

    /// A packet was lost that left then.
    pub fn on_loss(&mut self, sent: Time) {
        self.now.lost += 1;
        self.lost_until = sent.as_secs_f64();
        if self.lost_in_a_row == 0 {
            self.lost_from = self.lost_until;
        }
        self.lost_in_a_row += 1;
        self.losses.iter_mut().for_each(LossModel::on_loss);
    }

    /// Share of packets that the link loses: measured or told.
    pub fn link_loss(&self) -> f64 {
        self.measured_losses().map_or(0.0, LossModel::link).max(self.radio_loss)
    }
    /// What was measured of the link's losses, if the path holds enough packets to tell.
    fn measured_losses(&self) -> Option<&LossModel> {
        self.losses.as_ref().filter(|_| self.crediting)
    }
    /// Whether it is worth making up for.
    pub fn loses(&self) -> bool {
        self.link_loss() >= KNOWN_LOSS
    }
    /// Share of packets whose loss follows the own rate.
    pub fn rate_loss(&self) -> f64 {
        self.losses.as_ref().map_or(0.0, LossModel::excess)
    }

    /// The round trip without what was waited on the way back.
    fn forward(&mut self, rtt: f64, forward_delay: Option<f64>) -> f64 {
        let Some(there) = forward_delay else { return rtt };
        let back = rtt - there;
        self.back[0] = self.back[0].min(back);
        let excess = (back - self.back[0].min(self.back[1])).clamp(0.0, rtt);
        self.back_excess += 0.1 * (excess - self.back_excess);
        rtt - excess
    }

    /// Whether a link that loses as this one does loses so many packets in a row now and then: an application that
    /// sends little fills no silence with more.
    pub fn lost_by_chance(&self) -> bool {
        math::pow(self.link_loss(), f64::from(self.lost_in_a_row.max(1))) > RARE
    }

    /// Whether so many packets were lost in a row that nothing may be passing at all.
    pub fn is_silent(&self) -> bool {
        self.lost_in_a_row >= SILENT
    }

    /// Packets lost in this round so far.
    pub fn lost_now(&self) -> u64 {
        self.now.lost
    }

    /// Whether the round that ended last lost more than a radio link would.
    pub fn is_flooded(&self) -> bool {
        let expected = FLOOD + 2.0 * self.link_loss();
        self.round.lost > 2.0 + expected * (self.round.delivered + self.round.credit)
    }

    /// Whether the round that ended last lost as much as a full queue makes a newcomer lose, whoever lost it: round trips
    /// that do not follow the window may then be that queue's.
    pub fn may_be_full(&self) -> bool {
        self.round.lost > 2.0 + FLOOD * self.round.delivered
    }

    /// Whether what was lost since the last arrival was an outage's: nothing passed for so long that the link would have
    /// sent many packets, and no queue showed before or shows now. A full queue goes on sending.
    fn was_away(&self, queued: bool) -> bool {
        let would_pass = (self.lost_until - self.lost_from) * self.bandwidth();
        self.losses.is_some()
            && self.is_silent()
            && would_pass >= f64::from(SILENT)
            && self.since_outage >= APART
            && !queued
            && !self.shows_queue()
    }

    /// Takes an acknowledgement in; true if a round has ended.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let rtt = self.forward(positive(ack.rtt), ack.forward_delay.map(positive));
        let queued = self.shows_queue();
        self.rtt = rtt;
        if self.was_away(queued) {
            self.now.lost = self.now.lost.saturating_sub(u64::from(self.lost_in_a_row));
            self.since_outage = 0;
        }
        self.lost_in_a_row = 0;
        let now = ack.now.as_secs_f64();
        if self.told {
            // What was told lacks the time of transmission: the first sample is believed.
            self.told = false;
            self.base = [f64::INFINITY; 2];
            self.period_began = now;
        }
        if self.base[0].is_finite() && now - self.period_began > BASE_SECONDS.max(40.0 * rtt) {
            self.base = [f64::INFINITY, self.base[0]];
            self.most = [0.0, self.most[0]];
            self.back = [f64::INFINITY, self.back[0]];
            self.period_began = now;
        }
        let shorter = self.base[0].min(self.base[1]) - rtt;
        if shorter > 0.0 && self.noise[0] > 0.0 {
            // The floor stays where it was; but if it was so far above, a queue was taken for the path.
            self.noise[0] += shorter;
            if self.noise[0] > MOST_MISSED * self.learnt {
                self.forget_noise();
            }
        }
        self.base[0] = self.base[0].min(rtt);
        self.most[0] = self.most[0].max(rtt);
        let ended = if ack.round_start { self.now.turn(ack.now, rtt) } else { None };
        if let Some(round) = ended {
            self.end_round(round);
        }
        self.now.add(rtt, ack.newly_delivered as f64);
        if let Some(rate) = &ack.rate {
            self.now.sampled[usize::from(rate.app_limited)] = true;
            let (likely, possible) = self.losses.as_mut().map_or((0.0, 0.0), |l| l.credit_of(rate));
            let per_second = |credit: f64| {
                let credit = if self.crediting { credit } else { 0.0 };
                (rate.delivered as f64 + credit) / positive(rate.interval)
            };
            // What chance may have lost keeps the bandwidth that is known; a probe finds no more by what it lost.
            let known = self.bandwidth();
            let sample =
                per_second(possible).min(known).max(per_second(likely)).min(self.most_rate);
            if sample >= known || !rate.app_limited {
                self.sampled = true;
                self.best[0] = self.best[0].max(sample);
            }
        }
        ended.is_some()
    }

    fn end_round(&mut self, mut round: Round) {
        round.credit =
            self.measured_losses().map_or(0.0, |l| l.credit(round.lost, round.delivered));
        self.round = round;
        self.rounds += 1;
        self.since_outage = self.since_outage.saturating_add(1);
        self.means.rotate_right(1);
        self.means[0] = round.mean_rtt;
        let longer = round.mean_rtt > LONGER * self.base().unwrap_or(0.0);
        let grows = self.rounds > 1 && round.mean_rtt > GROWS * self.means[1];
        let leap = if longer && !grows { round.scatter / self.smooth(SURE_SCATTER) } else { 0.0 };
        let leap = leap.min(MOST_LEAP);
        self.leapt += (leap - self.leapt) / (self.rounds as f64 + NO_LEAPS).min(LEAP_ROUNDS);
        if let Some(base) = self.base() {
            let less = (round.mean_rtt - base - self.noise[0]).min(0.0);
            self.noise[0] = (self.noise[0] + NOISE_FALLS * less).max(0.0);
        }
        // Rounds in which the application was the limit say nothing: what is known stays.
        if self.sampled {
            self.best.rotate_right(1);
            self.best[0] = 0.0;
            self.sampled = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    /// A path of 50 ms and 1000 packets per second.
    fn path() -> PathModel {
        let mut path = PathModel::default();
        path.on_ack(&acked(50));
        path.set_bandwidth(1000.0);
        path
    }

    fn acked(ms: u64) -> Ack {
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        let rtt = Duration::from_millis(ms);
        Ack { rtt, round_start: false, ..scenario.ack(1, false) }
    }

    /// A round of so many packets whose round trips have that mean, deviation and scatter, in ms.
    fn round(packets: f64, mean: f64, deviation: f64, scatter: f64) -> Round {
        Round {
            delivered: packets,
            span: 1e-3 * mean,
            mean_rtt: 1e-3 * mean,
            deviation: 1e-3 * deviation,
            scatter: 1e-3 * scatter,
            ..Round::default()
        }
    }

    /// Figures of simulated links: 40 ms of jitter, few packets and many, and a queue that thirty flows keep.
    #[test]
    fn jitter_leaps_and_a_queue_of_many_flows_does_not() {
        let varies = |round| {
            let mut path = path();
            path.end_round(round);
            path.varies()
        };
        assert!(varies(round(19.0, 65.5, 6.9, 5.1)));
        assert!(varies(round(355.0, 87.6, 3.1, 0.8)));
        assert!(!varies(round(42.0, 130.5, 2.4, 0.8)));
    }

    /// A single round may be a burst's; many are jitter's, unless it is too little to hinder anybody or each is half as
    /// long again as the one before, as those of a queue that a burst fills are.
    #[test]
    fn jitter_is_known_by_many_rounds() {
        let jitters = |rounds: &[Round]| {
            let mut path = path();
            rounds.iter().for_each(|r| path.end_round(*r));
            path.jitters()
        };
        let leaps = round(19.0, 65.5, 6.9, 5.1);
        assert!(!jitters(&[leaps; 2]) && jitters(&[leaps; 8]));
        assert!(!jitters(&[round(42.0, 130.5, 2.4, 0.8); 40]));
        assert!(!jitters(&[round(40.0, 54.0, 3.0, 3.0); 40]));
        let burst = [60.0, 96.0, 154.0, 246.0, 394.0, 630.0, 1008.0, 1612.0];
        let burst = burst.map(|ms| round(30.0, ms, 0.2 * ms, 0.2 * ms));
        assert!(!jitters(&burst));
        // It is no queue's as long as round trips are no longer than what was learnt.
        let mut path = path();
        (0..8).for_each(|_| path.end_round(leaps));
        assert!(!path.jitters_only());
        path.learn_noise();
        assert!(path.jitters_only());
        path.end_round(round(19.0, 95.0, 6.9, 5.1));
        assert!(path.jitters() && !path.jitters_only());
    }

    #[test]
    fn a_longer_path_stays_longer_and_a_queue_comes_and_goes() {
        let steady = |means: [f64; STEADY_ROUNDS]| {
            let mut path = path();
            for ms in means {
                path.end_round(round(30.0, ms, 0.5, 0.1));
            }
            path.is_steady()
        };
        assert!(steady([100.0, 101.0, 104.0, 100.0]));
        assert!(!steady([71.0, 80.0, 63.0, 72.0]));
        assert!(!steady([50.0, 100.0, 100.0, 100.0]), "the path has just changed");
    }

    #[test]
    fn noise_that_the_path_turns_out_not_to_have_is_forgotten() {
        let mut path = path();
        path.end_round(round(30.0, 60.0, 3.0, 3.0));
        path.learn_noise();
        path.on_ack(&acked(42));
        let [noise, floor] = [path.noise(), path.floor().unwrap()];
        assert!((noise - 0.018).abs() < 1e-9 && (floor - 0.06).abs() < 1e-9, "{noise} {floor}");
        path.on_ack(&acked(35));
        assert_eq!(path.noise(), 0.0);
    }

    /// Losses of the round that ended last, where `packets` in a row were lost within so many ms before the round trips
    /// of 50 and then `rtt` ms.
    fn lost_in_round(path: &mut PathModel, packets: u64, ms: u64, rtt: u64) -> f64 {
        path.on_ack(&acked(50));
        for i in 0..packets {
            path.on_loss(Time::ZERO + Duration::from_micros(1000 * ms * i / packets));
        }
        path.on_ack(&Ack { round_start: true, ..acked(rtt) });
        path.round.lost
    }

    /// A full queue sends a packet for each that it is late; an outage none. Where the sender let go of many at once a short
    /// queue may have dropped them, one that shows has, and a link that has become slower drops as many again and again.
    #[test]
    fn what_is_lost_while_nothing_passes_is_no_flood() {
        let new = || {
            let mut path = PathModel { losses: Some(LossModel::default()), ..path() };
            path.on_ack(&Ack { round_start: true, ..acked(80) });
            path
        };
        assert_eq!(lost_in_round(&mut new(), 40, 40, 50), 0.0);
        assert_eq!(lost_in_round(&mut new(), 12, 12, 50), 12.0);
        assert_eq!(lost_in_round(&mut new(), 40, 5, 50), 40.0);
        assert_eq!(lost_in_round(&mut new(), 40, 40, 75), 40.0);
        let mut slower = new();
        let lost = [0; 3].map(|_| lost_in_round(&mut slower, 40, 40, 50));
        assert_eq!(lost, [0.0, 40.0, 40.0]);
    }
}
