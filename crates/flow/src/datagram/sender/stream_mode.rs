//! What the carrier does where its cargo is a stream: loss detection, probes, and what a window's
//! controller is told. RFC 9002, counted in packets.
//!
//! - A packet is lost when it is absent and the packet three numbers above it has arrived (section
//!   6.1.1), or when a later one has and it left 9/8 of a round trip ago (6.1.2). An arrival is told
//!   as soon as everything below it is known, so the lowest unresolved packet is always one of which
//!   nothing was heard.
//! - Where nothing is heard for SRTT + 4 RTTVAR + the receiver's delay, doubling, one packet goes
//!   beyond the window: what was lost, or new bytes, or the oldest bytes in flight once more (6.2).
//!   A controller with a timer of its own is not overruled: only the bytes are put forward.
//! - Losses of packets that left after the last reduction begin a repair; it ends when the fate of
//!   every packet sent before it is known (7.3.1, 7.3.2). One packet may leave at once.
//! - Persistent congestion, every packet of three such timeouts lost: the window begins anew (7.6).
//!
//! Controllers are told as TCP's sender tells them: `on_ack`, then `on_loss`, then a repair's end
//! or begin, or a restart; fates come before. One `on_ack` is told for each packet that arrived,
//! however many a report answers (RFC 9002 appendix B.5), so that a controller that counts
//! acknowledgements grows alike with few reports; all of one report share its RTT and rate sample.
//! FlightSize at a loss is what was sent from the lost packet on, as TCP's is.
//!
//! A late packet that counted as lost changes nothing any more: its bytes were put forward, and
//! the receiver counts bytes once.

use super::{MOST_PENDING, Sender};
use crate::datagram::config::StreamConfig;
use crate::datagram::delivery::{Delivery, Stamp};
use crate::datagram::header;
use crate::datagram::stream::{Load, Outgoing};
use narrows_base::{Duration, Packet, Time};
use narrows_control::{Ack, Advised, Fate, Loss, LossFoundBy, Repair, Restart};
use std::collections::VecDeque;

/// RFC 9002 section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 section 6.1.2.
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 9002 section 7.6.1.
const PERSISTENT: u32 = 3;

/// What a packet carries, beside what the carrier keeps of it.
#[derive(Clone, Copy, Debug)]
struct Carried {
    offset: u64,
    length: u32,
    stamp: Stamp,
}

/// The stream and its repair.
#[derive(Debug)]
pub(super) struct StreamMode {
    pub cargo: Outgoing,
    /// Packets that neither arrived nor count as lost.
    pub in_flight: u64,
    /// One packet may leave whatever the window and the pacer say.
    pub force: bool,
    /// In step with the carrier's `pending`.
    carried: VecDeque<Carried>,
    delivery: Delivery,
    max_ack_delay: Duration,
    /// The last round-trip time, and when the first was known.
    latest: Duration,
    first_rtt: Time,
    last_sent: Time,
    /// Next number when the window was last reduced, by losses and by marks.
    cut_at: u64,
    marks_cut_at: u64,
    repairing: bool,
    /// When the first of the packets lost without an arrival between them left.
    run: Option<Time>,
}

/// Losses found at one moment.
#[derive(Default)]
struct Found {
    count: u64,
    /// The first: number and when it left.
    first: Option<(u64, Time)>,
    /// The first that left after the last reduction.
    new: Option<u64>,
    by_clock: bool,
    persistent: bool,
}

impl StreamMode {
    pub fn new(config: &StreamConfig) -> StreamMode {
        StreamMode {
            cargo: Outgoing::default(),
            in_flight: 0,
            force: false,
            carried: VecDeque::new(),
            delivery: Delivery::new(),
            max_ack_delay: config.max_ack_delay,
            latest: Duration::ZERO,
            first_rtt: Time::NEVER,
            last_sent: Time::ZERO,
            cut_at: 0,
            marks_cut_at: 0,
            repairing: false,
            run: None,
        }
    }

