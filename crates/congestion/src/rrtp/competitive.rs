//! Somebody else fills the queue: a window that grows and halves as TCP's does. Whether it is still so is asked
//! by `question.rs`.

use super::loss_model::LossModel;
use super::question::{
    ALONE, Answer, FELL, MIN_CUT, MIN_WINDOW, PASSES, QUEUE_CUT, Question, SETTLED,
};
use super::startup::Startup;
use super::unqueued::Unqueued;
use super::{Mode, Rrtp};
use crate::{Ack, PacketOutcome};
use narrows_base::{Time, math};

/// What congestion leaves of the window: Reno's half. 0.6 took 0.63 of a link that four share with four
/// Renos, whose timeouts, and bursts that full queues drop, pacing and probes spare us.
const BACKOFF: f64 = 0.5;
/// … but a shallow queue is empty before that: what the path itself holds may stay, up to this.
const MAX_LEFT: f64 = 0.9;
/// The growth is so much of what AIMD of the same mean window has, after a cut that emptied the queue and otherwise:
/// pacing spares us the drops of bursts, and repair the timeouts.
const GENTLE: f64 = 0.9;
const GENTLE_SHALLOW: f64 = 0.75;
/// … where no queue showed.
const GENTLE_UNSEEN: f64 = 0.85;
/// … and on a path of microseconds no more than this part of the window: no queue shows there, only drops do.
const SHORT_GROWTH: f64 = 1.0 / 32.0;
/// … paced at so much of the bandwidth, which may have grown.
const SHORT_PACE: f64 = 1.02;
/// Packets per cubic second; RFC 9438's C is 0.4. With that, four of these leave four Renos 0.22 of 50 Mbit/s and 80 ms
/// behind two products; with none, one leaves one CUBIC 0.8 there.
const CUBIC: f64 = 0.15;
/// Losses in a round, and share of the window, that are not the radio's even before the first answer.
const SEVERAL: f64 = 3.0;
const SEVERAL_SHARE: f64 = 0.03;
/// A round whose largest round trip is within this share of the smallest met no queue.
const EMPTY: f64 = 0.03;
/// … or so many seconds: reports are late by up to this without any queue.
const LATE: f64 = 0.001;
/// After so many in a row nobody contests, and the window grows by a quarter per round.
const EMPTY_ROUNDS: u32 = 2;
const REFILL: f64 = 0.25;
/// … or, from this part of the product on that was known last, by a sixteenth: what waits then must
/// find room in a shallow queue.
const NEAR_REFILL: f64 = 0.0625;
const NEAR: f64 = 0.95;
/// A cut after which the queue was gone within so many rounds emptied it.
const EMPTIES: u32 = 4;
/// Where pipe and shallow queue hold fewer packets there is no queue to ask with: cuts that left all of the rate
/// are answers. The window is the product and a packet then.
const FEW: f64 = 5.0;
/// Rounds in a row with an empty queue that show it.
const MIN_AT_BASE: u32 = 8;
/// Part of what a slower link's queue would grow by: others grow their windows slowly, but for bursts.
const SLOWED: f64 = 0.7;
/// A window larger than this multiple of the one in the first of them is an experiment.
const SMALL: f64 = 1.1;
/// The round after a decrease in which nothing is left of what was sent before it.
const JUDGED: u32 = 3;
/// A share of losses that tells a policer from chance.
const POLICED: f64 = 0.05;
/// What congestion leaves of the window there: no queue has to drain.
const POLICED_LEFT: f64 = 0.85;
/// … and so many, and such a share, lost although the window is so much lower than before a cut, tell a link from it.
const MIN_LOST: f64 = 6.0;
const GOES_ON: f64 = 0.02;
const LOWER: f64 = 0.75;
/// Losses of a round, and twice that share of the window, that are a policer's where one is known.
const FEW_LOST: f64 = 2.0;
/// A cut that leaves so much of the window says whether losses follow the rate.
const DEEP: f64 = 0.75;

