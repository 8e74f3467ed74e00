//! Runs the receiver side of the sender's controller. It sees only ack-eliciting packets, which are the ones that are
//! paced and counted, and it sees them under consecutive numbers.

use super::log::LogPosition;
use super::numbering::Numbering;
use crate::ranges::Ranges;
use narrows_base::{Duration, Time};
use narrows_congestion::{Arrival, Feedback, ReceiverSide};

/// A number that turns out not to count is passed to the receiver side only within this distance of the present packet:
/// receiver sides do not wait longer for reordered packets.
const NEAR: u64 = 64;
/// The receiver side may request reports until this time after the last ack-eliciting packet, so that an idle
/// connection sends no packets.
const ATTENTION: Duration = Duration::from_secs(2);

/// A packet as the receiver side gets it, by the sender's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SidePacket {
    pub number: u64,
    pub sent: Time,
    pub bytes: u32,
    pub marked: bool,
    pub ack_eliciting: bool,
}

/// The receiver side of a controller.
pub(super) struct FeedbackSource {
    side: Box<dyn ReceiverSide>,
    /// Renumbers packets without skipped numbers and packets that do not count.
    numbering: Numbering,
    /// Bytes of the last counted packet.
    counted_bytes: u32,
    /// Latest feedback of the sender side.
    from_sender: Feedback,
    /// Whether its feedback must be reported.
    wants_report: bool,
    /// When the last counted packet arrived.
    last: Time,
}

impl FeedbackSource {
    /// `first` is the lowest packet number that counts.
    pub fn new(side: Box<dyn ReceiverSide>, first: u64) -> FeedbackSource {
        let mut numbering = Numbering::default();
        numbering.leave_out(0, first);
        FeedbackSource {
            side,
            numbering,
            counted_bytes: 0,
            from_sender: Feedback::NONE,
            wants_report: false,
            last: Time::ZERO,
        }
    }
    /// The controller's receiver side, for time series.
    pub fn side(&self) -> &dyn ReceiverSide {
        &*self.side
    }
    /// The feedback of the sender side, valid until it changes.
    #[inline]
    pub fn on_feedback(&mut self, feedback: Feedback) {
        self.from_sender = feedback;
    }

    /// A packet arrived; `received` has all packets so far, including this one.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &SidePacket, place: &LogPosition, received: &Ranges) {
        if p.number >= place.next {
            let (from, to) = if p.ack_eliciting {
                (place.uncounted_from.max(place.next), p.number)
            } else {
                (place.next, p.number + 1)
            };
            if from < to {
                self.numbering.leave_out(from, to);
            }
        } else if place.uncounted_from < p.number || !p.ack_eliciting {
            let to = if p.ack_eliciting { p.number } else { p.number + 1 };
            self.fill(now, p.sent, place.uncounted_from, to, received);
        }
        if p.ack_eliciting {
            self.last = now;
            self.counted_bytes = p.bytes;
            self.give(now, p);
        }
    }

    /// A reordered packet shows that `[from, to)`, which seemed missing, do not count. They are passed to the receiver
    /// side as if they had arrived, so that it does not see losses that did not happen.
    #[cold]
    fn fill(&mut self, now: Time, sent: Time, from: u64, to: u64, received: &Ranges) {
        // The receiver side has already taken lower numbers for lost.
        for number in from.max(to.saturating_sub(NEAR))..to {
            if self.numbering.counts(number)
                && !(number < to - 1 && received.find(number).is_some())
            {
                let bytes = self.counted_bytes;
                let p = SidePacket { number, sent, bytes, marked: false, ack_eliciting: true };
                self.give(now, &p);
            }
        }
    }

    #[inline]
    fn give(&mut self, now: Time, p: &SidePacket) {
        self.wants_report |= self.side.on_arrival(&Arrival {
            now,
            seq: self.numbering.of(p.number),
            sent: p.sent,
            bytes: p.bytes,
            marked: p.marked,
            feedback: self.from_sender,
        });
    }

    /// Whether its feedback must be reported.
    #[inline]
    pub fn wants_report(&self) -> bool {
        self.wants_report
    }
    /// The feedback for a report that is sent now; empty if the receiver side did not request the report, because it
    /// would otherwise be called more often than its algorithm defines.
    #[inline]
    pub fn feedback(&mut self, now: Time) -> Feedback {
        if self.wants_report { self.side.feedback(now) } else { Feedback::NONE }
    }
    #[inline]
    pub fn on_report_sent(&mut self) {
        self.wants_report = false;
    }

    /// When to call [`on_timeout`](FeedbackSource::on_timeout); never if no packet has arrived for long.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let tick = self.side.next_tick();
        if tick <= self.last + ATTENTION { tick } else { Time::NEVER }
    }
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.next_timeout() {
            self.wants_report |= self.side.on_tick(now);
        }
    }
}
