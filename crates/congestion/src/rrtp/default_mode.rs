//! Alone on the bottleneck: the window is what the path holds and little more. A cycle is a round that
//! probes for more, one in which that is seen, one that begins with an empty queue, to see the smallest
//! round trip, and five that hold.

use super::loss_model::LossModel;
use super::path_model::PathModel;
use super::round::Round;
use super::{Mode, Rrtp};
use crate::Ack;
use narrows_base::Time;

/// Rounds of a cycle: one probes, the others hold.
const CYCLE: u32 = 8;
/// How much more a probe sends; each that finds more doubles it.
const PROBE: f64 = 0.15;
const MAX_PROBE: f64 = 1.0;
/// Acknowledgements after which a queue that was let run empty has been seen so.
const SEEN: u32 = 2;
/// Room that the window leaves above the product.
const ROOM_SECONDS: f64 = 0.004;
/// … of it, where the link loses by itself.
const LOSSY_ROOM: f64 = 0.25;
/// … and no more than this share of the product, or a packet.
const ROOM_SHARE: f64 = 0.1;
/// A bandwidth that falls to so much of what it was is shared, or is another.
const YIELDED: f64 = 0.8;
/// Rounds with a queue that is not ours before the mode changes.
const FOREIGN_ROUNDS: u32 = 2;

/// Part of a probe that arrives or waits where it is not dropped; and probes in a row that were.
const ANSWERED: f64 = 0.25;
const DROPPED_PROBES: u32 = 2;
/// Rounds in a row that lose more than the link: where it loses by itself, one may be a burst.
const FLOODED_ROUNDS: u32 = 2;
/// … and where the application sends little, chance takes half of it now and then.
const FLOODED_REQUESTS: u32 = 6;
/// After so many rounds it was right to begin this mode.
const PROVEN: u32 = 40;

/// Packets above the product at slow rates.
const ROOM_PACKETS: f64 = 6.0;
/// Part of the round trip, and seconds, that a queue may exceed twice our room by before it is foreign.
const FOREIGN: f64 = 0.125;
const NOISE: f64 = 0.002;
/// Part of what a slower link's queue grows by that is believed.
const GROWS: f64 = 0.5;
/// The round of a cycle that follows a cut.
const CUT: u32 = 3;
/// … and the first of those that hold, after what the application did not use.
const HELD: u32 = 5;
/// The round of a cycle that sends less while losses or noise are to be explained, and how much less.
const QUIET: u32 = 4;
const QUIET_RATE: f64 = 0.9;
/// Packets that tell at which rate a standing queue is served.
const SERVED: f64 = 5.0;
/// A share of losses, or of the round trip, that is to be explained.
const WORTH_ASKING: f64 = 0.015;

#[derive(Clone, Debug, Default)]
pub struct DefaultMode {
    /// Round of the cycle.
    phase: u32,
    /// What this cycle's probe adds, and the bandwidth before it.
    probe: f64,
    before: f64,
    /// Rounds with a foreign queue in a row.
    foreign: u32,
    /// The round before the probe, and probes in a row of which as good as nothing arrived or waited.
    round_before: Round,
    dropped: u32,
    /// Rounds in a row that lost more than the link does.
    flooded: u32,
    /// Round trips scattered in the last round that held and met no queue: a queue comes and goes in leaps, too.
    jitters: bool,
    /// Rounds in this mode.
    rounds: u32,
    /// Acknowledgements in this round since no more was in flight than the path holds.
    seen: u32,
    /// The bandwidth when the mode began, or the most since.
    entered: f64,
    /// Since when a queue has stood, the round trip then, and what was delivered since.
    standing: Option<(Time, f64, f64)>,
    /// Packets in flight before the bandwidth was taken to be what a standing queue was served at, until the queue
    /// is gone.
    cut_from: Option<f64>,
    /// More is still in flight than that bandwidth allows: what waits says nothing yet.
    draining: bool,
    /// When the last quiet round began and ended.
    quiet: Option<(Time, Option<Time>)>,
}