/// Share of losses from which others are kept small by them: half of what a link must lose for it to count elsewhere, as an
/// estimate of 1 % varies by as much.
const LOSES: f64 = 0.005;
/// Rounds in a row for which a queue is drained: one that stays is kept by somebody who leaves no room, and would have all
/// that this end leaves. Of thirty flows of its own at 2 %, one would take up to twenty shares in one run of eight.
const YIELDS: u32 = 2;
/// Over the share of losses, the square of the window at which a Reno's sawtooth ends (Mathis et al., CCR 1997, section 2:
/// 3/8 of its square are the packets from one loss to the next).
const RENO_PEAK: f64 = 8.0 / 3.0;
/// Rounds in a row without a queue after which losses are asked about by another climb; they double with each.
const LOSSY_ROUNDS: u32 = 12;
const MAX_DOUBLINGS: u32 = 8;
/// Share of losses that is worth it …
const LOSSY: f64 = 0.05;
/// … where a policer was believed to be: it drops less of what yields to it.
const POLICED_LOSSY: f64 = 0.15;
#[derive(Clone, Debug, Default)]
pub struct Competitive {
    pub question: Question,
    last_cut: Cut,
    /// Reductions in a row that left the rate as it was.
    kept: u32,
    /// Rounds since the window was reduced, without those of questions.
    since_cut: u32,
    /// Seconds since then in which the window was the limit.
    clock: f64,
    /// Packets per round trip that the window grows by.
    growth: f64,
    /// Rounds without a queue, in a row.
    empty: u32,
    /// … whatever was lost, where a queue has shown before.
    at_base: u32,
    /// … and the window in the first of them.
    unqueued_from: f64,
    /// A cut of a path without a queue took losses and left the rate: a policer drops what is too much. So an empty queue
    /// acquits no losses, and nothing is refilled: what a policer's bucket lets pass at once is no bandwidth.
    policed: bool,
    /// … the window of which it drops nothing, and packets, and those lost, of rounds with a smaller one since.
    policer_passes: f64,
    lower: [f64; 2],
    /// Rounds in a row in which room was left and a queue stayed.
    yielded: u32,
    /// No queue has shown in this mode, and packets are lost.
    unqueued: Unqueued,
    /// How often the startup was tried again for it.
    climbs: u32,
}

/// A reduction of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    /// What left before was lost to the same congestion.
    at: Option<Time>,
    /// The window before it, if a curve leads back to it.
    window: f64,
    /// … in any case.
    from: f64,
    /// Packets delivered per second before it.
    delivered: f64,
    /// Share of packets lost before it, where no queue showed then.
    lost_unqueued: f64,
    /// A queue showed then.
    queued: bool,
    /// What it left of the window.
    left: f64,
    /// It emptied the queue.
    emptied: bool,
}

impl Competitive {
    /// Whether losses may be the link's: until the first question is answered, and while the queue is empty.
    pub fn knows_losses(&self) -> bool {
        self.question.first.open || (self.at_base >= MIN_AT_BASE && !self.policed)
    }
    /// Whether a window of this size is no larger than when rounds began to meet no queue: what only a larger one loses,
    /// a policer drops.
    pub fn holds_back(&self, window: f64) -> bool {
        self.at_base == 0 || window <= SMALL * self.unqueued_from
    }
    /// Whether the rate is what the window makes it.
    pub fn is_settled(&self) -> bool {
        self.since_cut >= SETTLED
    }
    /// Whether the window was not reduced for so many rounds.
    pub fn is_lossless(&self, rounds: u32) -> bool {
        self.since_cut >= rounds
    }
    /// Whether losses follow the rate although no queue shows.
    pub fn is_policed(&self) -> bool {
        self.policed
    }
    /// Whether a policer dropped so many packets of a round, whatever the receiver takes them for: it knows a policer's
    /// drops for the radio's, as no queue shows. What a link may lose that was taken for one is not enough.
    pub fn drops(&self, lost: u64, window: f64) -> bool {
        self.policed && lost as f64 > FEW_LOST + 2.0 * GOES_ON * window
    }
    /// When the window was last reduced.
    pub fn last_cut(&self) -> Option<Time> {
        self.last_cut.at
    }
    /// What the last question was answered.
    pub fn answer(&self) -> Answer {
        self.question.answer
    }
}

impl Rrtp {
    /// Whether a round trip of so long met no queue.
    fn meets_none(&self, rtt: f64, floor: f64) -> bool {
        !self.path.is_short() && rtt <= floor + (EMPTY * floor).max(LATE).max(self.path.spread())
    }

