//! The receiving side of datagrams: what came, the ACK vector, reports.

use super::assembly::Assembly;
use super::config::DatagramConfig;
use super::handshake;
use super::header::{self, Runs};
use crate::ack_policy::{AckPolicy, max_wait};
use crate::loss_classifier::LossTracker;
use crate::ranges::Ranges;
use narrows_base::{Duration, Packet, Time, random};
use narrows_congestion::{Arrival, Feedback, ReceiverSide};

/// Numbers below the highest by more than this are too late to be told from duplicates.
const MEMORY: u64 = 4096;
/// Ranges kept at most, whatever a peer or a path does.
const MAX_RANGES: usize = 256;

/// A datagram receiver: reports leave when the ACK policy or the controller's receiver side say so, as
/// those of a connection do.
pub struct Receiver {
    half: Option<Box<dyn ReceiverSide>>,
    flow: u32,
    report_bytes: u16,
    /// Whether the client has finished its opening, where there is one.
    open: bool,
    /// A stream's bytes, where the payload is one.
    assembly: Option<Box<Assembly>>,
    /// `None` where only the receiver side asks for reports.
    policy: Option<AckPolicy>,
    max_ack_delay: Duration,
    /// The shortest way of a packet; zero before the first.
    way: Duration,
    tracker: Option<LossTracker>,
    /// What came, at most `MEMORY` below the highest.
    seen: Ranges,
    /// Below it everything is a duplicate or too late.
    floor: u64,
    /// One above the highest number that came.
    next: u64,
    /// Lowest number whose outcome the sender does not know: ack of ack.
    least_unacked: u64,
    /// Send time of the packet that the next report echoes, and when it came.
    echo: (Time, Time),
    /// It came after the last report.
    echoes: bool,
    /// The lowest packet since the last report that came late.
    late: Option<u64>,
    delivered: u64,
    packets: u64,
    marks: u32,
    reports: u32,
    random_key: u64,
}

impl Receiver {
    /// For one flow; `random_key` is the flow's key for losses on the way back.
    pub fn new(
        config: &DatagramConfig,
        half: Option<Box<dyn ReceiverSide>>,
        flow: u32,
        random_key: u64,
    ) -> Receiver {
        let every = config.feedback.ack_every;
        Receiver {
            half,
            flow,
            report_bytes: config.report_bytes.min(65_535) as u16,
            open: !config.handshake,
            assembly: config.reliable.then(Box::default),
            policy: (every > 0).then(|| AckPolicy::new(every)),
            max_ack_delay: config.feedback.max_ack_delay,
            way: Duration::ZERO,
            tracker: config.feedback.classifier.tracker(),
            seen: Ranges::default(),
            floor: 0,
            next: 0,
            least_unacked: 0,
            echo: (Time::ZERO, Time::ZERO),
            echoes: false,
            late: None,
            delivered: 0,
            packets: 0,
            marks: 0,
            reports: 0,
            random_key: random_key ^ 0xAC0_AC0,
        }
    }

