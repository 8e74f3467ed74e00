//! What has arrived and what is missing: builds this end's REPORT frames (rrtp's ACKs), at the times that
//! [`AckPolicy`] chooses. Packets that ask for no report get none of their own.

use super::nonces::Received;
use super::numbering::Numbering;
use crate::ack_policy::{AckPolicy, MAX_ACK_DELAY, MAX_PACKETS_PER_ACK, max_wait};
use crate::loss_classifier::LossTracker;
use crate::ranges::Ranges;
use narrows_base::{Duration, Time};
use narrows_congestion::{Arrival, Feedback, ReceiverSide};
use narrows_wire::frame::Frame;
use narrows_wire::report::{self, MAX_RUNS};
use narrows_wire::{FrameWriter, Reason, Report, Run, prelude};

/// Ranges kept at most, whatever a peer or a path does.
const MAX_RANGES: usize = 256;
/// A number that turns out not to count is told to the receiver side only if it is so near: no
/// half waits longer for what comes out of order.
const NEAR: u64 = 64;
/// So long after the last packet that asked for a report, the receiver side may still report.
const ATTENTION: Duration = Duration::from_secs(2);

/// A data packet that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedPacket {
    pub number: u64,
    /// By which reports show that it came.
    pub nonce: u8,
    /// The prelude's stamp, and its lowest number of unknown outcome.
    pub stamp: u32,
    pub least_unacked: u64,
    /// As links count it.
    pub bytes: u32,
    pub marked: bool,
    /// Whether it asks for a report.
    pub asks: bool,
    /// Numbers directly below its own of packets that do not count, or that the peer left out on purpose.
    pub uncounted: u64,
}

/// The receiver's books.
pub(super) struct Arrivals {
    /// The receiver side of the peer's controller, as far as it is concerned: packets that are paced
    /// and counted, which are those that ask for a report. It has its own numbers for them.
    half: Option<Box<dyn ReceiverSide>>,
    /// Without the others, gaps that the others revealed, and what was left out.
    numbering: Numbering,
    /// Bytes of the last packet that counted for it.
    counted_bytes: u32,
    /// What the peer's sender side said last.
    feedback: Feedback,
    /// Tells radio losses from congestion; most protocols have none.
    tracker: Option<Box<LossTracker>>,
    /// None below the floor.
    seen: Received,
    /// Of the missing, those that are no losses: packets that do not count, and numbers that were left out.
    uncounted: Ranges,
    /// Nothing is said of what is below.
    floor: u64,
    /// One above the highest number that came.
    next: u64,
    /// The stamp that the next report echoes, and when it came.
    echo: (u32, Time),
    /// It came after the last report.
    echoes: bool,
    /// The lowest packet since the last report that came late.
    late: Option<u64>,
    /// The last packet's stamp in full, and the newest: microseconds of the peer's clock.
    sent_us: u64,
    newest_us: u64,
    marks: u64,
    policy: AckPolicy,
    /// When the last packet that asked for a report came.
    last: Time,
    /// The receiver side wants its feedback told.
    advised: bool,
}

impl Arrivals {
    pub fn new(half: Option<Box<dyn ReceiverSide>>, tracker: Option<LossTracker>) -> Arrivals {
        Arrivals {
            half,
            tracker: tracker.map(Box::new),
            numbering: Numbering::default(),
            counted_bytes: 0,
            feedback: Feedback::NONE,
            seen: Received::default(),
            uncounted: Ranges::default(),
            floor: 0,
            next: 0,
            echo: (0, Time::ZERO),
            echoes: false,
            late: None,
            sent_us: 0,
            newest_us: 0,
            marks: 0,
            policy: AckPolicy::new(MAX_PACKETS_PER_ACK),
            last: Time::ZERO,
            advised: false,
        }
    }
    /// One above the highest number that came.
    pub fn next_number(&self) -> u64 {
        self.next
    }
    /// The peer sends with something else than was believed, from the packet `first` on.
    pub fn believe(
        &mut self,
        half: Option<Box<dyn ReceiverSide>>,
        tracker: Option<LossTracker>,
        first: u64,
    ) {
        (self.half, self.tracker, self.advised) = (half, tracker.map(Box::new), false);
        self.feedback = Feedback::NONE;
        self.numbering = Numbering::default();
        self.numbering.leave_out(0, first.max(self.next));
    }
    /// The peer's sender side says this, until it says otherwise.
    pub fn on_feedback(&mut self, bytes: &[u8]) {
        self.feedback = feedback_of(bytes);
    }

