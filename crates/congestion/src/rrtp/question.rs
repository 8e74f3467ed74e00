//! Whose queue is it? The window is cut by a fifth for two rounds, and rate and round trips say it: see the module above.

use super::loss_model::LossModel;
use super::round::Round;
use super::startup::Startup;
use super::{Mode, Rrtp};
use crate::Ack;

/// What is cut off the window at most and at least, and of the queue at most.
const CUT: f64 = 0.2;
pub(super) const MIN_CUT: f64 = 0.08;
pub(super) const QUEUE_CUT: f64 = 0.8;
/// Rounds between questions; doubles with each answer that there are others.
const FIRST_WAIT: u32 = 6;
const MAX_WAIT: u32 = 24;
/// … and after a wrong one that there are none.
const DOUBTS: u32 = 48;
/// A rate of which a cut leaves so much is nobody else's.
pub(super) const ALONE: f64 = 0.95;
/// … unless the queue was gone: then a cut says nothing.
const QUEUE_LEFT: f64 = 0.02;
/// Rounds after a decrease before the rate is steady.
pub(super) const SETTLED: u32 = 2;
/// In a smaller window a packet more or less is all there is.
pub(super) const MIN_WINDOW: f64 = 3.0;
/// Packets by which an answer falls short that is worth a second question.
const ONE: f64 = 1.5;
/// So many answers in a row must say so.
pub(super) const PASSES: u32 = 2;
/// A delay that falls by less than this part of what a queue of the own packets would is nobody's queue …
const FOLLOWS: f64 = 0.2;
/// … if the rate fell by at least this part of the cut …
pub(super) const FELL: f64 = 0.6;
/// … and the window is large enough to tell. Losses in that many rounds show that there is a queue.
const MIN_TELLING: f64 = 8.0;
const LOSSLESS: u32 = 16;
/// A cut of a queue that is ours makes round trips shorter by at least this part of what was cut.
const WAITED: f64 = 0.5;
/// Rounds without an answer for which the losses of the startup are believed.
const MAX_UNANSWERED: u32 = 24;

/// Whose the queue is, as the experiment said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Answer {
    #[default]
    None,
    Ours,
    Others,
    /// There is none: the path is that long.
    Nobodys,
}

/// What was before the cut.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// Packets per second, and the mean round trip in seconds.
    rate: f64,
    delay: f64,
    /// What was cut off the window: packets, and the part of it.
    packets: f64,
    cut: f64,
    /// Packets lost in the first round after it.
    lost: f64,
}

/// The first question, until it is answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct First {
    /// It is not.
    pub open: bool,
    /// Rounds for which it was not.
    unanswered: u32,
    /// Nobody was met yet: the startup found a queue.
    pub unmet: bool,
    /// … which suffices to ask.
    pub can_retry: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Rounds since the last one, and until the next.
    rounds: u32,
    wait: u32,
    /// Its round; 0 if none is being asked.
    step: u32,
    before: Before,
    /// The rate of the round before.
    last_rate: f64,
    /// The last answer hung on a single packet.
    unsure: bool,
    /// Answers in a row that we are alone, and that the delay does not follow the window.
    passed: u32,
    stayed: u32,
    /// What the last one was answered.
    pub answer: Answer,
    /// The default mode had held this path for long.
    pub path_was_ours: bool,
    /// Window, rate and delay of a round since which the window has grown, and the deviation of its mean.
    grown_from: Option<[f64; 4]>,
    pub first: First,
}

impl Question {
    /// The one that follows this in a new spell of competitive mode; asked at once, if it is the first.
    pub fn next(&self, first: bool, unmet: bool, last_rate: f64) -> Question {
        let wait = self.wait.clamp(FIRST_WAIT, MAX_WAIT);
        let (answer, rounds) = (self.answer, if first { wait } else { 0 });
        let first = First { open: first, unmet: first && unmet, ..First::default() };
        Question { wait, rounds, answer, first, last_rate, ..Question::default() }
    }
    /// As at the end of a startup: what was filled again is asked for at once.
    pub fn reopen(&mut self) {
        self.first = First { open: true, unmet: true, ..First::default() };
        self.rounds = self.wait;
    }
    /// An answer was wrong: questions become rare.
    pub fn doubt(&mut self) {
        self.wait = DOUBTS;
    }
    /// Congestion: nothing is asked now.
    pub fn drop(&mut self) {
        (self.first.open, self.first.can_retry, self.step) = (false, false, 0);
    }
    /// Counts a round; true if the credit for the startup's losses ends with it.
    pub fn is_overdue(&mut self) -> bool {
        self.first.unanswered += u32::from(self.first.open);
        self.first.open && self.first.unanswered == MAX_UNANSWERED
    }
    /// Packets that it holds back of a window.
    pub fn held_back(&self, window: f64) -> f64 {
        if self.step > 0 { (self.before.cut * window).round() } else { 0.0 }
    }
    pub fn is_asked(&self) -> bool {
        self.step > 0
    }
    /// The application sent too little: what is being asked is asked again.
    pub fn interrupt(&mut self) {
        if self.step > 0 {
            self.step = 0;
            self.again();
        }
    }
    /// Soon again.
    fn again(&mut self) {
        self.rounds = self.wait.saturating_sub(SETTLED);
    }
}