    /// A data packet arrived; the report to send now, if any.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        if p.has(Packet::CORRUPT) || p.seq >= u64::MAX / 2 {
            return None;
        }
        if p.has(Packet::SYN) {
            return self.on_opening(p);
        }
        if !self.open {
            return None;
        }
        let data = header::read_data(p);
        if self.assembly.as_ref().is_some_and(|a| !a.has_room(data.offset, p.payload())) {
            return None;
        }
        let mut duplicate = true;
        if p.seq >= self.floor {
            self.seen.insert(p.seq, p.seq + 1, |_, _| duplicate = false);
        }
        match &mut self.assembly {
            // Late or not, a packet's bytes are news if no other brought them.
            Some(a) => self.packets += u64::from(a.take(data.offset, p.payload()) > 0),
            None if !duplicate => {
                self.delivered += u64::from(p.payload());
                self.packets += u64::from(p.payload() > 0);
            }
            None => {}
        }
        let expected = self.next;
        if p.seq >= self.next {
            self.next = p.seq + 1;
            self.floor = self.floor.max(self.next.saturating_sub(MEMORY));
            while self.seen.len() > MAX_RANGES {
                let Some((_, to)) = self.seen.iter().next() else { break };
                self.floor = self.floor.max(to);
                self.seen.trim_below(to);
            }
            self.seen.trim_below(self.floor);
        }
        let least_unacked = p.seq.saturating_sub(u64::from(data.least_unacked));
        self.least_unacked = self.least_unacked.max(least_unacked.min(self.next));
        if let Some(tracker) = &mut self.tracker {
            tracker.on_arrival(now, p.stamp, (expected, p.seq));
        }
        let marked = p.has(Packet::CE);
        self.marks = self.marks.wrapping_add(u32::from(marked && !duplicate));
        // A report echoes the first packet that it answers (as RFC 7323 section 4.3): those that left
        // just behind it waited for it, which is no queue. Nor is it one that a packet was overtaken.
        if self.policy.is_none() {
            self.echo = (p.stamp, now);
        } else if p.seq < expected {
            self.late = Some(self.late.map_or(p.seq, |late| late.min(p.seq)));
        } else if !std::mem::replace(&mut self.echoes, true) {
            self.echo = (p.stamp, now);
        }
        let advised = self.half.as_mut().is_some_and(|half| {
            half.on_arrival(&Arrival {
                now,
                seq: p.seq,
                sent: p.stamp,
                bytes: u32::from(p.size),
                marked,
                duplicate,
                feedback: data.feedback,
            })
        });
        self.ask(now, p.stamp, p.seq, expected, marked);
        (advised || self.answers_due() <= now).then(|| self.report(now, advised))
    }

    /// Packet `seq` came where `expected` was next. A connection knows the round trip from its handshake;
    /// here clocks agree, and twice the shortest way is as good.
    #[inline]
    fn ask(&mut self, now: Time, sent: Time, seq: u64, expected: u64, marked: bool) {
        let Some(policy) = &mut self.policy else { return };
        let way = now.since(sent);
        self.way = if self.way == Duration::ZERO { way } else { self.way.min(way) };
        let patience = max_wait(self.way.saturating_mul(2), self.max_ack_delay);
        policy.on_number(seq, expected);
        policy.on_ack_eliciting(now, seq, expected, marked, patience);
    }
    #[inline]
    fn answers_due(&self) -> Time {
        self.policy.as_ref().map_or(Time::NEVER, AckPolicy::due)
    }

    /// A packet of the handshake: its answer.
    #[cold]
    fn on_opening(&mut self, p: &Packet) -> Option<Packet> {
        self.open |= handshake::is_finish(p);
        let size = handshake::answer(p)?;
        self.reports = self.reports.wrapping_add(1);
        Some(Packet {
            stamp: p.stamp,
            random_key: random::mix(self.random_key.wrapping_add(u64::from(self.reports))) as u32,
            size,
            hop: 0,
            flags: Packet::ACK | Packet::SYN,
            ..*p
        })
    }

    /// Whether it tells radio losses from congestion.
    pub fn classifies(&self) -> bool {
        self.tracker.is_some()
    }
    /// The newest classification of what is missing, once, for whoever knows the truth: packets
    /// `[from, to)`, and whether the radio link is believed to have lost them.
    #[inline]
    pub fn classified(&mut self) -> Option<(u64, u64, bool)> {
        self.tracker.as_mut().and_then(LossTracker::classified)
    }

    /// A report; `advised` with the receiver side's feedback. In reports that only [`AckPolicy`] wants it would
    /// be asked more often than its algorithm says.
    #[inline]
    fn report(&mut self, now: Time, advised: bool) -> Packet {
        let half = self.half.as_mut().filter(|_| advised);
        let feedback = half.map_or(Feedback::NONE, |h| h.feedback(now));
        if let Some(policy) = &mut self.policy {
            policy.on_report_sent();
        }
        self.echoes = false;
        self.reports = self.reports.wrapping_add(1);
        let mut head = self.next - 1;
        // A late packet that lies below what a report has room for is named all the same.
        if let Some(late) = self.late.take() {
            head = self.seen.top_of_report(head, late, header::room(&feedback) / 2);
        }
        let floor = self.least_unacked.max(self.floor).min(head);
        if let Some(tracker) = &mut self.tracker {
            tracker.trim_below(floor);
        }
        let tracker = self.tracker.as_ref();
        let radio = |n| tracker.is_some_and(|j| j.is_radio(n));
        let arrived = self.seen.iter().rev().skip_while(|r| r.0 > head);
        let runs = Runs::over(floor, head, arrived, radio, header::room(&feedback));
        let mut packet = Packet {
            seq: 0,
            // The receiver's delay is taken off at once.
            stamp: self.echo.0 + now.since(self.echo.1),
            number: 0,
            random_key: random::mix(self.random_key.wrapping_add(u64::from(self.reports))) as u32,
            sack: [(0, 0); 3],
            flow: self.flow,
            size: self.report_bytes,
            hop: 0,
            flags: Packet::ACK,
        };
        header::write_end(&mut packet, head + 1, self.echo.1.since(self.echo.0));
        header::write_report(&mut packet, &runs, &feedback, self.marks);
        packet
    }

    /// When to call [`on_timeout`](Receiver::on_timeout).
    #[inline]
    pub fn next_timeout(&self) -> Time {
        if self.next == 0 {
            return Time::NEVER;
        }
        let half = self.half.as_ref().map_or(Time::NEVER, |h| h.next_tick());
        half.min(self.answers_due())
    }

    /// The receiver side's tick, or packets that waited long enough for their report; the report to send
    /// now, if any.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        if self.next == 0 {
            return None;
        }
        let advised =
            self.half.as_mut().is_some_and(|half| now >= half.next_tick() && half.on_tick(now));
        (advised || now >= self.answers_due()).then(|| self.report(now, advised))
    }

    /// Application bytes so far: in order where they are a stream, otherwise without duplicates.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.assembly.as_ref().map_or(self.delivered, |a| a.in_order())
    }
    /// Distinct application bytes so far, in order or not.
    pub fn received(&self) -> u64 {
        self.assembly.as_ref().map_or(self.delivered, |a| a.received())
    }
    /// Packets so far, duplicates not counted.
    pub fn delivered_packets(&self) -> u64 {
        self.packets
    }
    /// The receiver side, to be watched.
    pub fn half(&self) -> Option<&dyn ReceiverSide> {
        self.half.as_deref()
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Receiver(flow {}, next {}, {} came)", self.flow, self.next, self.packets)
    }
}