    /// A packet was opened; each number comes once.
    #[inline]
    pub fn on_packet(&mut self, now: Time, came: &ReceivedPacket, srtt: Duration) {
        let (number, next) = (came.number, self.next);
        // Nothing is missing where nothing was: the lowest number that was is the one expected.
        let uncounted = came.uncounted.min(number.saturating_sub(self.floor));
        let expected = if number > next { number.min(next + uncounted) } else { next };
        // Of one below, the sender has told the outcome: a report that spoke of it would reach further down than the
        // sender remembers.
        if number >= self.floor {
            self.seen.insert(number, came.nonce);
        }
        // Packets that do not count may have come: then there is nothing to remember.
        let whole = self.seen.find(number).is_some_and(|(from, _)| from <= number - uncounted);
        if uncounted > 0 && !whole {
            self.uncounted.insert(number - uncounted, number, |_, _| ());
        }
        self.next = self.next.max(number + 1);
        if came.least_unacked > self.floor {
            self.forget_below(came.least_unacked.min(self.next));
        }
        while self.seen.ranges() > MAX_RANGES {
            let Some((_, to)) = self.seen.iter().next() else { break };
            self.forget_below(to);
        }
        self.extend_stamp(came.stamp);
        // Reports leave when they must, not when the pacer says: their spacing means nothing.
        if let Some(tracker) = &mut self.tracker
            && (came.asks || expected < number)
        {
            let sent = Time::from_nanos(self.sent_us.saturating_mul(1000));
            tracker.on_arrival(now, sent, (next, number - uncounted));
        }
        while self.uncounted.len() > MAX_RANGES {
            let Some((_, to)) = self.uncounted.iter().next() else { break };
            self.uncounted.trim_below(to);
        }
        self.marks += u64::from(came.marked);
        // The first packet that a report answers is echoed (as RFC 7323 section 4.3): those that
        // left just behind it waited for it, which is no queue. Nor is it one that a packet was overtaken.
        if number < next {
            self.late = Some(self.late.map_or(number, |late| late.min(number)));
        } else if self.policy.is_all_answered() || !self.echoes {
            (self.echo, self.echoes) = ((came.stamp, now), true);
        }
        self.tell_half(now, came, next, number - uncounted);
        self.policy.on_number(number, expected);
        if came.asks {
            self.last = now;
            let patience = max_wait(srtt, MAX_ACK_DELAY);
            self.policy.on_ack_eliciting(now, number, expected, came.marked, patience);
        }
    }

    /// The stamp in full: microseconds of the peer's clock, which passes zero every 18 minutes.
    #[inline]
    fn extend_stamp(&mut self, stamp: u32) {
        let about = if self.sent_us == 0 { u64::from(stamp) } else { self.newest_us };
        self.sent_us = prelude::nearest(stamp, about).max(1);
        self.newest_us = self.newest_us.max(self.sent_us);
    }

    /// `next` was expected before it came; the numbers from `sent_to` up to its own do not count.
    #[inline]
    fn tell_half(&mut self, now: Time, came: &ReceivedPacket, next: u64, sent_to: u64) {
        if self.half.is_none() {
            return;
        }
        if came.number >= next {
            let from = if came.asks { sent_to.max(next) } else { next };
            let to = if came.asks { came.number } else { came.number + 1 };
            self.numbering.leave_out(from, to);
        } else if sent_to < came.number || !came.asks {
            let to = if came.asks { came.number } else { came.number + 1 };
            self.fill(now, sent_to, to);
        }
        if came.asks {
            self.counted_bytes = came.bytes;
            self.tell(now, came.number, came.bytes, came.marked);
        }
    }

    /// Numbers `[from, to)` were taken for missing, and do not count: what told so came out of order. To
    /// the receiver side it is as if they had come, so that it sees no loss where there was none.
    #[cold]
    fn fill(&mut self, now: Time, from: u64, to: u64) {
        // What is further away was lost in its eyes.
        for number in from.max(to.saturating_sub(NEAR))..to {
            if self.numbering.counts(number)
                && !(number < to - 1 && self.seen.find(number).is_some())
            {
                self.tell(now, number, self.counted_bytes, false);
            }
        }
    }

    #[inline]
    fn tell(&mut self, now: Time, number: u64, bytes: u32, marked: bool) {
        let Some(half) = &mut self.half else { return };
        self.advised |= half.on_arrival(&Arrival {
            now,
            seq: self.numbering.of(number),
            sent: Time::from_nanos(self.sent_us.saturating_mul(1000)),
            bytes,
            marked,
            duplicate: false,
            feedback: self.feedback,
        });
    }

    fn forget_below(&mut self, n: u64) {
        self.floor = self.floor.max(n);
        self.seen.forget_below(self.floor);
        if let Some(tracker) = &mut self.tracker {
            tracker.trim_below(self.floor);
        }
        self.uncounted.trim_below(self.floor);
    }

    /// Whether a report must leave, alone if need be.
    #[inline]
    pub fn must_report(&self, now: Time) -> bool {
        self.next > 0 && (self.advised || self.policy.due() <= now)
    }
    /// Whether a packet that leaves anyhow takes a report along.
    #[inline]
    pub fn would_report(&self, now: Time) -> bool {
        self.must_report(now) || self.policy.should_piggyback()
    }