impl Rrtp {
    /// A round has ended: begins the question, or takes the answer.
    pub(super) fn question_round(&mut self, ack: &Ack, base: f64) {
        let round = self.path.round;
        let varies = self.path.varies();
        let q = &mut self.competitive.question;
        match q.step {
            0 => self.ask(ack, base, &round),
            1 => {
                q.step = 2;
                q.before.lost = round.lost;
                // What was answered in this round left before the cut, while the queue may have grown.
                q.before.delay = if varies { round.mean_rtt } else { round.max_rtt };
            }
            _ => {
                (q.step, q.rounds) = (0, 0);
                self.answer(base, &round);
            }
        }
    }

    fn ask(&mut self, ack: &Ack, base: f64, round: &Round) {
        let ours = 1.0 - base / round.min_rtt;
        // Whole packets: less than one says nothing, and one more than meant may leave no queue.
        let whole = self.window.floor();
        let most = QUEUE_CUT * ours * whole;
        let packets = (CUT * whole).max(1.0).min(most).floor();
        // Where round trips scatter, the cut must change their mean by more than chance does.
        let effect = packets / round.rate().max(1e-9);
        let tells = effect >= 3.0 * self.path.chance();
        let cut = if tells { packets / whole.max(1.0) } else { 0.0 };
        let settled = self.competitive.is_settled();
        let q = &mut self.competitive.question;
        // What arrives in a round varies by as much as its round trips do.
        let jitters = self.path.jitters();
        let suffices = packets >= 1.0 && cut >= MIN_CUT && !jitters;
        q.first.can_retry = q.first.open && q.first.unmet && suffices;
        let due = q.rounds >= q.wait && settled && self.window >= MIN_WINDOW;
        if due && suffices && ack.window_limited {
            q.step = 1;
            let rate = 0.5 * (round.rate() + q.last_rate);
            q.before = Before { rate, packets, cut, ..Before::default() };
        }
        q.last_rate = round.rate();
    }

    /// Another round of which the question is not asked.
    pub(super) fn count_round(&mut self) {
        let q = &mut self.competitive.question;
        q.rounds += u32::from(q.step == 0);
    }

    fn answer(&mut self, base: f64, round: &Round) {
        let rate = round.rate();
        let chance = self.path.chance();
        let lossless_for_long = self.competitive.is_lossless(LOSSLESS);
        let q = &mut self.competitive.question;
        let Before { rate: was, delay, packets, cut, lost } = q.before;
        let kept = rate / was.max(1e-9);
        let lost = (lost + round.lost) / round.delivered.max(1.0);
        if kept <= ALONE && kept * (1.0 + lost) > ALONE {
            // Without what was lost it would have been: asked again.
            q.again();
            return;
        }
        // In a small window it is a packet or none, and one lost or late looks the same.
        let short = (was - rate) * round.delivered / rate.max(1e-9);
        if kept <= ALONE && short < ONE && !q.unsure {
            q.unsure = true;
            q.again();
            return;
        }
        q.unsure = false;
        // By which part of what was cut the delay fell.
        let per_cut = was / packets.max(1.0);
        let fall = (delay - round.mean_rtt) * per_cut;
        // A delay that stays although less is sent, and a rate that falls by as much, are of no queue.
        let stays = fall.abs() < FOLLOWS && kept < 1.0 - FELL * cut;
        let may = (q.path_was_ours && self.path.is_steady()) || self.path.varies();
        let lossless = !self.path.may_be_full() && (q.first.open || lossless_for_long);
        if stays && may && lossless && self.window >= MIN_TELLING {
            let unmet = q.first.open && q.first.unmet;
            q.stayed += 1;
            if q.stayed >= PASSES || !unmet {
                self.no_queue(unmet);
            } else {
                q.again();
            }
            return;
        }
        q.stayed = 0;
        if kept <= ALONE {
            q.wait = (q.wait * 2).min(MAX_WAIT);
            q.answer = Answer::Others;
            self.path.forget_noise();
            q.passed = 0;
            (q.first.open, q.first.can_retry) = (false, false);
        } else if round.min_rtt <= base * (1.0 + QUEUE_LEFT) {
            // A queue that the cut emptied says nothing of others.
            if q.first.open && self.path.loses() {
                q.again();
            } else {
                q.passed = 0;
                (q.first.open, q.first.can_retry) = (false, false);
            }
        } else if fall + 2.0 * chance * per_cut < WAITED {
            // Neither did less arrive nor less wait: a full queue had dropped what was cut.
            self.path.losses.iter_mut().for_each(LossModel::distrust);
            q.passed = 0;
            if q.first.open {
                q.again();
            }
        } else {
            self.is_ours(rate);
        }
    }

