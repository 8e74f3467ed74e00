//! The receiving side of packets, the same under connections and simulated datagrams. Its parts are arrived and missing
//! packets (`log`), the time of reports (`ack_policy`), the losses attributed to the radio link ([`LossTracker`]),
//! and the receiver side of the sender's controller (`feedback`).
//!
//! Packets are identified by number. The caller has decrypted them, dropped duplicates
//! ([`ReplayWindow`](narrows_base::ReplayWindow)), and encodes the reports: `connection/report_frame.rs`, and
//! `endpoints/datagram/receiver.rs` of the crate `sim`.

mod ack_policy;
mod feedback;
mod log;
mod numbering;

pub use ack_policy::{MAX_ACK_DELAY, MAX_PACKETS_PER_ACK, MAX_SPACING};
pub use log::{ReceivedNumbers, runs};

use crate::loss_classifier::LossTracker;
use ack_policy::{AckPolicy, bounded_spacing, max_wait};
use feedback::{FeedbackSource, SidePacket};
use log::ArrivalLog;
use narrows_base::{Duration, PacketRun, Time};
use narrows_congestion::{Feedback, ReceiverSide};

/// A packet that arrived for the first time.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<N> {
    /// Its packet number.
    pub number: u64,
    /// The packet's nonce, by which reports prove its arrival.
    pub nonce: N,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// The sender's least unacked number at that time.
    pub least_unacked: u64,
    /// Size on the wire.
    pub bytes: u32,
    /// Whether it has a CE mark.
    pub marked: bool,
    /// Whether it is ack-eliciting (RFC 9000 section 13.2).
    pub ack_eliciting: bool,
    /// Number of packet numbers directly below its own that do not count or were skipped on
    /// purpose.
    pub uncounted: u64,
}

/// The packet from which the sender measures the RTT of a report.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// When it arrived, by the receiver's clock.
    pub came: Time,
}

/// The fields of a report without its runs.
#[derive(Clone, Copy, Debug)]
pub struct ReportFields {
    /// The highest number of its runs.
    pub highest: u64,
    /// The packet that gives an RTT sample.
    pub echo: Echo,
    /// Packets received with a CE mark so far.
    pub marks: u64,
    /// Feedback of the controller's receiver side.
    pub feedback: Feedback,
}

/// Configuration of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// The most packets that one report acknowledges; 0 if only the controller's receiver side
    /// requests reports.
    pub ack_every: u32,
    /// The longest time that a packet waits for its report (RFC 9000 max_ack_delay).
    pub max_ack_delay: Duration,
}

/// The receiver of one direction of a flow or a connection.
pub struct PacketReceiver<R> {
    log: ArrivalLog<R>,
    /// The receiver side of the peer's controller, if it has one.
    feedback: Option<Box<FeedbackSource>>,
    /// The loss classifier's tracker, if there is one.
    tracker: Option<Box<LossTracker>>,
    /// `None` if only the receiver side requests reports.
    policy: Option<AckPolicy>,
    max_ack_delay: Duration,
    /// The packet that the next report echoes.
    echo: Echo,
    /// Whether `echo` arrived after the last report.
    echoes: bool,
    /// The lowest packet that arrived late since the last report.
    late: Option<u64>,
    /// Runs for which the last report had room.
    max_runs: u32,
    marks: u64,
}

impl<R: ReceivedNumbers> PacketReceiver<R> {
    /// A receiver without packets.
    pub fn new(
        config: &ReceiverConfig,
        side: Option<Box<dyn ReceiverSide>>,
        tracker: Option<LossTracker>,
    ) -> PacketReceiver<R> {
        PacketReceiver {
            log: ArrivalLog::default(),
            feedback: side.map(|side| Box::new(FeedbackSource::new(side, 0))),
            tracker: tracker.map(Box::new),
            policy: (config.ack_every > 0).then(|| AckPolicy::new(config.ack_every)),
            max_ack_delay: config.max_ack_delay,
            echo: Echo { sent: Time::ZERO, came: Time::ZERO },
            echoes: false,
            late: None,
            max_runs: u32::MAX,
            marks: 0,
        }
    }
    /// From packet number `first` on, the peer uses a controller with this receiver side.
    pub fn replace_receiver_side(
        &mut self,
        side: Option<Box<dyn ReceiverSide>>,
        tracker: Option<LossTracker>,
        first: u64,
    ) {
        let first = first.max(self.log.next());
        self.feedback = side.map(|side| Box::new(FeedbackSource::new(side, first)));
        self.tracker = tracker.map(Box::new);
    }

