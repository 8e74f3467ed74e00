//! What the carrier does where its cargo is media: every packet's fate is told once, and nothing is
//! sent again.
//!
//! The order within a report: fates in the order of numbers, the round-trip time, the
//! controller's acknowledgement, its receiver half's advice; then poll sends.

use super::Sender;
use crate::datagram::header;
use narrows_base::{Packet, Time};
use narrows_control::{Ack, Advised, Fate, Restart};

/// A packet is given up when this many above it are passed: absent, with `head - MARGIN` still
/// above it (S1 section 5.1.3).
const MARGIN: u64 = 3;
impl Sender {
    pub(super) fn on_report(&mut self, now: Time, p: &Packet) {
        // Damaged, about packets never sent, or older than everything that is known.
        if p.has(Packet::CORRUPT) || p.seq > self.next || p.seq <= self.unresolved {
            return;
        }
        let (runs, advice, marks) = header::read_report(p);
        let head = p.seq - 1;
        let mut fresh = 0;
        for (from, to) in runs.arrived(head) {
            if to <= self.unresolved {
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
            in_repair: false,
            round: self.round,
            round_start,
            marks: new_marks,
            rate: None,
        });
        if !advice.is_empty() {
            self.controller.on_advice(&Advised {
                now,
                advice,
                rtt,
                srtt: self.rtt.srtt(),
                rttvar: self.rtt.rttvar(),
            });
        }
    }

    /// Books `[from, to)` as arrived; how many are news.
    #[inline]
    fn take_arrived(&mut self, from: u64, to: u64) -> u64 {
        let from = from.max(self.unresolved) - self.unresolved;
        let to = to - self.unresolved;
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
    pub(super) fn take_marks(&mut self, marks: u32, fresh: u64, head: u64) -> u32 {
        let new = marks.wrapping_sub(self.marks) % header::MARKS;
        if new == 0 || new >= header::MARKS / 2 {
            return 0; // Nothing new, or a report that was overtaken.
        }
        self.marks = marks;
        let new = new.min(u32::try_from(fresh).unwrap_or(u32::MAX));
        let top = (head + 1 - self.unresolved) as usize;
        let arrived = self.pending.range_mut(..top).rev().filter(|p| p.arrived);
        arrived.take(new as usize).for_each(|p| p.marked = true);
        new
    }

    /// Tells the fate of every packet below `end`, in order.
    #[inline]
    pub(super) fn resolve_below(&mut self, now: Time, end: u64) {
        while self.unresolved < end {
            let Some(p) = self.pending.pop_front() else { return };
            let seq = self.unresolved;
            self.unresolved += 1;
            let lost = !p.arrived;
            if lost {
                self.counters.lost += 1;
                if self.episode.is_none_or(|e| p.sent.since(e) > self.rtt.srtt()) {
                    self.episode = Some(p.sent);
                    self.counters.episodes += 1;
                }
            }
            let (sent, bytes, marked) = (p.sent, u32::from(p.bytes), p.marked);
            self.controller.on_fate(&Fate { now, seq, sent, bytes, lost, marked, radio: false });
        }
    }

    pub(super) fn arm_timer(&mut self, now: Time) {
        self.rto_due = if self.own_timer || self.flight() == 0 {
            Time::NEVER
        } else {
            now + self.rtt.rto(self.backoffs)
        };
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.backoffs = self.backoffs.saturating_add(1);
        let flight = self.flight();
        self.acked = self.next;
        self.rto_due = Time::NEVER;
        self.controller.on_restart(&Restart {
            now,
            flight,
            timeout: true,
            backoffs: self.backoffs,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        });
    }
}