impl DefaultMode {
    /// What a probe adds arrives, waits or is lost. Whether enough of it arrived or waited for the rest to be the
    /// link's loss.
    fn probe_answered(&self, path: &PathModel, base: f64) -> bool {
        let rise = (path.round.max_rtt - self.round_before.max_rtt) / base;
        let growth = path.round.delivered_rate() / self.round_before.delivered_rate() - 1.0;
        rise.max(growth) > ANSWERED * self.probe
    }

    /// Whether a packet that left then left while the sender held back.
    pub fn is_quiet(&self, sent: Time) -> bool {
        self.quiet.is_some_and(|(from, until)| sent > from && until.is_none_or(|u| sent <= u))
    }
}

impl Rrtp {
    pub(super) fn begin_default(&mut self) {
        self.mode = Mode::Default;
        self.path.losses.iter_mut().for_each(LossModel::settle);
        self.default_mode = DefaultMode {
            phase: 0,
            probe: PROBE,
            before: self.path.bandwidth(),
            foreign: 0,
            flooded: 0,
            jitters: self.path.varies(),
            round_before: self.path.round,
            dropped: 0,
            rounds: 0,
            seen: 0,
            entered: self.path.bandwidth(),
            standing: None,
            cut_from: None,
            draining: false,
            quiet: None,
        };
    }

    /// Packets that may wait.
    fn room(&self) -> f64 {
        let room = (self.path.bandwidth() * ROOM_SECONDS).max(ROOM_PACKETS);
        let room = room.min((ROOM_SHARE * self.path.product()).max(1.0));
        // Who makes up for the link's losses leaves the queue to those who cannot.
        let told = self.path.losses.as_ref().is_some_and(|l| l.told);
        if self.path.loses() && !told { LOSSY_ROOM * room } else { room }
    }

    /// What a round trip is at most where no queue stands but ours.
    fn ours(&self, base: f64) -> f64 {
        base + 2.0 * self.room() / self.path.bandwidth() + self.path.spread()
    }
    /// What it is at least where one stands that is not ours.
    fn foreign(&self, base: f64) -> f64 {
        self.ours(base) + FOREIGN * base + NOISE
    }

    /// A queue stood for a base round trip, and less than was known came out of it: so the link is slower now, or
    /// others are there. Which of them shows when what was too much has drained. To wait for the round to end, or for
    /// the larger rates to be forgotten, takes as many times as long as the link has become slower.
    fn follow_down(&mut self, ack: &Ack) {
        let jitters = self.default_mode.jitters;
        if let Some(rate) = self.comes_slower(ack, self.path.bandwidth(), GROWS, jitters) {
            self.drain(ack, rate);
        }
    }

    /// Takes `rate` for the bandwidth, until what has drained by then shows whose the queue was.
    pub(super) fn drain(&mut self, ack: &Ack, rate: f64) {
        if self.mode != Mode::Default {
            self.begin_default();
        }
        let a = &mut self.default_mode;
        a.cut_from = a.cut_from.or(Some(ack.outstanding as f64));
        (a.entered, a.foreign, a.phase, a.probe) = (rate, 0, CUT, PROBE);
        a.draining = true;
        self.path.set_bandwidth(rate);
        self.path.most_rate = rate;
    }

    /// The rate at which a queue is served that has stood for a base round trip, if that is less than `known` and the
    /// queue grows by as much, or by `grows` of it at least. Where round trips scatter, one that is long says little.
    pub(super) fn comes_slower(
        &mut self,
        ack: &Ack,
        known: f64,
        grows: f64,
        jitters: bool,
    ) -> Option<f64> {
        let base = self.path.floor()?;
        let stands = ack.window_limited && !jitters && self.path.rtt > self.foreign(base);
        let (rtt, loss) = (self.path.rtt, self.path.link_loss());
        let a = &mut self.default_mode;
        let Some((began, before, delivered)) = a.standing.filter(|_| stands) else {
            a.standing = stands.then_some((ack.now, rtt, 0.0));
            return None;
        };
        let delivered = delivered + ack.newly_delivered as f64;
        a.standing = Some((began, before, delivered));
        let span = ack.now.since(began).as_secs_f64();
        if span < base || delivered < SERVED {
            return None;
        }
        a.standing = Some((ack.now, rtt, 0.0));
        let rate = delivered / span / (1.0 - loss);
        // What comes more slowly than it left waits ever longer; where it does not, the path is longer.
        let waits = (1.0 - rate / known) * span;
        (rate < YIELDED * known && rtt - before > grows * waits).then_some(rate)
    }