    /// The next packet's load, if there is any.
    #[inline]
    pub fn take(&mut self, most: u32) -> Option<Load> {
        let load = self.cargo.take(most);
        if load.is_none() {
            self.delivery.nothing_to_send(self.in_flight);
        }
        self.force = false;
        load
    }
}

impl Sender {
    /// A packet with this load leaves; whether nothing waits behind it.
    #[inline]
    pub(super) fn stream_sent(&mut self, now: Time, load: Load) -> bool {
        let Some(mut s) = self.stream.take() else { return true };
        let stamp = s.delivery.sent(now, s.in_flight == 0);
        s.carried.push_back(Carried { offset: load.offset, length: load.length, stamp });
        s.in_flight += 1;
        s.last_sent = now;
        self.counters.retransmissions += u64::from(load.again);
        if self.pending.len() > MOST_PENDING {
            let mut found = Found::default();
            self.resolve_front(now, &mut s, true, &mut found);
            self.tell_losses(now, &mut s, &found);
        }
        if self.rto_due.is_never() {
            self.arm_stream_timer(now, &s);
        }
        let last = s.cargo.is_empty();
        self.stream = Some(s);
        last
    }

    pub(super) fn on_stream_report(&mut self, now: Time, p: &Packet) {
        // Damaged, about packets never sent, or older than everything that is known. One about
        // what is just known counts: it may bring advice.
        if p.has(Packet::CORRUPT) || p.seq > self.next || p.seq < self.unresolved || p.seq == 0 {
            return;
        }
        let Some(mut s) = self.stream.take() else { return };
        let (runs, advice, marks) = header::read_report(p);
        let head = p.seq - 1;
        let mut fresh = 0;
        for (from, to) in runs.arrived(head) {
            if to <= self.unresolved {
                break;
            }
            fresh += self.take_carried(now, &mut s, from, to);
        }
        let prior = s.in_flight;
        s.in_flight -= fresh;
        self.arrived += fresh;
        let new_marks = self.take_marks(marks, fresh, head);
        self.reported = self.reported.max(p.seq);
        self.acked = self.reported;
        let rtt = now.since(p.stamp);
        s.latest = rtt;
        s.first_rtt = s.first_rtt.min(now);
        self.rtt.observe(rtt);
        let round_start = p.seq > self.round_end;
        if round_start {
            self.round += 1;
            self.round_end = self.next;
        }
        if fresh > 0 {
            self.backoffs = 0;
        }
        let found = self.find_losses(now, &mut s);
        let ack = Ack {
            now,
            rtt,
            rtt_unambiguous: true,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            arrived: None,
            newly_acked: 1,
            newly_sacked: 0,
            newly_delivered: 1,
            duplicate: false,
            sent_since: self.next - p.seq,
            flight: s.in_flight,
            outstanding: s.in_flight,
            prior_outstanding: prior,
            window_limited: self.window_limited,
            in_repair: s.repairing,
            round: self.round,
            round_start,
            marks: new_marks,
            rate: s.delivery.sample(now, self.rtt.min()),
        };
        self.tell_acks(&ack, fresh);
        self.tell_losses(now, &mut s, &found);
        self.tell_marks(now, &mut s, new_marks);
        if !advice.is_empty() {
            self.controller.on_advice(&Advised {
                now,
                advice,
                rtt,
                srtt: ack.srtt,
                rttvar: ack.rttvar,
            });
        }
        self.arm_stream_timer(now, &s);
        self.stream = Some(s);
    }