    /// Whether anything that asks for a report was not reported.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.policy.is_all_answered()
    }

    /// Writes a report, if there is room for it.
    pub fn write(&mut self, now: Time, writer: &mut FrameWriter<'_>) -> bool {
        let Some(highest) = self.next.checked_sub(1) else { return false };
        // A late packet that lies below what a report has room for is named all the same.
        let highest =
            self.late.map_or(highest, |late| self.seen.top_of_report(highest, late, MAX_RUNS));
        let mut bytes = [0; 16 * MAX_RUNS + 4];
        let runs = report::runs(&mut bytes, self.runs(highest));
        let reason = match self.holes() {
            0 if self.policy.is_full() && !self.advised => Reason::Cumulative,
            0 => Reason::Regular,
            1 => Reason::Missing,
            _ => Reason::Selective,
        };
        let half = self.half.as_mut().filter(|_| self.advised);
        let feedback = half.map_or(Feedback::NONE, |h| h.feedback(now));
        let mut words = [0; 16];
        let frame = Frame::Report(Report {
            reason,
            highest,
            echo: self.echo.0,
            delay: now.since(self.echo.1).as_nanos() / 1000,
            marks: (self.marks > 0).then_some(self.marks),
            feedback: feedback_bytes(&feedback, &mut words),
            nonce_sum: self.seen.sum_below(highest + 1, runs.iter().map(|r| r.arrived).sum()),
            runs,
        });
        if writer.frame(&frame).is_err() {
            return false;
        }
        self.policy.on_report_sent();
        (self.advised, self.echoes, self.late) = (false, false, None);
        true
    }

    /// Bytes of the heap that its books hold.
    pub fn memory(&self) -> usize {
        let radio = self.tracker.as_ref().map_or(0, |t| t.ranges());
        self.seen.memory() + (radio + self.uncounted.len()) * 16
    }

    /// The receiver side's named numbers.
    #[cfg(test)]
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if let Some(half) = &self.half {
            half.watch(put);
        }
    }

    /// How many packets are missing; 2 for more.
    pub fn holes(&self) -> u64 {
        let mut missing = 0;
        let mut ranges = self.seen.iter().rev().peekable();
        for _ in 0..MAX_RUNS {
            let Some((from, _)) = ranges.next().filter(|_| missing < 2) else { break };
            let below = ranges.peek().map_or(self.floor.min(from), |r| r.1);
            // What does not count lies directly below what told so.
            let uncounted = match from.checked_sub(1).and_then(|n| self.uncounted.find(n)) {
                Some((begin, _)) => from - begin.max(below),
                None => 0,
            };
            missing += from - below - uncounted;
        }
        missing.min(2)
    }

    /// What came and what is missing, from `highest` downwards.
    fn runs(&self, highest: u64) -> impl Iterator<Item = Run> + '_ {
        let mut ranges = self.seen.iter().rev().skip_while(move |r| r.1 > highest + 1).peekable();
        std::iter::from_fn(move || {
            let (from, to) = ranges.next()?;
            let below = ranges.peek().map_or(self.floor.min(from), |r| r.1);
            let radio = below < from && self.tracker.as_ref().is_some_and(|t| t.is_radio(below));
            Some(Run { arrived: to - from, missing: from - below, radio })
        })
    }

    /// When to call [`on_timeout`](Arrivals::on_timeout).
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.policy.due().min(self.tick_due())
    }
    /// The receiver side's tick; none while nothing has come for long, or an idle connection would
    /// never be silent.
    fn tick_due(&self) -> Time {
        let tick = self.half.as_ref().map_or(Time::NEVER, |h| h.next_tick());
        if tick <= self.last + ATTENTION { tick } else { Time::NEVER }
    }
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.tick_due()
            && let Some(half) = &mut self.half
        {
            self.advised |= half.on_tick(now);
        }
    }
}

/// Feedback in wire form: words, the highest byte first.
pub(super) fn feedback_bytes<'b>(feedback: &Feedback, bytes: &'b mut [u8; 16]) -> &'b [u8] {
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(feedback.words()) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes.get(..4 * feedback.words().len()).unwrap_or_default()
}

/// Feedback from its wire form; bytes that make no whole word are ignored.
pub(super) fn feedback_of(bytes: &[u8]) -> Feedback {
    let mut words = [0; 4];
    let mut used = 0;
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = chunk.iter().fold(0, |w, b| w << 8 | u32::from(*b));
        used += 1;
    }
    Feedback::from_words(words.get(..used).unwrap_or_default())
}

impl std::fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arrivals(next {}, {} ranges)", self.next, self.seen.ranges())
    }
}