    /// From now on somebody else may be there; with `ask` it is found out at once.
    pub(super) fn begin_competitive(&mut self, ack: &Ack, ask: bool) {
        let now_window = (ack.outstanding as f64).max(2.0);
        let unmet = self.mode == Mode::Startup;
        // A startup that met no queue of its own may have been in somebody's all the time: its losses are that
        // queue's.
        let proven = !unmet || self.path.queue_shows().is_some() || self.startup.saw_empty();
        let settle = if proven { LossModel::hold } else { LossModel::distrust };
        self.path.losses.iter_mut().for_each(settle);
        self.told = false;
        if self.mode == Mode::Default {
            self.window = self.window.clamp(now_window, 2.0 * now_window);
        }
        self.path.most_rate = 1e12;
        self.mode = Mode::Competitive;
        self.competitive = Competitive {
            question: self.competitive.question.next(ask, unmet, self.path.round.rate()),
            last_cut: Cut { at: self.competitive.last_cut.at, ..Cut::default() },
            since_cut: if ask { SETTLED } else { 0 },
            growth: 1.0,
            policed: self.competitive.policed,
            policer_passes: self.competitive.policer_passes,
            climbs: self.competitive.climbs,
            ..Competitive::default()
        };
    }

    /// A loss that may be congestion.
    pub(super) fn congestion_loss(&mut self, outcome: &PacketOutcome) {
        let last = self.competitive.last_cut;
        if self.mode != Mode::Competitive || last.at.is_some_and(|at| outcome.sent <= at) {
            return;
        }
        // The queue is our own, as far as is known, or none shows beyond the jitter: a single loss may be the radio's.
        let several = SEVERAL + (SEVERAL_SHARE + 2.0 * self.path.link_loss()) * self.window;
        let blind = self.competitive.question.first.open || self.path.jitters_only();
        if blind && (self.path.lost_now() as f64) < several {
            return;
        }
        self.competitive.question.drop();
        let held = self.path.held().clamp(BACKOFF, MAX_LEFT);
        let left = match (self.competitive.policed, last.emptied) {
            (true, _) => POLICED_LEFT,
            // Whether a cut emptied the queue does not show on a path of microseconds.
            (_, true) => held,
            _ if self.path.is_short() => held,
            _ => BACKOFF,
        };
        // CUBIC's curve is for queues that a cut does not empty.
        let deep = !last.emptied && !self.competitive.policed && self.competitive.kept == 0;
        self.competitive.last_cut = Cut {
            at: Some(outcome.now),
            window: if deep { self.window } else { 0.0 },
            from: self.window,
            // What an application sends is no rate to compare with.
            delivered: if self.path.round.app_limited {
                0.0
            } else {
                self.path.round.delivered_rate()
            },
            lost_unqueued: if self.path.shows_no_queue() {
                self.path.round.lost_share()
            } else {
                0.0
            },
            queued: self.path.shows_queue(),
            left,
            emptied: false,
        };
        (self.competitive.clock, self.competitive.since_cut) = (0.0, 0);
        let brakes = self.competitive.last_cut.queued || self.competitive.policed;
        let gentle = match (brakes, last.emptied) {
            (false, false) => 1.0,
            (false, true) => GENTLE_UNSEEN,
            (true, false) => GENTLE,
            (true, true) => GENTLE_SHALLOW,
        };
        self.competitive.growth = gentle * 3.0 * (1.0 - left) / (1.0 + left);
        self.window = (self.window * left).max(1.0);
    }

    /// Packets per round trip by which CUBIC's curve would grow (RFC 9438 equations 1 and 2 and section 4.4,
    /// with our backoff): behind a deep queue a round trip is long, and a packet for each is too little
    /// beside who counts seconds.
    fn cubic_step(&self) -> f64 {
        let before = self.competitive.last_cut.window;
        if before <= 0.0 {
            return 0.0;
        }
        let back = math::cbrt(before * (1.0 - BACKOFF) / CUBIC);
        let t = self.competitive.clock + self.path.rtt - back;
        let target = before + CUBIC * t * t * t;
        (target - self.window).min(0.5 * self.window)
    }

    /// Part of what is delivered by which the window grows beyond a packet per round trip.
    fn refill(&self) -> f64 {
        let c = &self.competitive;
        if c.policed {
            return 0.0;
        }
        let near = self.window > NEAR * self.path.product();
        let base = self.path.floor().unwrap_or(0.0);
        // What a cut shows is looked at before the window grows again.
        let empty = c.empty >= EMPTY_ROUNDS && c.since_cut >= JUDGED;
        let short = base * (1.0 + 1.5 * MIN_CUT / QUEUE_CUT);
        let unknown = c.question.first.unmet && c.question.first.open;
        if empty && self.meets_none(self.path.rtt, base) {
            if near { NEAR_REFILL } else { REFILL }
        } else if unknown && self.path.varies() && !self.path.may_be_full() {
            // Round trips scatter too much to ask.
            REFILL
        } else if unknown && self.path.rtt < short {
            // It is too short to ask with.
            NEAR_REFILL
        } else {
            0.0
        }
    }

