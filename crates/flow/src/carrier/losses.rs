//! Losses: how they are found, what they begin, and the timer. RFC 9002, counted in packets.
//!
//! - A packet is lost when it is absent and the packet three numbers above it has arrived (section
//!   6.1.1), or when a later one has and it left 9/8 of a round trip ago (6.1.2). An arrival is told
//!   as soon as everything below it is known, so the lowest unresolved packet is always one of which
//!   nothing was heard.
//! - Where nothing is heard for SRTT + 4 RTTVAR + the receiver's delay, doubling, one packet goes
//!   beyond the window: what was lost, or new bytes, or the oldest bytes in flight once more (6.2).
//!   A controller with a timer of its own is not overruled: only the bytes are put forward.
//! - Losses of packets that left after the last reduction begin a repair; it ends when the fate of
//!   every packet sent before it is known (7.3.1, 7.3.2). One packet may leave at once, and again if it
//!   is lost; that is no new repair, since it met the queue that made the loss.
//! - Persistent congestion, every packet of three such timeouts lost: the window begins anew (7.6).
//!
//! A late packet that counted as lost changes nothing any more: its bytes were put forward, and
//! the receiver counts bytes once.

use super::{Cargo, Carrier, LONGEST_TIMEOUT, Standing};
use narrows_base::{Duration, Time};
use narrows_control::{Fate, Loss, LossFoundBy, Repair, Restart};

/// RFC 9002 section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 section 6.1.2.
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 9002 section 7.6.1.
const PERSISTENT: u32 = 3;
/// Round-trip times beyond it are a stall rather than a path: five times that of a path by a
/// geostationary satellite with a queue of a second.
const MAX_PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// A timer that is handled so much later than it was due has met a leap of the clock, or a process that
/// stood still.
const MAX_LATENESS: Duration = Duration::from_secs(1);
/// A queue is short below an eighth of the smallest round-trip time, within these bounds: where RFC
/// 9406 section 4.2 takes a path for not yet full.
const SHORT_QUEUE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// Losses found at one moment.
#[derive(Default)]
pub(super) struct Found {
    count: u64,
    radio: u64,
    /// When the first left.
    first: Option<Time>,
    /// The first that left after the last reduction.
    new: Option<u64>,
    /// What the repair under way sent at once.
    repair: bool,
    by_clock: bool,
    persistent: bool,
}

impl<C: Cargo> Carrier<C> {
    /// How long an absent packet may be late once a later one has come.
    fn patience(&self) -> Duration {
        self.rtt.srtt().max(self.latest).mul_f64(TIME_THRESHOLD).max(GRANULARITY)
    }

    /// The probe timeout without back-off (6.2.1): before a round-trip time is known, the
    /// retransmission timer's first value. It is bounded: a path that kept packets for half a minute, since
    /// the peer's process stood still, makes no sender wait for minutes.
    pub fn probe_timeout(&self) -> Duration {
        if self.first_rtt.is_never() {
            return self.rtt.rto(0);
        }
        let deviation = self.rtt.rttvar().saturating_mul(4).max(GRANULARITY);
        (self.rtt.srtt() + deviation + self.max_ack_delay).min(MAX_PROBE_TIMEOUT)
    }

    /// To be called before anything else that happens at `now`: notices that the clock leapt, or that nobody
    /// was there to handle the timer. While packets are in flight it is always set.
    #[inline]
    pub(super) fn notice_leap(&mut self, now: Time) {
        if now.since(self.timer) > MAX_LATENESS {
            self.leapt = now;
        }
    }
    /// The round-trip time that a report of packets up to `highest` tells, but no more than is known if it
    /// contains a leap of the clock: an end that takes an hour's sleep for its path's round trip waits for
    /// minutes after every loss.
    #[inline]
    pub(super) fn without_leap(&self, now: Time, highest: u64, told: Duration) -> Duration {
        if now.since(self.leapt) >= told && told <= LONGEST_TIMEOUT {
            return told;
        }
        // Where nothing was in flight no timer tells of a leap, but a report may echo a packet that left
        // before: then what it answers is younger by far.
        let place = highest.checked_sub(self.unresolved).and_then(|n| usize::try_from(n).ok());
        let answered = place.and_then(|n| self.pending.get(n));
        let age = answered.map_or(told, |p| now.since(p.sent));
        if now.since(self.leapt) >= told && told <= age + LONGEST_TIMEOUT {
            return told;
        }
        let known = if self.first_rtt.is_never() { LONGEST_TIMEOUT } else { self.latest };
        told.min(known)
    }

