//! The startup: a rate from the spacing of a few packets, a train that verifies it, and a climb until a
//! queue shows.
//!
//! The few packets are those that opened the connection, where they tell it ([`Dispersion`]), else a
//! first flight of four.
//!
//! On fast links four packets arrive within the time that hosts need to say so, and tell a rate that is
//! too high or none. The train is long enough: one that came slower than it left waited in a queue,
//! and its spacing is the link's, or what competitors leave of it. Which of them, a second
//! train tells that leaves at this rate.
//!
//! Flows that begin together would each find the whole link free between the trains of the others, and each send a whole
//! product. But the packet that a train begins with has nothing of its own flow ahead of it: if it waits longer than
//! what the flow sent before can make it wait, others have begun to fill the link since it was met. Then nothing leaves at
//! the rate that is told: what is out goes on, and doubles until a queue shows. Where a product is long, trains seldom
//! meet; so a train leads to no more than four times its packets, which begin with such a packet, too.

use super::flight::{AT_ONCE, Flight};
use super::loss_model::LossModel;
use super::path_model::PathModel;
use super::round::Round;
use super::{FEW_TO_TELL, FIRST_FLIGHT, Mode, Rrtp};
use crate::{Ack, Dispersion, PacketOutcome};
use narrows_base::Time;

/// A first flight's rate may lead to so many packets in the second.
const JUMP: f64 = 64.0;
/// … and a train's to so many times as many in the next flight. After 64 and 256 packets a product of up to 1024 follows:
/// no later than after two trains of 64.
const NEXT: f64 = 4.0;
/// Before anything was acknowledged no more than this may leave, whatever the startup's packets told:
/// whoever answered them can have told anything (RFC 6928).
const UNPROVEN: f64 = 10.0;
/// Packets per second of a train that leaves at once, as nothing is known but that the path is fast.
const VERY_FAST: f64 = 1e7;
/// Paths are probed for packets of so much more than the first.
const FULL: f64 = 2.0 / 3.0;
/// Share of a train whose spacing counts: what was lost is missing.
const ENOUGH: f64 = 0.875;
/// What a round of the climb adds, where a train told the rate and where not.
const CLIMB: f64 = 1.25;
const BLIND_CLIMB: f64 = 2.0;
/// A round trip above the smallest by this share is a queue.
const RISEN: f64 = 0.1;
/// … but by no less than this, in seconds: timers are late.
const NOISE: f64 = 0.001;
/// … in so many acknowledgements in a row.
const RISEN_ACKS: u32 = 8;
/// A round whose largest round trip is within this multiple of the smallest met no queue.
const EMPTY: f64 = 1.02;
/// A train that arrives at less than this share of its rate shows that the rate is not there.
const TRAIN: f64 = 0.6;
/// A round that delivers so much more than any before shows that there was room.
const FOLLOWS: f64 = 1.1;
/// So many rounds without that show that there is none.
const MAX_STALE: u32 = 4;
const MAX_SCATTERED: u32 = 2;
/// Part of what was sent in addition that arrives where nothing is full.
const IN_STEP: f64 = 0.6;
/// Part of what a full link would make round trips longer, below which they stayed.
const STAYS: f64 = 0.2;
/// … and deviations by which their mean falls where a queue drains, which others had filled before.
const DRAINS: f64 = 2.0;
/// A first packet that waits so much of the shortest round trip, and [`NOISE`], behind nothing of its own flow has met
/// others. A queue that stood before is in the shortest round trip, and one that TCP fills for long grows by 0.03 of it.
const OTHERS: f64 = 0.05;
/// Rounds at the window's limit in which no flight told the rate.
const ENOUGH_ROUNDS: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// The first flight is out.
    #[default]
    First,
    /// The train is out.
    Train,
    Climb,
}