    /// One `on_ack` for each packet that arrived; a report without news is a duplicate.
    #[inline]
    fn tell_acks(&mut self, ack: &Ack, fresh: u64) {
        if fresh == 0 {
            let ack = Ack { newly_acked: 0, newly_delivered: 0, duplicate: true, ..*ack };
            self.controller.on_ack(&ack);
            return;
        }
        for i in 0..fresh {
            let later = i > 0;
            self.controller.on_ack(&Ack {
                // The losses that the report reveals are taken off for all.
                outstanding: ack.outstanding + (fresh - 1 - i),
                flight: ack.flight + (fresh - 1 - i),
                prior_outstanding: ack.prior_outstanding - i,
                round_start: ack.round_start && !later,
                marks: if later { 0 } else { ack.marks },
                ..*ack
            });
        }
    }

    /// Books `[from, to)` as arrived; how many are news.
    #[inline]
    fn take_carried(&mut self, now: Time, s: &mut StreamMode, from: u64, to: u64) -> u64 {
        let from = (from.max(self.unresolved) - self.unresolved) as usize;
        let to = ((to - self.unresolved) as usize).min(self.pending.len());
        let mut fresh = 0;
        for (p, c) in self.pending.range_mut(from..to).zip(s.carried.range(from..to)) {
            if !p.arrived {
                p.arrived = true;
                fresh += 1;
                s.cargo.arrived(c.offset, c.length);
                s.delivery.arrived(now, p.sent, &c.stamp);
            }
        }
        fresh
    }

    /// How long an absent packet may be late once a later one has come.
    fn patience(&self, s: &StreamMode) -> Duration {
        self.rtt.srtt().max(s.latest).mul_f64(TIME_THRESHOLD).max(GRANULARITY)
    }

    /// The probe timeout without back-off, once a round-trip time is known (6.2.1).
    fn probe_timeout(&self, s: &StreamMode) -> Duration {
        let deviation = self.rtt.rttvar().saturating_mul(4).max(GRANULARITY);
        self.rtt.srtt() + deviation + s.max_ack_delay
    }

    /// Tells the fate of every packet from the lowest on, as far as it is known.
    #[inline]
    fn find_losses(&mut self, now: Time, s: &mut StreamMode) -> Found {
        let mut found = Found::default();
        let head = self.reported.saturating_sub(1);
        while let Some(front) = self.pending.front() {
            let mut lost = false;
            if !front.arrived {
                let by_count = self.unresolved + PACKET_THRESHOLD <= head;
                let late = self.unresolved < head && now.since(front.sent) >= self.patience(s);
                if !by_count && !late {
                    break;
                }
                lost = true;
                found.by_clock |= !by_count;
            }
            self.resolve_front(now, s, lost, &mut found);
        }
        found
    }

    #[inline]
    fn resolve_front(&mut self, now: Time, s: &mut StreamMode, lost: bool, found: &mut Found) {
        let (Some(p), Some(c)) = (self.pending.pop_front(), s.carried.pop_front()) else { return };
        let seq = self.unresolved;
        self.unresolved += 1;
        if lost && !p.arrived {
            self.counters.lost += 1;
            s.in_flight -= 1;
            s.cargo.send_again(c.offset, c.length);
            found.count += 1;
            found.first.get_or_insert((seq, p.sent));
            if seq >= s.cut_at {
                found.new.get_or_insert(seq);
            }
            if p.sent > s.first_rtt {
                let since = *s.run.get_or_insert(p.sent);
                let long = self.probe_timeout(s).saturating_mul(u64::from(PERSISTENT));
                found.persistent |= p.sent.since(since) >= long;
            }
        } else {
            s.run = None;
        }
        self.controller.on_fate(&Fate {
            now,
            seq,
            sent: p.sent,
            bytes: u32::from(p.bytes),
            lost: !p.arrived,
            marked: p.marked,
        });
    }

    fn repair(&self, now: Time, s: &StreamMode, flight: u64) -> Repair {
        let (min_rtt, srtt) = (self.rtt.min(), self.rtt.srtt());
        Repair { now, flight, outstanding: s.in_flight, min_rtt, srtt }
    }

