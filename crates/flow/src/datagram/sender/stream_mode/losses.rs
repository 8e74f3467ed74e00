//! Losses of a stream's packets: how they are found, what they begin, and the timer.

use super::{Sender, StreamMode};
use narrows_base::{Duration, Time};
use narrows_control::{Fate, Loss, LossFoundBy, Repair, Restart};

/// RFC 9002 section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 section 6.1.2.
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 9002 section 7.6.1.
const PERSISTENT: u32 = 3;

/// Losses found at one moment.
#[derive(Default)]
pub(super) struct Found {
    count: u64,
    /// The first: number and when it left.
    first: Option<(u64, Time)>,
    /// The first that left after the last reduction.
    new: Option<u64>,
    by_clock: bool,
    persistent: bool,
}

impl Sender {
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
    pub(super) fn find_losses(&mut self, now: Time, s: &mut StreamMode) -> Found {
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
    pub(super) fn resolve_front(
        &mut self,
        now: Time,
        s: &mut StreamMode,
        lost: bool,
        found: &mut Found,
    ) {
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
            radio: false,
        });
    }

    fn repair(&self, now: Time, s: &StreamMode, flight: u64) -> Repair {
        let (min_rtt, srtt) = (self.rtt.min(), self.rtt.srtt());
        Repair { now, flight, outstanding: s.in_flight, min_rtt, srtt }
    }

    /// A repair's end, losses, and what they begin.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: Time, s: &mut StreamMode, found: &Found) {
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
            radio: 0,
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
    pub(super) fn tell_marks(&mut self, now: Time, s: &mut StreamMode, marks: u32) {
        if marks > 0 && self.reported > s.marks_cut_at {
            let repair = self.repair(now, s, s.in_flight);
            self.controller.on_marks(&repair);
            self.counters.marks += 1;
            s.marks_cut_at = self.next;
        }
    }

    /// The lowest unresolved packet is late, or nothing is heard at all.
    #[cold]
    pub(in super::super) fn on_stream_timer(&mut self, now: Time) {
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
    pub(super) fn arm_stream_timer(&mut self, now: Time, s: &StreamMode) {
        self.rto_due = self.stream_due(s).max(now + Duration::from_nanos(1));
    }
}