    /// Tells the fate of every packet from the lowest on, as far as it is known.
    #[inline]
    pub(super) fn find_losses(&mut self, now: Time) -> Found {
        let mut found = Found::default();
        let head = self.reported.saturating_sub(1);
        while let Some(front) = self.pending.front() {
            let mut lost = false;
            if !front.arrived && !front.standing.is_mute() {
                let above = head.saturating_sub(self.unresolved);
                let by_count = above >= PACKET_THRESHOLD
                    && above - self.skipped(self.unresolved, head) >= PACKET_THRESHOLD;
                let late = self.unresolved < head && now.since(front.sent) >= self.patience();
                if !by_count && !late {
                    break;
                }
                lost = true;
                found.by_clock |= !by_count && front.standing == Standing::Counted;
            }
            self.resolve_front(now, lost, &mut found);
        }
        found
    }

    /// Packets whose fate nobody asks for do not keep the others.
    pub(super) fn drop_mute(&mut self) {
        while self.pending.front().is_some_and(|p| p.standing.is_mute()) {
            self.pending.pop_front();
            self.unresolved += 1;
            self.aside -= 1;
        }
    }

    #[inline]
    pub(super) fn resolve_front(&mut self, now: Time, lost: bool, found: &mut Found) {
        let Some(p) = self.pending.pop_front() else { return };
        let seq = self.unresolved;
        self.unresolved += 1;
        if p.standing != Standing::Counted {
            self.aside -= 1;
            if matches!(p.standing, Standing::Probe | Standing::Former) && !p.arrived {
                self.cargo.lost(&p.load);
                if p.standing == Standing::Former {
                    self.counters.lost += 1;
                    self.former -= 1;
                }
            }
            return;
        }
        // What was before it is no choice among what became of it.
        self.short_queue.1 += u64::from(self.short_before);
        if lost && !p.arrived {
            self.counters.lost += 1;
            self.in_flight -= 1;
            self.cargo.lost(&p.load);
            found.count += 1;
            found.radio += u64::from(p.radio);
            self.short_queue.0 += u64::from(self.short_before);
            found.first.get_or_insert(p.sent);
            if seq >= self.cut_at {
                found.new.get_or_insert(seq);
            }
            found.repair |= self.repairing && seq + 1 == self.cut_at;
            if p.sent > self.first_rtt {
                let since = *self.run.get_or_insert(p.sent);
                let long = self.probe_timeout().saturating_mul(u64::from(PERSISTENT));
                found.persistent |= p.sent.since(since) >= long;
            }
        } else {
            self.run = None;
            self.short_before = p.short_queue;
        }
        self.controller.on_fate(&Fate {
            now,
            seq,
            sent: p.sent,
            bytes: self.scaled(u32::from(p.bytes)),
            lost: !p.arrived,
            marked: p.marked,
            radio: p.radio && !p.arrived,
        });
    }

    /// A packet whose round-trip time is below this saw less of a queue than one that overflows.
    pub(super) fn short_queue_rtt(&self) -> Duration {
        let (low, high) = SHORT_QUEUE;
        match self.rtt.min() {
            Duration::MAX => Duration::ZERO,
            min => min + min.mul_f64(0.125).clamp(low, high),
        }
    }

    fn repair(&self, now: Time, flight: u64) -> Repair {
        let (min_rtt, srtt) = (self.rtt.min(), self.rtt.srtt());
        Repair { now, flight, outstanding: self.in_flight, min_rtt, srtt }
    }