    fn is_ours(&mut self, rate: f64) {
        let q = &mut self.competitive.question;
        q.passed += 1;
        q.first.unanswered = 0;
        q.answer = Answer::Ours;
        if q.first.open && q.first.unmet {
            // As much from a shorter queue: so it stays.
            self.window -= (q.before.cut * self.window).round();
        }
        // Once more, a few rounds later.
        q.again();
        if q.passed >= PASSES {
            q.wait = FIRST_WAIT;
            let was = q.before.rate;
            self.path.set_bandwidth(rate.max(was));
            self.begin_default();
        }
    }

    /// The upward side of the experiment: the window has grown, the rate with it, and the delay has not.
    pub(super) fn grew_without_a_queue(&mut self) -> bool {
        let path = &self.path;
        let q = &mut self.competitive.question;
        let error = path.chance();
        let now = [self.window, path.round.rate(), path.round.mean_rtt, error];
        let Some([window, rate, delay, error]) = q.grown_from else {
            q.grown_from = Some(now);
            return false;
        };
        let growth = now[0] / window - 1.0;
        let would_rise = growth * delay;
        if growth < 0.0 {
            q.grown_from = Some(now);
        }
        let tells = growth >= CUT && would_rise >= 3.0 * (error + now[3]) && window >= MIN_TELLING;
        if path.may_be_full() || !tells {
            return false;
        }
        q.grown_from = Some(now);
        let follows = (now[2] - delay) / would_rise;
        follows.abs() < FOLLOWS && now[1] / rate - 1.0 > FELL * growth
    }

    /// The delay is nobody's queue: the path is that long.
    pub(super) fn no_queue(&mut self, unmet: bool) {
        self.path.learn_noise();
        let q = &mut self.competitive.question;
        let known = self.path.bandwidth().max(q.before.rate);
        q.answer = Answer::Nobodys;
        if unmet {
            (self.mode, self.startup) = (Mode::Startup, Startup::resumed());
            self.path.losses.iter_mut().for_each(LossModel::trust);
        } else {
            self.path.set_bandwidth(known);
            self.begin_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    /// After a cut of 20 packets of 100 at 1000 packets per second, on a path of 50 ms.
    fn answered(mean_rtt: f64, per_second: f64) -> Rrtp {
        answered_by(mean_rtt, per_second, Round::default())
    }
    /// … where so much was lost, and round trips scatter so much.
    fn answered_by(mean_rtt: f64, per_second: f64, round: Round) -> Rrtp {
        let mut rrtp = Rrtp::new(&Environment::default());
        rrtp.mode = Mode::Competitive;
        rrtp.window = 100.0;
        rrtp.path.set_base(0.05);
        rrtp.path.set_bandwidth(1000.0);
        let losses = rrtp.path.losses.iter_mut();
        losses.for_each(|l| (0..100).for_each(|i| l.on_outcome(i % 10 == 0, true)));
        rrtp.competitive.question.first.open = true;
        rrtp.competitive.question.before =
            Before { rate: 1000.0, delay: 0.1, packets: 20.0, cut: 0.2, lost: 0.0 };
        let (min_rtt, max_rtt) = (mean_rtt - 0.001, mean_rtt + 0.001);
        let round = Round { min_rtt, max_rtt, mean_rtt, delivered: 0.08 * per_second, ..round };
        rrtp.path.round = Round { span: 0.08, ..round };
        let round = rrtp.path.round;
        rrtp.answer(0.05, &round);
        rrtp
    }

    #[test]
    fn a_queue_is_ours_where_less_waits_and_as_much_arrives() {
        let rrtp = answered(0.081, 1000.0);
        assert_eq!(
            (rrtp.competitive.answer(), rrtp.competitive.question.passed),
            (Answer::Ours, 1)
        );
        assert!(rrtp.path.link_loss() > 0.09);
        assert_eq!(answered(0.097, 850.0).competitive.answer(), Answer::Others);
    }

    /// What was cut had been dropped by a full queue: whose it is stays unknown, and the losses are not the link's.
    #[test]
    fn where_neither_less_arrives_nor_less_waits_a_full_queue_dropped_it() {
        let rrtp = answered(0.098, 1000.0);
        assert_eq!(
            (rrtp.competitive.answer(), rrtp.competitive.question.passed),
            (Answer::None, 0)
        );
        assert_eq!(rrtp.path.link_loss(), 0.0);
    }

    /// Less arrives and nobody waits less: the path is that long, if round trips scatter; but a newcomer's small share
    /// of a queue that others keep full, which drops much, looks alike.
    #[test]
    fn a_delay_is_nobodys_only_where_little_is_lost() {
        let answer = |lost, scatter| {
            let round = Round { lost, scatter, ..Round::default() };
            answered_by(0.1, 800.0, round).competitive.answer()
        };
        assert_eq!(answer(0.0, 0.002), Answer::Nobodys);
        assert_eq!(answer(9.0, 0.002), Answer::Others);
        assert_eq!(answer(0.0, 0.0), Answer::Others);
    }

    #[test]
    fn the_credit_of_the_startups_losses_ends_without_an_answer() {
        let mut question = Question::default().next(true, true, 0.0);
        let ends = (1..100).find(|_| question.is_overdue());
        assert_eq!((ends, question.is_overdue()), (Some(MAX_UNANSWERED), false));
    }
}