    /// Round trips grow faster than a window does that adds a packet to each: the link became slower, or somebody began.
    fn is_slowed(&mut self, ack: &Ack) -> Option<f64> {
        let c = &self.competitive;
        let steady = c.since_cut >= JUDGED && !c.question.is_asked() && !c.policed;
        let jitters = self.path.varies() || self.path.is_short() || self.path.is_flooded();
        self.comes_slower(ack, self.path.round.rate(), SLOWED, jitters || !steady)
    }

    pub(super) fn competitive_ack(&mut self, ack: &Ack, round: bool) {
        if let Some(rate) = self.is_slowed(ack) {
            self.drain(ack, rate);
            return;
        }
        // Until the first answer the queue is our own, as far as is known: it need not grow.
        let waits = self.competitive.question.first.can_retry;
        let left = ack.now.as_secs_f64() - crate::positive(ack.rtt);
        let cut = self.competitive.last_cut;
        let recovers = cut.queued
            && cut.from * cut.left >= MIN_WINDOW
            && cut.at.is_some_and(|at| left <= at.as_secs_f64());
        if ack.window_limited && ack.newly_delivered > 0 && !waits && !recovers {
            let fresh = ack.newly_delivered as f64;
            let mut step = self.competitive.growth.max(self.cubic_step());
            if self.path.is_short() {
                // A packet more for each round trip would be a third of what many short paths hold.
                step = step.min(SHORT_GROWTH * self.window);
            }
            let slow = step * fresh / self.window.max(1.0);
            self.window += (self.refill() * fresh).max(slow);
        }
        let few = self.path.least_product() + 1.0;
        if few >= FEW || self.path.held_at_most() < BACKOFF {
            self.competitive.kept = 0;
        } else if self.competitive.kept >= PASSES {
            self.window = self.window.min(few.max(MIN_WINDOW));
        }
        if !round {
            return;
        }
        let Some(base) = self.path.floor() else { return };
        if self.competitive.question.is_overdue() {
            // No queue of ours shows: what the startup took for the link's loss is not proven.
            self.path.losses.iter_mut().for_each(LossModel::distrust);
        }
        if ack.window_limited {
            self.competitive.clock += self.path.rtt;
        }
        self.count_empty(base);
        self.leave_room(base);
        // Where the path jitters nothing is asked, but while nothing is lost the window grows, which is seen in the end.
        let lossless = self.path.jitters() && self.competitive.last_cut.at.is_none();
        let tells = self.competitive.question.first.open || lossless;
        if tells && self.path.varies() && self.grew_without_a_queue() {
            self.no_queue(true);
            return;
        }
        if self.loses_without_a_queue(base) {
            self.climb_again();
            return;
        }
        if self.path.round.app_limited {
            // Less arrives than may be sent, whatever the path does: neither a cut nor a question is answered by it.
            self.competitive.question.interrupt();
            return;
        }
        if !self.competitive.question.is_asked() {
            self.count_round();
            self.competitive.since_cut += 1;
            self.judge_cut();
        }
        self.question_round(ack, base);
    }

    /// Much is lost, and for long no round trip has met a queue. It may be a link that loses, of which the startup got
    /// no proof, or somebody's queue that is full all the time; but that one's round trips vary by a packet here and there.
    fn loses_without_a_queue(&mut self, base: f64) -> bool {
        let round = self.path.round;
        let none = self.meets_none(round.max_rtt, base);
        let c = &mut self.competitive;
        if !none {
            c.unqueued = Unqueued::default();
            return false;
        }
        c.unqueued.add(&round);
        let lossy = if c.policed { POLICED_LOSSY } else { LOSSY };
        c.unqueued.rounds >= LOSSY_ROUNDS << c.climbs.min(MAX_DOUBLINGS) && c.unqueued.loses(lossy)
    }
    /// A climb showed that losses follow the rate: the next one waits longer.
    pub(super) fn climbed_in_vain(&mut self) {
        self.competitive.climbs += 1;
    }
    /// Only a climb can tell: whether more arrives if more is sent, and a queue in the end.
    fn climb_again(&mut self) {
        self.competitive.climbs += 1;
        self.competitive.policed = false;
        let (packets, lost) = std::mem::take(&mut self.competitive.unqueued).expected();
        (self.mode, self.startup, self.restarted) = (Mode::Startup, Startup::for_losses(), false);
        self.path.losses.iter_mut().for_each(|l| l.expect(packets, lost));
    }

