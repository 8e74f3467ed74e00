//! What the sender does where its payload is media: every packet's outcome is told once, and nothing is
//! sent again.
//!
//! The order within a report: outcomes in the order of numbers, the round-trip time, the
//! controller's acknowledgement, its receiver side's feedback; then poll sends.

use crate::datagram::config::DatagramConfig;
use crate::datagram::header;
use crate::datagram::stream::SentRange;
use crate::datagram::waiting::Waiting;
use crate::packet_sender::MAX_SENT_PACKETS;
use crate::rtt::RttEstimator;
use crate::simulated::Counters;
use crate::tcp::MAX_WINDOW;
use narrows_base::{Duration, Packet, Time};
use narrows_congestion::{
    Ack, Controller, FeedbackReceived, PacketOutcome, Sent, SlowStartRestart,
};
use std::collections::VecDeque;

/// A packet is given up when this many above it are passed: absent, with `head - MARGIN` still
/// above it (S1 section 5.1.3).
const MARGIN: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct Pending {
    sent: Time,
    bytes: u16,
    arrived: bool,
    marked: bool,
}

/// Media on their way.
pub(super) struct Media {
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    counters: Counters,
    credit: Duration,
    expiry: Duration,
    waiting: Waiting,
    /// Next number.
    next: u64,
    /// Lowest number whose outcome is not known; `pending` begins there.
    least_unacked: u64,
    pending: VecDeque<Pending>,
    /// One above the highest number that a report named, or where a restart put it.
    acked: u64,
    /// One above the highest number that a report named.
    reported: u64,
    arrived: u64,
    marks: u32,
    window_limited: bool,
    /// The last packet's due time and bits: the next is due when they are paced out.
    paced: Option<(Time, f64)>,
    own_timer: bool,
    rto_due: Time,
    backoffs: u32,
    round: u64,
    round_end: u64,
    /// When the packet that began the last loss episode left.
    episode: Option<Time>,
}

