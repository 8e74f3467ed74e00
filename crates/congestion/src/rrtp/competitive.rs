//! Somebody else fills the queue: a window that grows and halves as TCP's does, and the question whether
//! it is still so.

use super::{Mode, Rrtp};
use crate::{Ack, PacketOutcome};
use narrows_base::{Time, math};

/// What congestion leaves of the window: Reno's half. 0.6 took 0.63 of a link that four share with four
/// Renos, whose timeouts, and bursts that full queues drop, pacing and probes spare us.
const BACKOFF: f64 = 0.5;
/// … but a shallow queue is empty before that: what the path itself holds may stay, up to this.
const MAX_LEFT: f64 = 0.9;
/// Packets per cubic second: RFC 9438's C.
const CUBIC: f64 = 0.4;
/// What the question cuts off the window at most and at least, and of the queue at most.
const CUT: f64 = 0.2;
const MIN_CUT: f64 = 0.08;
const QUEUE_CUT: f64 = 0.8;
/// Rounds between questions; doubles with each answer that there are others.
const FIRST_WAIT: u32 = 6;
const MAX_WAIT: u32 = 24;
/// … and after a wrong one that there are none.
const DOUBTS: u32 = 48;
/// A rate of which a cut leaves so much is nobody else's.
const ALONE: f64 = 0.95;
/// … unless the queue was gone: then a cut says nothing.
const QUEUE_LEFT: f64 = 0.02;
/// Rounds after a decrease before the rate is steady.
const SETTLED: u32 = 2;
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
/// In a smaller window a packet more or less is all there is.
const MIN_WINDOW: f64 = 3.0;
/// Where pipe and shallow queue hold fewer there is no queue to ask with: cuts that left all of the rate
/// are answers. The window is the product and a packet then.
const FEW: f64 = 5.0;
/// Packets by which an answer falls short that is worth a second question.
const ONE: f64 = 1.5;
/// So many answers in a row must say so.
const PASSES: u32 = 2;

#[derive(Clone, Debug, Default)]
pub struct Competitive {
    /// When the window was last reduced: what left before was lost to the same congestion.
    cut_at: Option<Time>,
    /// Rounds since the last question, and until the next.
    rounds: u32,
    wait: u32,
    /// Round of the question that is being asked; 0 if none is.
    probing: u32,
    /// The rate before it, packets per second, and the part that is cut off the window.
    rate: f64,
    cut: f64,
    /// Packets lost in its first round.
    lost: f64,
    /// The round before's rate.
    last_rate: f64,
    /// The last answer hung on a single packet.
    unsure: bool,
    /// Answers in a row that we are alone.
    passed: u32,
    /// Reductions in a row that left the rate as it was.
    kept: u32,
    /// Rounds since the window was reduced.
    since_cut: u32,
    /// The window before the last cut, if a curve leads back to it, and the seconds since in which the
    /// window was the limit.
    before: f64,
    clock: f64,
    /// The last cut emptied the queue.
    emptied: bool,
    /// Packets per round trip that the window grows by.
    growth: f64,
    /// Rounds without a queue, in a row.
    empty: u32,
    /// The first question is not answered yet.
    tentative: bool,
    /// … and nobody was met yet: the startup found a queue.
    unmet: bool,
    /// … which suffices to ask.
    can_retry: bool,
}

/// Whether a round trip of so long met no queue.
fn meets_none(rtt: f64, base: f64) -> bool {
    rtt <= base + (EMPTY * base).max(LATE)
}

impl Rrtp {
    /// From now on somebody else may be there; with `ask` it is found out at once.
    pub(super) fn begin_competitive(&mut self, ack: &Ack, ask: bool) {
        let now_window = (ack.outstanding as f64).max(2.0);
        let unmet = self.mode == Mode::Startup;
        if self.mode == Mode::Default {
            self.window = self.window.clamp(now_window, 2.0 * now_window);
        }
        self.path.most_rate = 1e12;
        self.mode = Mode::Competitive;
        let wait = self.competitive.wait.clamp(FIRST_WAIT, MAX_WAIT);
        self.competitive = Competitive {
            wait,
            cut_at: self.competitive.cut_at,
            growth: 1.0,
            ..Competitive::default()
        };
        if ask {
            (self.competitive.rounds, self.competitive.since_cut) = (wait, SETTLED);
            (self.competitive.tentative, self.competitive.unmet) = (true, unmet);
            self.competitive.last_rate = self.path.round_rate;
        }
    }

    /// An answer was wrong: questions become rare.
    pub(super) fn doubt(&mut self) {
        self.competitive.wait = DOUBTS;
    }

    /// A loss that may be congestion.
    pub(super) fn congestion_loss(&mut self, outcome: &PacketOutcome) {
        if self.mode != Mode::Competitive
            || self.competitive.cut_at.is_some_and(|at| outcome.sent <= at)
        {
            return;
        }
        // The queue is our own, as far as is known: a single loss may be the radio's.
        let several = SEVERAL + SEVERAL_SHARE * self.window;
        if self.competitive.tentative && (self.path.lost_now() as f64) < several {
            return;
        }
        (self.competitive.tentative, self.competitive.can_retry) = (false, false);
        self.competitive.cut_at = Some(outcome.now);
        let held = self.path.held().clamp(BACKOFF, MAX_LEFT);
        let left = if self.competitive.emptied { held } else { BACKOFF };
        // CUBIC's curve is for queues that a cut does not empty.
        let deep = !self.competitive.emptied && self.competitive.kept == 0;
        self.competitive.before = if deep { self.window } else { 0.0 };
        self.competitive.clock = 0.0;
        self.competitive.emptied = false;
        self.window = (self.window * left).max(1.0);
        self.competitive.growth = 3.0 * (1.0 - left) / (1.0 + left);
        self.competitive.probing = 0;
        self.competitive.since_cut = 0;
    }