    /// The highest received number plus one.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.log.next()
    }
    /// The received packet numbers that reports still cover.
    pub fn received(&self) -> &R {
        self.log.received()
    }
    /// The controller's receiver side, for time series.
    pub fn receiver_side(&self) -> Option<&dyn ReceiverSide> {
        self.feedback.as_ref().map(|f| f.side())
    }
    /// The loss classifier's tracker, if there is one.
    #[inline]
    pub fn tracker(&mut self) -> Option<&mut LossTracker> {
        self.tracker.as_deref_mut()
    }
    /// Whether it has a loss classifier.
    pub fn classifies(&self) -> bool {
        self.tracker.is_some()
    }

    /// The feedback of the peer's sender side, valid until it changes.
    #[inline]
    pub fn on_feedback(&mut self, from_sender: Feedback) {
        if let Some(feedback) = &mut self.feedback {
            feedback.on_feedback(from_sender);
        }
    }

    /// The peer requests reports at least `asked` apart; zero for the usual policy. `rtt` is zero if unknown.
    #[inline]
    pub fn on_spacing(&mut self, asked: Duration, rtt: Duration) {
        if let Some(policy) = &mut self.policy {
            policy.on_spacing(bounded_spacing(asked, rtt));
        }
    }

    /// A new packet arrived. `rtt` is zero if unknown.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &ReceivedPacket<R::Nonce>, rtt: Duration) {
        let number = p.number;
        let place = self.log.on_arrival(number, p.nonce, p.uncounted, p.least_unacked);
        // ACK-only packets are not paced, so their spacing does not measure the path.
        if let Some(tracker) = &mut self.tracker
            && (p.ack_eliciting || place.expected < number)
        {
            tracker.on_arrival(now, p.sent, (place.next, place.uncounted_from));
            tracker.trim_below(self.log.floor());
        }
        self.marks += u64::from(p.marked);
        if let Some(feedback) = &mut self.feedback {
            let ReceivedPacket { sent, bytes, marked, ack_eliciting, .. } = *p;
            let packet = SidePacket { number, sent, bytes, marked, ack_eliciting };
            feedback.on_packet(now, &packet, &place, self.log.received().ranges());
        }
        let Some(policy) = &mut self.policy else {
            self.echo = Echo { sent: p.sent, came: now };
            return;
        };
        // A report echoes the first packet that it acknowledges (as RFC 7323 section 4.3). The packets directly behind
        // it waited for the report, which is no queueing delay; neither is the delay of a reordered packet.
        if number < place.next {
            self.late = Some(self.late.map_or(number, |late| late.min(number)));
        } else if policy.is_all_answered() || !self.echoes {
            self.echo = Echo { sent: p.sent, came: now };
            self.echoes = true;
        }
        // The last report contained the highest number that had arrived. If the sender got it, its least unacked number
        // is above that.
        policy.on_silence(now, rtt, || p.least_unacked < place.next);
        policy.on_number(number, place.expected);
        if p.ack_eliciting {
            let wait = max_wait(rtt, self.max_ack_delay);
            policy.on_ack_eliciting(now, number, place.expected, p.marked, wait);
            policy.on_gaps(now, self.max_runs);
        }
    }

    #[inline]
    fn report_due(&self) -> Time {
        self.policy.as_ref().map_or(Time::NEVER, AckPolicy::due)
    }
    #[inline]
    fn wants_feedback(&self) -> bool {
        self.feedback.as_ref().is_some_and(|f| f.wants_report())
    }
    /// Whether a report must be sent, in a packet of its own if necessary.
    #[inline]
    pub fn must_report(&self, now: Time) -> bool {
        self.log.next() > 0 && (self.wants_feedback() || self.report_due() <= now)
    }
    /// Whether to add a report to a packet that is sent anyway.
    #[inline]
    pub fn should_piggyback(&self, now: Time) -> bool {
        self.must_report(now) || self.policy.as_ref().is_some_and(AckPolicy::should_piggyback)
    }
    /// Whether an ack-eliciting packet has not been reported yet.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| !policy.is_all_answered())
    }
    /// Whether a report is due only because as many packets wait as one report acknowledges.
    pub fn is_cumulative(&self) -> bool {
        self.policy.as_ref().is_some_and(AckPolicy::is_full) && !self.wants_feedback()
    }
    /// Number of missing packets in a report of at most `max_runs` runs; 2 stands for more.
    pub fn missing(&self, max_runs: usize) -> u64 {
        self.log.missing(max_runs)
    }

    /// The report to send now, if any packet arrived. Beside its feedback it has room for `max_runs` runs.
    #[inline]
    pub fn report(
        &mut self,
        now: Time,
        max_runs: impl FnOnce(&Feedback) -> usize,
    ) -> Option<ReportFields> {
        let feedback = self.feedback.as_mut().map_or(Feedback::NONE, |f| f.feedback(now));
        let max_runs = max_runs(&feedback);
        self.max_runs = u32::try_from(max_runs).unwrap_or(u32::MAX);
        let highest = self.log.highest(self.late, max_runs)?;
        Some(ReportFields { highest, echo: self.echo, marks: self.marks, feedback })
    }
    /// The runs, from `highest` downwards.
    #[inline]
    pub fn runs(&self, highest: u64) -> impl Iterator<Item = PacketRun> {
        let tracker = self.tracker.as_deref();
        self.log.runs(highest, move |n| tracker.is_some_and(|t| t.is_radio(n)))
    }
    /// The report was sent.
    #[inline]
    pub fn on_report_sent(&mut self, now: Time) {
        if let Some(policy) = &mut self.policy {
            policy.on_report_sent(now);
        }
        if let Some(feedback) = &mut self.feedback {
            feedback.on_report_sent();
        }
        self.echoes = false;
        self.late = None;
    }

    /// When to call [`on_timeout`](PacketReceiver::on_timeout).
    #[inline]
    pub fn next_timeout(&self) -> Time {
        if self.log.next() == 0 {
            return Time::NEVER;
        }
        let feedback = self.feedback.as_ref().map_or(Time::NEVER, |f| f.next_timeout());
        feedback.min(self.report_due())
    }
    /// A timer of the receiver side may be due.
    pub fn on_timeout(&mut self, now: Time) {
        if self.log.next() > 0
            && let Some(feedback) = &mut self.feedback
        {
            feedback.on_timeout(now);
        }
    }

    /// Heap memory in bytes, without the received numbers.
    pub fn memory(&self) -> usize {
        let radio = self.tracker.as_ref().map_or(0, |t| t.ranges());
        self.log.memory() + radio * size_of::<(u64, u64)>()
    }
}

impl<R: ReceivedNumbers> std::fmt::Debug for PacketReceiver<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ranges = self.log.received().ranges().len();
        write!(f, "PacketReceiver(next {}, {ranges} ranges)", self.log.next())
    }
}