/// What the packets that opened a connection told.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// Packets per second, and seconds.
    rate: f64,
    rtt: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Startup {
    stage: Stage,
    flight: Flight,
    /// Packets that are still out of a flight that told nothing so far.
    out: u64,
    /// What the startup's packets told, until something is acknowledged.
    claimed: Option<Claim>,
    /// Rounds that ended while the window was the limit.
    limited: u32,
    /// Trains so far, the packets of the last, and those that had left before it.
    trains: u32,
    train: f64,
    ahead: f64,
    /// They met others.
    shares: bool,
    /// When the first acknowledgement of a train came, of how many packets, and how many since.
    first: Option<Time>,
    with_first: f64,
    since: f64,
    /// Packets per second.
    estimate: f64,
    /// Factor per round of the climb.
    climb: f64,
    /// Round trips above [`RISEN`] in a row.
    high: u32,
    /// The round of the climb that delivered most, and how many were there since.
    best: Option<Round>,
    stale: u32,
    /// A round met no queue.
    saw_empty: bool,
    /// It is a climb to explain losses: it doubles while rounds are too small to tell anything, and ends where more is
    /// lost than before.
    for_losses: bool,
    /// The round that goes on counts what left before the restart.
    mixed: bool,
}

impl Startup {
    /// Whether the path was met without a queue.
    pub fn saw_empty(&self) -> bool {
        self.saw_empty
    }
    /// Whether the spacing of what comes counts.
    fn is_timed(&self) -> bool {
        self.stage != Stage::Climb && self.trains < 2
    }
    /// After a restart: no train.
    pub fn again() -> Startup {
        Startup { stage: Stage::Climb, climb: BLIND_CLIMB, mixed: true, ..Startup::default() }
    }
    /// A round delivered more than any before. If it was more as more was sent, what was lost is the link's; if round
    /// trips scatter and are not longer for it, what they are above the smallest is no queue.
    fn followed(&mut self, path: &mut PathModel) {
        let round = path.round;
        let before = self.best.replace(round);
        let Some(before) = before else { return };
        let growth = round.sent_rate() / before.sent_rate() - 1.0;
        if round.delivered_rate() / before.delivered_rate() - 1.0 < IN_STEP * growth {
            return;
        }
        if !self.for_losses {
            path.losses.iter_mut().for_each(LossModel::followed);
        }
        let rise = round.mean_rtt - before.mean_rtt;
        if path.varies()
            && !path.may_be_full()
            && rise < STAYS * growth * before.mean_rtt + path.chance()
            && rise > -DRAINS * round.deviation
        {
            path.learn_noise();
        }
    }
    /// Once more, for the losses of a path that shows no queue.
    pub fn for_losses() -> Startup {
        Startup { for_losses: true, ..Startup::resumed() }
    }
    /// What ended the climb was no queue.
    pub fn resumed() -> Startup {
        Startup { climb: CLIMB, mixed: false, ..Startup::again() }
    }
}

impl Rrtp {
    pub(super) fn startup_outcome(&mut self, outcome: &PacketOutcome) {
        if self.startup.is_timed() {
            self.startup.flight.on_packet_outcome(outcome);
        }
        if self.startup.shares && outcome.lost {
            self.window = (self.window - 1.0).max(FIRST_FLIGHT);
        }
        if self.startup.stage == Stage::First {
            self.read_flight();
        }
    }

    /// Whether the first flight, or one after it, has told a rate.
    fn read_flight(&mut self) -> bool {
        let Some(base) = self.path.base() else { return false };
        // Of the first four one may be lost, or be the packet that opens a connection.
        let enough = self.first_flight as usize - 1;
        if let Some(rate) = self.startup.flight.rate(enough) {
            self.first_rate(rate / self.packet_bits, base);
        } else if self.startup.flight.came_at_once(enough, self.full(enough)) {
            self.send_train(VERY_FAST, JUMP);
        } else {
            return false;
        }
        true
    }

    /// Bytes of so many packets, if they are nearly full.
    fn full(&self, packets: usize) -> f64 {
        FULL * packets as f64 * self.packet_bits / 8.0
    }

    /// Sends a train of so many packets at `rate` (packets per second).
    fn send_train(&mut self, rate: f64, packets: f64) {
        let o = &mut self.startup;
        (o.stage, o.trains, o.estimate) = (Stage::Train, o.trains + 1, rate);
        o.train = packets;
        (o.first, o.since) = (None, 0.0);
        o.ahead += self.window;
        o.flight.begin();
        self.window = packets;
    }

    /// Whether the newest round trip is that much longer than the shortest one as only the packets of others make it,
    /// where what this flow had sent before takes `own` seconds to pass.
    fn meets_others(&self, shortest: f64, own: f64) -> bool {
        self.path.rtt - shortest > OTHERS * shortest + NOISE + own
    }