    /// Packets per round trip by which CUBIC's curve would grow (RFC 9438 equations 1 and 2 and section 4.4,
    /// with our backoff): behind a deep queue a round trip is long, and a packet for each is too little
    /// beside who counts seconds.
    fn cubic_step(&self) -> f64 {
        let c = &self.competitive;
        if c.before <= 0.0 {
            return 0.0;
        }
        let back = math::cbrt(c.before * (1.0 - BACKOFF) / CUBIC);
        let t = c.clock + self.path.rtt - back;
        let target = c.before + CUBIC * t * t * t;
        (target - self.window).min(0.5 * self.window)
    }

    pub(super) fn competitive_ack(&mut self, ack: &Ack, round: bool) {
        // Until the first answer the queue is our own, as far as is known: it need not grow.
        if ack.window_limited && ack.newly_delivered > 0 && !self.competitive.can_retry {
            let fresh = ack.newly_delivered as f64;
            let step = self.competitive.growth.max(self.cubic_step());
            let slow = step * fresh / self.window.max(1.0);
            let near = self.window > NEAR * self.path.product();
            let base = self.path.base().unwrap_or(0.0);
            let empty = self.competitive.empty >= EMPTY_ROUNDS;
            let short = base * (1.0 + 1.5 * MIN_CUT / QUEUE_CUT);
            let refill = if empty && meets_none(self.path.rtt, base) {
                if near { NEAR_REFILL } else { REFILL }
            } else if self.competitive.unmet && self.competitive.tentative && self.path.rtt < short
            {
                // It is too short to ask with.
                NEAR_REFILL
            } else {
                0.0
            };
            self.window += (refill * fresh).max(slow);
        }
        let few = self.path.product() + 1.0;
        if few >= FEW || self.path.held_at_most() < BACKOFF {
            self.competitive.kept = 0;
        } else if self.competitive.kept >= PASSES {
            self.window = self.window.min(few.max(MIN_WINDOW));
        }
        if !round {
            return;
        }
        let Some(base) = self.path.base() else { return };
        let c = &mut self.competitive;
        if ack.window_limited {
            c.clock += self.path.rtt;
        }
        // A queue that never empties passes for the path's own delay in the end; its losses do not.
        let empty = meets_none(self.path.round_max_rtt, base) && !self.path.is_flooded();
        c.empty = if empty { c.empty + 1 } else { 0 };
        c.emptied |= empty && c.since_cut < EMPTIES;
        let rate = self.path.round_rate;
        match c.probing {
            0 => {
                c.rounds += 1;
                c.since_cut += 1;
                if c.since_cut == SETTLED {
                    let kept = rate > ALONE * self.path.bandwidth();
                    c.kept = if kept { c.kept + 1 } else { 0 };
                }
                let ours = 1.0 - base / self.path.round_rtt;
                // Whole packets: less than one says nothing, and one more than meant may leave no queue.
                let whole = self.window.floor();
                let most = QUEUE_CUT * ours * whole;
                let packets = (CUT * whole).max(1.0).min(most).floor();
                let cut = packets / whole.max(1.0);
                c.can_retry = c.tentative && c.unmet && packets >= 1.0 && cut >= MIN_CUT;
                let settled = c.since_cut >= SETTLED && cut >= MIN_CUT;
                let can = settled && packets >= 1.0 && ack.window_limited;
                if c.rounds >= c.wait && can && self.window >= MIN_WINDOW {
                    c.probing = 1;
                    c.rate = 0.5 * (rate + c.last_rate);
                    c.cut = cut;
                }
                c.last_rate = rate;
            }
            1 => {
                c.probing = 2;
                c.lost = self.path.round_lost;
            }
            _ => {
                c.probing = 0;
                c.rounds = 0;
                let kept = rate / c.rate.max(1e-9);
                let lost = (c.lost + self.path.round_lost) / self.path.round_delivered.max(1.0);
                if kept <= ALONE && kept * (1.0 + lost) > ALONE {
                    // Without what was lost it would have been: asked again.
                    c.rounds = c.wait.saturating_sub(SETTLED);
                    return;
                }
                // In a small window it is a packet or none, and one lost or late looks the same.
                let short = (c.rate - rate) * self.path.round_delivered / rate.max(1e-9);
                if kept <= ALONE && short < ONE && !c.unsure {
                    c.unsure = true;
                    c.rounds = c.wait.saturating_sub(SETTLED);
                    return;
                }
                c.unsure = false;
                let gone = self.path.round_rtt <= base * (1.0 + QUEUE_LEFT);
                if kept <= ALONE || gone {
                    // A queue that the cut emptied says nothing of others.
                    if kept <= ALONE {
                        c.wait = (c.wait * 2).min(MAX_WAIT);
                    }
                    c.passed = 0;
                    (c.tentative, c.can_retry) = (false, false);
                    return;
                }
                c.passed += 1;
                if c.tentative && c.unmet {
                    // As much from a shorter queue: so it stays.
                    self.window -= (c.cut * self.window).round();
                }
                // Once more, a few rounds later.
                c.rounds = c.wait.saturating_sub(2);
                if c.passed >= PASSES {
                    c.wait = FIRST_WAIT;
                    self.path.set_bandwidth(rate.max(c.rate));
                    self.begin_default();
                }
            }
        }
    }

    pub(super) fn competitive_limits(&self) -> (f64, Option<f64>) {
        let c = &self.competitive;
        let cut = if c.probing > 0 { (c.cut * self.window).round() } else { 0.0 };
        let window = self.window.floor() - cut;
        (window, Some(1.25 * self.window.max(2.0) / self.path.rtt.max(1e-6)))
    }
}
