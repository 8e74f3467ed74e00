//! The reactions to a loss, an arrival or a probe timeout: passes the loss detector's findings to the ledger, the
//! payload source and the controller.

use super::feed::Reaction;
use super::losses::{Found, Front};
use super::sent_packet::PacketClass;
use super::{Force, MAX_BACKOFF_TIMEOUT, PacketSender, PayloadSource};
use narrows_base::random::{mix, unit};
use narrows_base::{Duration, Time};

/// Packets of a probe timeout at most (RFC 9002 section 6.2.4) after so many that brought nothing: on a link that loses
/// in bursts each probe that is lost doubles the silence. Before that one suffices, and many flows that share a full
/// queue have one more to lose.
const MAX_PROBES: usize = 2;
const UNANSWERED: u32 = 2;

impl<C: PayloadSource> PacketSender<C> {
    /// The probe timeout without back-off (RFC 9002 section 6.2.1).
    pub fn probe_timeout(&self) -> Duration {
        self.loss.probe_timeout(&self.path)
    }

    /// Tells the outcome of every packet from the lowest on, as far as it is known.
    #[inline]
    pub(super) fn find_losses(&mut self, now: Time) -> Found {
        let mut found = Found::default();
        while let Some(front) = self.loss.front(now, &self.ledger, &self.path) {
            match front {
                Front::Open => break,
                Front::LostByClock => {
                    let class = self.ledger.front().map(|p| p.class);
                    found.by_clock |= class.is_some_and(PacketClass::is_counted);
                }
                Front::Known | Front::LostByCount => {}
            }
            self.resolve_front(now, &mut found);
        }
        found
    }

    #[inline]
    fn resolve_front(&mut self, now: Time, found: &mut Found) {
        let Some(outcome) = self.ledger.resolve() else { return };
        let p = &outcome.packet;
        if !p.class.is_counted() {
            if matches!(p.class, PacketClass::MtuProbe | PacketClass::OldPath) && !p.arrived {
                self.payload_source.lost(&p.payload);
                self.counters.lost += u64::from(p.class == PacketClass::OldPath);
            }
            return;
        }
        if p.arrived {
            self.loss.end_run();
        } else {
            self.counters.lost += 1;
            self.payload_source.lost(&p.payload);
            self.feed.book_loss(&outcome, found);
            found.persistent |= self.loss.on_lost(p.sent, &self.path);
        }
        self.feed.tell_outcome(now, &outcome);
        if !outcome.packet.arrived {
            self.ledger.lost.push(now, outcome.seq, outcome.packet);
        }
    }

    /// More packets are of unknown outcome than are remembered.
    #[cold]
    pub(super) fn forget_oldest(&mut self, now: Time) {
        let mut found = Found::default();
        // More than one where a number was left out.
        while self.ledger.is_full() {
            self.resolve_front(now, &mut found);
        }
        self.tell_losses(now, &found);
    }

    /// A recovery's end, losses, and what they begin.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: Time, found: &Found) {
        let (ledger, path) = (&self.ledger, &self.path);
        match self.feed.tell_losses(now, found, ledger, path, &mut self.counters) {
            Reaction::Nothing => {}
            Reaction::RecoveryEvent => {
                self.loss.on_recovery();
                if !self.feed.keeps_own_timer() && self.force == Force::Nothing {
                    self.force = Force::Window;
                }
                if found.repair {
                    let share = unit(mix(self.ledger.next()));
                    self.pacer.shift(now, share, &self.feed, self.progress());
                }
            }
            Reaction::SlowStartRestart => self.loss.end_run(),
        }
    }

    fn timer_due(&self) -> Time {
        let all_arrived = self.payload_source.all_arrived(self.ledger.in_flight_anywhere());
        self.loss.timer_due(&self.ledger, &self.path, all_arrived)
    }
    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        let due = self.timer_due();
        self.loss.arm(now, due);
    }

    /// The lowest packet of unknown outcome is late, or nothing is received at all: whether the latter.
    #[cold]
    pub(super) fn on_timer(&mut self, now: Time) -> bool {
        let mut probe = false;
        if now < self.timer_due() {
            // Packets left since it was set: it is armed anew below.
        } else if self.ledger.waits_for_late() {
            let found = self.find_losses(now);
            self.tell_losses(now, &found);
        } else {
            probe = true;
            self.counters.timeouts += 1;
            let early = self.loss.is_probe_early(&self.ledger, &self.path);
            // A path that never acknowledged anything may be nobody's who asked for it.
            let proven = self.ledger.arrived() > 0 && !self.feed.keeps_own_timer();
            let probes = if proven && self.loss.backoffs() >= UNANSWERED { MAX_PROBES } else { 1 };
            self.loss.on_probe_timeout();
            if !early && self.payload_source.is_empty() {
                let PacketSender { ledger, payload_source, .. } = self;
                let carried = ledger.missing().filter(|p| payload_source.lost(&p.payload));
                carried.take(probes).for_each(drop);
            }
            self.limiter.on_probe_timeout();
            // A controller that keeps a timer of its own knows when the next packet may leave; where its
            // packets are further apart than a probe timeout, one more for each loss would be a higher
            // rate than it allows. But a rate that fell in an outage may forbid packets for a minute. What
            // leaves then is data if there is any: receiver sides measure what arrives, and a few bytes every
            // two seconds would keep a rate that follows that measure (RFC 5348: twice of it) down for good.
            let silent = now.since(self.loss.last_sent()) >= MAX_BACKOFF_TIMEOUT;
            if !self.feed.keeps_own_timer() {
                self.force = if early { Force::ShortProbe } else { Force::All };
                self.second_probe = !early && probes == MAX_PROBES;
            } else if silent {
                self.force = Force::All;
            }
        }
        self.arm(now);
        if probe && self.timer_due() <= now {
            self.loss.put_off(now, &self.ledger, &self.path);
        }
        probe
    }
}