    /// A repair's end, losses, and what they begin.
    #[inline]
    fn tell_losses(&mut self, now: Time, s: &mut StreamMode, found: &Found) {
        if s.repairing && self.unresolved >= s.cut_at {
            s.repairing = false;
            let repair = self.repair(now, s, s.in_flight);
            self.controller.on_repair_end(&repair);
        }
        let Some((_, sent)) = found.first else { return };
        let persistent = found.persistent && !self.own_timer;
        let found_by = match (persistent, found.by_clock) {
            (true, _) => LossFoundBy::Timeout,
            (_, true) => LossFoundBy::Clock,
            _ => LossFoundBy::Sack,
        };
        self.controller.on_loss(&Loss {
            now,
            segments: found.count,
            sent,
            transmissions: 1,
            found_by,
            new_episode: persistent || found.new.is_some(),
        });
        let window = self.controller.allowance().window;
        if persistent {
            s.run = None;
            s.repairing = false;
            s.cut_at = self.next;
            self.controller.on_restart(&Restart {
                now,
                flight: s.in_flight + found.count,
                timeout: true,
                backoffs: 1,
                min_rtt: self.rtt.min(),
                srtt: self.rtt.srtt(),
            });
        } else if let Some(first) = found.new {
            self.counters.episodes += 1;
            s.repairing = true;
            s.cut_at = self.next;
            let repair = self.repair(now, s, self.next - first);
            self.controller.on_repair(&repair);
            s.force = !self.own_timer;
        }
        if self.controller.allowance().window < window {
            s.marks_cut_at = self.next;
        }
    }

    /// Routers' marks: at most one reaction per window (RFC 3168 section 6.1.2). A packet sent
    /// after the last reduction must have arrived.
    fn tell_marks(&mut self, now: Time, s: &mut StreamMode, marks: u32) {
        if marks > 0 && self.reported > s.marks_cut_at {
            let repair = self.repair(now, s, s.in_flight);
            self.controller.on_marks(&repair);
            self.counters.marks += 1;
            s.marks_cut_at = self.next;
        }
    }

    /// The lowest unresolved packet is late, or nothing is heard at all.
    #[cold]
    pub(super) fn on_stream_timer(&mut self, now: Time) {
        let Some(mut s) = self.stream.take() else { return };
        if now < self.stream_due(&s) {
            // Packets left since it was set: it is armed anew below.
        } else if self.waits_for_late() {
            let found = self.find_losses(now, &mut s);
            self.tell_losses(now, &mut s, &found);
        } else {
            self.counters.timeouts += 1;
            self.backoffs = self.backoffs.saturating_add(1);
            if s.cargo.is_empty() {
                let mut oldest = self.pending.iter().zip(&s.carried).filter(|(p, _)| !p.arrived);
                oldest.any(|(_, c)| s.cargo.send_again(c.offset, c.length));
            }
            s.force = !self.own_timer;
        }
        self.arm_stream_timer(now, &s);
        self.stream = Some(s);
    }

    /// Whether a packet above the lowest unresolved one has arrived.
    fn waits_for_late(&self) -> bool {
        !self.pending.is_empty() && self.unresolved + 1 < self.reported
    }

    /// When the timer is due by what is known now.
    fn stream_due(&self, s: &StreamMode) -> Time {
        match self.pending.front() {
            None => Time::NEVER,
            Some(_) if s.cargo.all_arrived() => Time::NEVER,
            Some(front) if self.waits_for_late() => front.sent + self.patience(s),
            Some(_) if s.first_rtt.is_never() => s.last_sent + self.rtt.rto(self.backoffs),
            Some(_) => {
                let doubled = 1u64 << self.backoffs.min(16);
                let timeout = self.probe_timeout(s).saturating_mul(doubled);
                s.last_sent + timeout.min(self.rtt.longest())
            }
        }
    }

    #[inline]
    fn arm_stream_timer(&mut self, now: Time, s: &StreamMode) {
        self.rto_due = self.stream_due(s).max(now + Duration::from_nanos(1));
    }
}