    /// The rate at which what follows the first acknowledgement came, once `enough` did.
    fn dispersion(&mut self, ack: &Ack, enough: f64) -> Option<f64> {
        let o = &mut self.startup;
        let Some(first) = o.first else {
            (o.first, o.with_first) = (Some(ack.now), ack.newly_delivered as f64);
            return None;
        };
        o.since += ack.newly_delivered as f64;
        let span = ack.now.since(first).as_secs_f64();
        // A server that has just been shown the keys takes its time for the first.
        let came = o.since + o.with_first;
        (came >= enough && o.since >= 0.5 * enough && span > 0.0).then(|| o.since / span)
    }

    /// The startup's packets told what the first flight would have.
    pub(super) fn startup_dispersion(&mut self, dispersion: &Dispersion) {
        let base = crate::positive(dispersion.rtt);
        self.path.set_base(base);
        self.path.rtt = base;
        let rate = dispersion.bits / crate::positive(dispersion.took) / self.packet_bits;
        let rate = if dispersion.took < AT_ONCE { VERY_FAST } else { rate };
        if rate * base > UNPROVEN {
            self.window = UNPROVEN;
            self.startup.claimed = Some(Claim { rate, rtt: base });
        } else {
            self.first_rate(rate, base);
        }
    }

    /// The first flight told a rate.
    fn first_rate(&mut self, rate: f64, base: f64) {
        if rate * base > JUMP {
            self.send_train(rate, JUMP);
        } else {
            self.window = self.window.max(rate * base);
            self.climb(CLIMB);
        }
    }

    /// A train told a rate that holds: the whole product follows, or a longer train.
    fn next_flight(&mut self, rate: f64, base: f64) {
        let longest = NEXT * self.startup.train;
        if rate * base > longest {
            self.send_train(rate, longest);
        } else {
            self.window = self.window.max(rate * base);
            self.climb(CLIMB);
        }
    }

    /// Others begin, too: what is out goes on and doubles until a queue shows, but for what was lost of it.
    fn share(&mut self) {
        self.startup.shares = true;
        self.climb(BLIND_CLIMB);
    }

    fn climb(&mut self, factor: f64) {
        self.startup.stage = Stage::Climb;
        self.startup.climb = factor;
    }