impl Media {
    pub fn new(config: &DatagramConfig, controller: Box<dyn Controller>) -> Media {
        Media {
            own_timer: controller.keeps_own_timer(),
            controller,
            rtt: RttEstimator::new(&config.rto),
            counters: Counters::default(),
            credit: config.credit,
            expiry: config.expiry,
            waiting: Waiting::default(),
            next: 0,
            least_unacked: 0,
            pending: VecDeque::new(),
            acked: 0,
            reported: 0,
            arrived: 0,
            marks: 0,
            window_limited: false,
            paced: None,
            rto_due: Time::NEVER,
            backoffs: 0,
            round: 0,
            round_end: 0,
            episode: None,
        }
    }

    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    pub fn counters(&self) -> Counters {
        Counters { expired: self.waiting.expired, ..self.counters }
    }
    #[inline]
    pub fn flight(&self) -> u64 {
        self.next - self.acked
    }
    pub fn acknowledged(&self) -> u64 {
        self.arrived
    }
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    pub fn least_unacked(&self) -> u64 {
        self.least_unacked
    }
    pub fn push(&mut self, now: Time, bytes: u64) {
        self.waiting.push(now, bytes);
    }
    pub fn stop(&mut self) {
        self.waiting.clear();
    }
    /// When a due time is wanted; a tick not before `earliest`.
    pub fn next_timeout(&self, earliest: Time) -> Time {
        self.rto_due.min(self.controller.next_tick().max(earliest))
    }
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.rto_due {
            self.on_rto(now);
        }
        if now >= self.controller.next_tick() {
            self.controller.on_tick(now);
        }
    }

    /// The next packet's number and load, which leaves now with `header` bytes more; else how long
    /// the pacer waits.
    pub fn next_range(
        &mut self,
        now: Time,
        payload: u32,
        header: u32,
    ) -> Result<(u64, SentRange), Time> {
        let send_limits = self.controller.send_limits();
        let mut due = now;
        if let (Some(rate), Some((last, bits))) = (send_limits.pacing_rate, self.paced) {
            // At the rate of now, not of when the last packet left: a raised rate counts at once.
            let gap = Duration::from_secs_f64(bits / rate.as_bps().max(1) as f64);
            // Time must move on at any rate.
            due = last + gap.max(Duration::from_nanos(1));
            if due > now {
                return Err(due);
            }
        }
        // A float's cast saturates: an infinite window is u64::MAX. Where no rate limits either, a flight
        // must still end.
        let most = if send_limits.pacing_rate.is_some() { u64::MAX } else { MAX_WINDOW };
        if self.flight() >= (send_limits.cwnd as u64).min(most) {
            self.window_limited = true;
            return Err(Time::NEVER);
        }
        self.waiting.expire(now, self.expiry);
        if self.waiting.is_empty() {
            self.window_limited = false;
            return Err(Time::NEVER);
        }
        let length = self.waiting.take(payload);
        let seq = self.next;
        self.next += 1;
        let bytes = (length + header).min(65_535) as u16;
        self.pending.push_back(Pending { sent: now, bytes, arrived: false, marked: false });
        if self.pending.len() > MAX_SENT_PACKETS {
            self.resolve_below(now, self.least_unacked + 1);
        }
        if self.rto_due.is_never() && !self.own_timer {
            self.arm_timer(now);
        }
        self.counters.sent += 1;
        self.controller.on_sent(&Sent {
            now,
            bytes: u32::from(bytes),
            outstanding: self.flight(),
            retransmission: false,
            last_waiting: self.waiting.is_empty(),
        });
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(self.credit.as_nanos()));
        self.paced = Some((due.max(earliest), f64::from(bytes) * 8.0));
        Ok((seq, SentRange { offset: 0, length, again: false }))
    }

    pub fn on_report(&mut self, now: Time, p: &Packet) {
        // Damaged, about packets never sent, or older than everything that is known.
        if p.has(Packet::CORRUPT) || p.seq > self.next || p.seq <= self.least_unacked {
            return;
        }
        let (runs, feedback, marks) = header::read_report(p);
        let head = p.seq - 1;
        let mut fresh = 0;
        for (from, to) in runs.arrived(head) {
            if to <= self.least_unacked {
                break;
            }
            fresh += self.take_arrived(from, to);
        }
        let new_marks = self.take_marks(marks, fresh, head);
        let prior_outstanding = self.flight();
        self.reported = self.reported.max(p.seq);
        let advance = p.seq.saturating_sub(self.acked);
        self.acked = self.acked.max(p.seq);
        self.resolve_below(now, self.reported.saturating_sub(MARGIN + 1));
        let rtt = now.since(p.stamp);
        self.rtt.observe(rtt);
        if !self.own_timer {
            self.rtt.sample(rtt, p.stamp);
        }
        let round_start = p.seq > self.round_end;
        if round_start {
            self.round += 1;
            self.round_end = self.next;
        }
        self.backoffs = 0;
        self.arm_timer(now);
        self.controller.on_ack(&Ack {
            now,
            rtt,
            rtt_unambiguous: true,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            arrived: None,
            newly_acked: advance,
            newly_sacked: 0,
            newly_delivered: fresh,
            duplicate: false,
            sent_since: self.next - p.seq,
            flight: self.flight(),
            outstanding: self.flight(),
            prior_outstanding,
            window_limited: self.window_limited,
            in_recovery: false,
            round: self.round,
            round_start,
            marks: new_marks,
            rate: None,
        });
        if !feedback.is_empty() {
            self.controller.on_feedback(&FeedbackReceived {
                now,
                feedback,
                rtt,
                srtt: self.rtt.srtt(),
                rttvar: self.rtt.rttvar(),
            });
        }
    }

    /// Books `[from, to)` as arrived; how many are news.
    #[inline]
    fn take_arrived(&mut self, from: u64, to: u64) -> u64 {
        let from = from.max(self.least_unacked) - self.least_unacked;
        let to = to - self.least_unacked;
        let mut fresh = 0;
        for p in self.pending.range_mut(from as usize..to as usize) {
            fresh += u64::from(!p.arrived);
            p.arrived = true;
        }
        self.arrived += fresh;
        fresh
    }

    /// New marks since the last report, laid on the newest packets: exact where every packet is
    /// reported, as good as any other order where not.
    fn take_marks(&mut self, marks: u32, fresh: u64, head: u64) -> u32 {
        let new = marks.wrapping_sub(self.marks) % header::MARKS;
        if new == 0 || new >= header::MARKS / 2 {
            return 0; // Nothing new, or a report that was overtaken.
        }
        self.marks = marks;
        let new = new.min(u32::try_from(fresh).unwrap_or(u32::MAX));
        let top = (head + 1 - self.least_unacked) as usize;
        let arrived = self.pending.range_mut(..top).rev().filter(|p| p.arrived);
        arrived.take(new as usize).for_each(|p| p.marked = true);
        new
    }

    /// Tells the outcome of every packet below `end`, in order.
    #[inline]
    fn resolve_below(&mut self, now: Time, end: u64) {
        while self.least_unacked < end {
            let Some(p) = self.pending.pop_front() else { return };
            let seq = self.least_unacked;
            self.least_unacked += 1;
            let lost = !p.arrived;
            if lost {
                self.counters.lost += 1;
                if self.episode.is_none_or(|e| p.sent.since(e) > self.rtt.srtt()) {
                    self.episode = Some(p.sent);
                    self.counters.episodes += 1;
                }
            }
            let (sent, bytes, marked) = (p.sent, u32::from(p.bytes), p.marked);
            self.controller.on_packet_outcome(&PacketOutcome {
                now,
                seq,
                sent,
                bytes,
                lost,
                marked,
                radio: false,
            });
        }
    }

    fn arm_timer(&mut self, now: Time) {
        self.rto_due = if self.own_timer || self.flight() == 0 {
            Time::NEVER
        } else {
            now + self.rtt.rto(self.backoffs)
        };
    }

    fn on_rto(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.backoffs = self.backoffs.saturating_add(1);
        let flight = self.flight();
        self.acked = self.next;
        self.rto_due = Time::NEVER;
        self.controller.on_slow_start_restart(&SlowStartRestart {
            now,
            flight,
            timeout: true,
            backoffs: self.backoffs,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        });
    }
}