    /// Looks for rounds that met no queue.
    fn count_empty(&mut self, base: f64) {
        let none = self.meets_none(self.path.round.max_rtt, base);
        let c = &mut self.competitive;
        // A queue that never empties passes for the path's own delay in the end; its losses do not.
        let empty = none && !self.path.is_flooded();
        c.empty = if empty { c.empty + 1 } else { 0 };
        c.last_cut.emptied |= empty && c.since_cut < EMPTIES;
        // A queue that has shown before and does not now is empty: what is lost meanwhile is the link's.
        let at_base = none && self.path.shows_no_queue();
        if !at_base && c.at_base >= MIN_AT_BASE && self.path.loses() {
            // The path is full again.
            c.question.reopen();
            (c.since_cut, c.last_cut.delivered) = (SETTLED, 0.0);
        }
        c.at_base = if at_base { c.at_base + 1 } else { 0 };
        if c.at_base == 1 {
            c.unqueued_from = self.window;
        }
        if c.at_base == MIN_AT_BASE && !c.policed {
            self.path.losses.iter_mut().for_each(LossModel::trust);
        }
    }

    /// Where the link's own losses keep others below the window of this end, a queue gains nothing and makes their round
    /// trips longer: it is drained, by no more than to what a Reno reaches between two such losses, and for no longer than
    /// it takes if nobody else keeps it.
    fn leave_room(&mut self, base: f64) {
        let lost = self.path.losses.as_ref().map_or(0.0, LossModel::link);
        let c = &self.competitive;
        let unmet = c.question.first.open && c.question.first.unmet;
        let unknown = unmet || c.policed || self.path.is_short() || self.path.varies();
        if lost < LOSES || unknown || self.meets_none(self.path.round.min_rtt, base) {
            self.competitive.yielded = 0;
            return;
        }
        if self.competitive.yielded >= YIELDS {
            return;
        }
        self.competitive.yielded += 1;
        let reno = math::pow(RENO_PEAK / lost, 0.5);
        // What the link loses the path holds, too.
        let held = self.path.round.sent_rate() * base;
        self.window = self.window.min(held.max(reno));
    }

    /// What a cut tells that congestion caused.
    fn judge_cut(&mut self) {
        let round = self.path.round;
        let c = &mut self.competitive;
        let cut = c.last_cut;
        let deep = cut.left <= DEEP && cut.delivered > 0.0;
        if c.since_cut == JUDGED && deep && self.path.shows_no_queue() {
            // If as much less arrives as less is sent, nothing is full: the loss is the link's.
            let fell = 1.0 - round.delivered_rate() / cut.delivered;
            let link = fell > FELL * (1.0 - cut.left);
            if let Some(losses) = &mut self.path.losses {
                if link { losses.not_full(&round) } else { losses.distrust() }
            }
            // Where a cut took nothing but what had been too much, losses are gone.
            if !link && cut.lost_unqueued > POLICED && !c.policed {
                // What arrived is what it lets pass: the window may have been several times as large.
                let passes = (LOWER * cut.from).min(cut.delivered * self.path.rtt);
                (c.policed, c.policer_passes, c.lower) = (true, passes, [0.0; 2]);
            }
        }
        // The link's go on: a policer drops nothing of so much less.
        let lower = c.policer_passes;
        if c.policed && self.window < lower && (cut.from < lower || c.since_cut >= JUDGED) {
            let [packets, lost] = &mut c.lower;
            (*packets, *lost) = (*packets + round.delivered + round.lost, *lost + round.lost);
            if *lost >= MIN_LOST && *lost > GOES_ON * *packets {
                (c.policed, c.at_base) = (false, 0);
            }
        }
        if c.since_cut == SETTLED {
            let kept = round.rate() > ALONE * self.path.bandwidth();
            c.kept = if kept { c.kept + 1 } else { 0 };
        }
    }

    pub(super) fn competitive_limits(&self) -> (f64, Option<f64>) {
        let window = self.window.floor() - self.competitive.question.held_back(self.window);
        let rate = 1.25 * self.window.max(2.0) / self.path.rtt.max(1e-6);
        if self.path.is_short() && self.competitive.last_cut.at.is_some() {
            // A queue of a packet or two has no room for packets that leave together.
            return (window, Some(rate.min(SHORT_PACE * self.path.bandwidth())));
        }
        (window, Some(rate))
    }
}

#[cfg(test)]
mod tests;
