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

mod losses;

use self::losses::Found;
use super::{MOST_PENDING, Sender};
use crate::datagram::config::StreamConfig;
use crate::datagram::delivery::{Delivery, Stamp};
use crate::datagram::header;
use crate::datagram::stream::{Load, Outgoing};
use narrows_base::{Duration, Packet, Time};
use narrows_control::{Ack, Advised};
use std::collections::VecDeque;

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
}