    pub(super) fn startup_ack(&mut self, ack: &Ack, round: bool) {
        let base = self.path.base().unwrap_or(0.0);
        if self.startup.is_timed() {
            self.startup.flight.on_ack(ack.now, ack.newly_delivered);
        }
        match self.startup.stage {
            Stage::First => {
                if ack.newly_delivered > 0
                    && let Some(claim) = self.startup.claimed.take()
                {
                    if self.meets_others(claim.rtt, 0.0) {
                        self.share();
                    } else {
                        self.first_rate(claim.rate, base);
                    }
                    return;
                }
                self.startup.out = ack.outstanding;
                self.startup.limited += u32::from(round && ack.window_limited);
                if !self.read_flight() && self.startup.limited >= ENOUGH_ROUNDS {
                    // Too few came to tell.
                    self.climb(BLIND_CLIMB);
                }
            }
            Stage::Train => {
                // A train's first acknowledgement begins a round.
                if self.startup.first.is_none() && !round {
                    return;
                }
                let own = self.startup.ahead / self.startup.estimate;
                if self.startup.first.is_none() && self.meets_others(base, own) {
                    self.share();
                    return;
                }
                let train = self.startup.train;
                if let Some(rate) = self.dispersion(ack, ENOUGH * train) {
                    if rate > TRAIN * self.startup.estimate || self.startup.trains > 1 {
                        let rate = rate.min(self.startup.estimate);
                        self.next_flight(rate, base);
                    } else if let Some(rate) = self.startup.flight.rate((0.5 * JUMP) as usize) {
                        // An application that has just learnt of its connection writes a little
                        // later: what left behind its first words left together.
                        let rate = rate / self.packet_bits;
                        let longest = (rate * base).clamp(JUMP, NEXT * JUMP);
                        self.send_train(rate, longest);
                    } else {
                        self.climb(BLIND_CLIMB);
                    }
                } else if round && self.startup.first.is_some_and(|f| f < ack.now) {
                    self.climb(BLIND_CLIMB);
                }
            }
            Stage::Climb => {
                let round = round && !std::mem::take(&mut self.startup.mixed);
                if round {
                    let o = &mut self.startup;
                    let best = o.best.map_or(0.0, |b| b.delivered_rate());
                    let follows = self.path.round.delivered_rate() > FOLLOWS * best;
                    o.stale = if follows { 0 } else { o.stale + u32::from(ack.window_limited) };
                    let base = self.path.floor().unwrap_or(0.0);
                    self.startup.saw_empty |= self.path.round.max_rtt <= EMPTY * base;
                    if follows {
                        self.startup.followed(&mut self.path);
                    }
                    if self.startup.for_losses && self.path.rate_loss() > 0.0 {
                        // They follow the rate: somebody's queue is full.
                        self.path.losses.iter_mut().for_each(LossModel::distrust);
                        self.window *= 0.5;
                        self.climbed_in_vain();
                        self.begin_competitive(ack, false);
                        return;
                    }
                }
                let floor = self.path.floor().unwrap_or(base);
                let risen = (RISEN * floor).max(NOISE).max(self.path.spread());
                let high = self.path.rtt > floor + risen;
                self.startup.high = if high { self.startup.high + 1 } else { 0 };
                // A link that loses much delivers more if more is sent; a full one does not.
                let stale = self.startup.stale;
                // On an empty path a few packets lose as many by chance, and as many more the round after.
                let few = self.window < FEW_TO_TELL;
                let chance = self.startup.saw_empty && few && !self.restarted;
                let blind = self.startup.climb > CLIMB && !chance;
                let sure = if chance { MAX_STALE - 1 } else { 1 };
                let flooded = self.path.is_flooded() && (stale >= sure || blind);
                let full = round && (flooded || stale >= MAX_STALE);
                // Where round trips scatter, a few that are long say less than the rate does.
                let risen = self.startup.high >= RISEN_ACKS;
                if risen && (!self.path.varies() || (round && stale >= MAX_SCATTERED)) || full {
                    if risen && self.startup.saw_empty {
                        // A queue that grows drops nothing: all that was lost is the link's.
                        self.path.losses.iter_mut().for_each(LossModel::followed);
                    }
                    self.begin_competitive(ack, true);
                    return;
                }
                // While a queue may be ours there is nothing to look for: on slow links eight
                // acknowledgements take seconds, and as many packets would join it.
                if ack.window_limited && !high {
                    let factor = if self.startup.for_losses && self.window < FEW_TO_TELL {
                        BLIND_CLIMB
                    } else {
                        self.startup.climb
                    };
                    self.window += (factor - 1.0) * ack.newly_delivered as f64;
                }
            }
        }
    }

    pub(super) fn startup_limits(&self) -> (f64, Option<f64>) {
        debug_assert!(self.mode == Mode::Startup);
        let o = &self.startup;
        let rate = match o.stage {
            Stage::First => o.claimed.map(|c| c.rate),
            Stage::Train => Some(o.estimate),
            Stage::Climb => (self.path.rtt > 0.0).then(|| 1.25 * self.window / self.path.rtt),
        };
        // A second flight waits until the first is heard of, but for one that may be lost: each report
        // of it would send a part otherwise, and what does not leave together tells nothing.
        let holds = o.stage == Stage::First && o.out > 1;
        (if holds { 1.0 } else { self.window }, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    /// What a climb learns of a round whose round trips are 180 ms where 90 are the least, and scatter, after one with
    /// `before` seconds and a fifth less of everything.
    fn learnt(before: f64) -> f64 {
        let mut path = PathModel::with_losses();
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        path.on_ack(&Ack { rtt: Duration::from_millis(90), ..scenario.ack(1, false) });
        path.set_bandwidth(500.0);
        let round = |mean_rtt, delivered| Round {
            mean_rtt,
            delivered,
            deviation: 0.02,
            scatter: 0.02,
            span: 0.18,
            ..Round::default()
        };
        let mut startup = Startup { best: Some(round(before, 100.0)), ..Startup::resumed() };
        path.round = round(0.18, 120.0);
        startup.followed(&mut path);
        path.noise()
    }

    /// Those who begin together fill a queue and leave it; who is late sees it drain while more and more arrives.
    #[test]
    fn a_queue_that_drains_is_no_jitter() {
        assert!(learnt(0.18) > 0.08);
        assert_eq!(learnt(0.23), 0.0);
    }
}