    pub(super) fn default_ack(&mut self, ack: &Ack, round: bool) {
        self.follow_down(ack);
        if ack.outstanding as f64 <= self.path.product() + 1.0 {
            self.default_mode.seen += 1;
        }
        if !round {
            return;
        }
        self.default_mode.seen = 0;
        let bandwidth = self.path.bandwidth();
        let Some(base) = self.path.floor() else { return };
        let flooded = self.path.is_flooded();
        let explain = self.path.link_loss() + self.path.rate_loss() > WORTH_ASKING
            || self.path.noise() > WORTH_ASKING * base;
        let (loses, ours) = (self.path.loses(), self.ours(base));
        let a = &mut self.default_mode;
        a.flooded = if flooded { a.flooded + 1 } else { 0 };
        // What the application did not send is no experiment's: neither was it dropped, nor did it find room.
        let app_limited = self.path.round.app_limited;
        let flooded = a.flooded
            >= match (app_limited, loses) {
                (true, _) => FLOODED_REQUESTS,
                (_, true) => FLOODED_ROUNDS,
                _ => 1,
            };
        let measured = a.phase;
        a.entered = a.entered.max(bandwidth);
        if flooded && a.rounds >= 1 {
            // Somebody's, or more than there is: what was delivered counts.
            self.path.set_bandwidth(bandwidth.min(self.path.round.rate().max(1e-3)));
            self.window = self.path.product();
            self.begin_competitive(ack, false);
            return;
        }
        a.rounds += 1;
        if measured >= HELD && self.path.round.max_rtt <= ours {
            a.jitters = self.path.varies();
        }
        if measured == 1 && !app_limited {
            let answered = a.probe_answered(&self.path, base);
            a.dropped = if answered { 0 } else { a.dropped + 1 };
            if a.dropped >= DROPPED_PROBES && self.path.loses() {
                let delivered = self.path.round.delivered_rate().max(1e-3);
                self.path.losses.iter_mut().for_each(LossModel::distrust);
                self.path.set_bandwidth(bandwidth.min(delivered));
                a.dropped = 0;
            }
        }
        let a = &mut self.default_mode;
        let bandwidth = self.path.bandwidth();
        a.phase = if app_limited { HELD } else { (a.phase + 1) % CYCLE };
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
            a.round_before = self.path.round;
            a.before = bandwidth;
        }
        self.path.most_rate = if a.phase <= 2 { 1e12 } else { bandwidth };
        match &mut a.quiet {
            Some((_, until)) if until.is_none() => *until = Some(ack.now),
            quiet if a.phase == QUIET && explain => *quiet = Some((ack.now, None)),
            _ => {}
        }
        // The probe's queue is gone two rounds later.
        let most = self.path.product() + self.room() + 1.0;
        let drains = std::mem::take(&mut self.default_mode.draining);
        self.default_mode.draining = drains && ack.outstanding as f64 > most;
        if (measured >= 3 || measured == 0) && !drains {
            let stands = self.path.round.min_rtt > self.foreign(base);
            let a = &mut self.default_mode;
            a.foreign = if stands { a.foreign + 1 } else { 0 };
            a.cut_from = a.cut_from.filter(|_| stands);
            if a.foreign >= FOREIGN_ROUNDS || bandwidth < YIELDED * a.entered {
                // Soon after the answers that began this mood they were wrong: not asked again at once.
                let (proven, before) = (a.rounds >= PROVEN, a.cut_from);
                self.begin_competitive(ack, proven);
                if let Some(packets) = before {
                    // The queue stayed: it is others', and what was yielded is taken back.
                    self.window = self.window.max(packets);
                }
                self.competitive.question.path_was_ours = proven;
                if !proven && before.is_none() {
                    self.competitive.question.doubt();
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
            QUIET if self.default_mode.quiet.is_some_and(|q| q.1.is_none()) => {
                (product + self.room(), Some(bandwidth * QUIET_RATE))
            }
            _ => (product + self.room(), Some(bandwidth * 1.05)),
        }
    }
}