    /// A repair's end, losses, and what they begin.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: Time, found: &Found) {
        if self.repairing && self.unresolved >= self.cut_at {
            self.repairing = false;
            let repair = self.repair(now, self.in_flight);
            self.controller.on_repair_end(&repair);
        }
        let Some(sent) = found.first else { return };
        self.radio += found.radio;
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
            radio: found.radio,
        });
        let window = self.controller.allowance().window;
        if persistent {
            self.run = None;
            self.repairing = false;
            self.cut_at = self.next;
            self.controller.on_restart(&Restart {
                now,
                flight: self.in_flight + found.count,
                timeout: true,
                backoffs: 1,
                min_rtt: self.rtt.min(),
                srtt: self.rtt.srtt(),
            });
        } else if let Some(first) = found.new {
            self.counters.episodes += 1;
            self.repairing = true;
            self.force = !self.own_timer;
            // With the packet that leaves at once: a packet sent at the time of the reduction is in
            // recovery by 7.3.2's comparison, too.
            self.cut_at = self.next + u64::from(self.force);
            let repair = self.repair(now, (self.next - first).saturating_sub(self.aside));
            self.controller.on_repair(&repair);
        } else if found.repair {
            self.force = !self.own_timer;
        }
        if self.controller.allowance().window < window {
            self.marks_cut_at = self.next;
        }
    }

    /// Routers' marks: at most one reaction per window (RFC 3168 section 6.1.2). A packet sent
    /// after the last reduction must have arrived.
    pub(super) fn tell_marks(&mut self, now: Time, marks: u32) {
        if marks > 0 && self.reported > self.marks_cut_at {
            let repair = self.repair(now, self.in_flight);
            self.controller.on_marks(&repair);
            self.counters.marks += 1;
            self.marks_cut_at = self.next;
        }
    }

    /// The lowest unresolved packet is late, or nothing is heard at all: whether the latter.
    #[cold]
    pub(super) fn on_timer(&mut self, now: Time) -> bool {
        let mut probe = false;
        if now < self.timer_due() {
            // Packets left since it was set: it is armed anew below.
        } else if self.waits_for_late() {
            let found = self.find_losses(now);
            self.tell_losses(now, &found);
        } else {
            probe = true;
            self.counters.timeouts += 1;
            self.backoffs = self.backoffs.saturating_add(1);
            if self.cargo.is_empty() {
                let told = |s| matches!(s, Standing::Counted | Standing::Former);
                let mut oldest = self.pending.iter().filter(|p| !p.arrived && told(p.standing));
                oldest.any(|p| self.cargo.lost(&p.load));
            }
            self.limiter.on_probe_timeout();
            // Not even a controller that sends on by its own timer may do so then.
            self.force = !self.own_timer || self.limiter.is_spent();
        }
        self.arm(now);
        if probe && self.timer_due() <= now {
            // Nothing left for so long, by the controller's will: not this very moment again.
            self.timer = now + self.backed_off();
        }
        probe
    }

    /// Whether a packet above the lowest unresolved one has arrived.
    fn waits_for_late(&self) -> bool {
        !self.pending.is_empty() && self.unresolved + 1 < self.reported
    }

    /// When the timer is due by what is known now.
    fn timer_due(&self) -> Time {
        match self.pending.front() {
            None => Time::NEVER,
            Some(_) if self.cargo.all_arrived(self.in_flight + self.former) => Time::NEVER,
            Some(front) if self.waits_for_late() => front.sent + self.patience(),
            Some(_) => self.last_sent + self.backed_off(),
        }
    }

    /// The probe timeout with back-off.
    fn backed_off(&self) -> Duration {
        if self.first_rtt.is_never() {
            return self.rtt.rto(self.backoffs);
        }
        let doubled = 1u64 << self.backoffs.min(16);
        let once = self.probe_timeout();
        once.saturating_mul(doubled).min(LONGEST_TIMEOUT.max(once))
    }

    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        self.timer = self.timer_due().max(now + Duration::from_nanos(1));
    }
}
