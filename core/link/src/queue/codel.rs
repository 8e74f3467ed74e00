//! CoDel: drops by how long packets have waited (RFC 8289).

use super::discipline::{Discipline, ECN, QueueEntry, QueueObserver, limit_param};
use super::fifo::Fifo;
use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Time};

/// The target: the waiting time that CoDel accepts.
pub(super) const TARGET: Param = Param {
    name: "target",
    help: "waiting time that may stand",
    kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 10.0, default: 0.005 },
    origin: "RFC 8289 section 4.4",
};

/// The interval: how long CoDel accepts a longer wait.
pub(super) const INTERVAL: Param = Param {
    name: "interval",
    help: "how long the wait may stay above the target; about the longest usual RTT",
    kind: ParamKind::Number { unit: Unit::Seconds, min: 1e-6, max: 100.0, default: 0.1 },
    origin: "RFC 8289 section 4.3",
};

/// CoDel's descriptor.
const CODEL: Descriptor = Descriptor {
    name: "codel",
    summary: "drops at the head once packets have waited above a target for a whole interval",
    source: "RFC 8289",
    senses: "how long each packet has waited",
    sets: "drops or marks at the head, ever closer together",
    params: &[TARGET, INTERVAL, ECN, limit_param(1000.0, "Linux; the RFC names no limit")],
    status: Status::Validated(
        "its drops under a constant rate in closed form, within 2% (docs/validation.md)",
    ),
};

/// CoDel's entry.
pub(super) const ENTRY: QueueEntry =
    QueueEntry::new(&CODEL, |s| Box::new(CoDel::new(s.settings, s.limit)));

/// CoDel's parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodelLaw {
    target: Duration,
    interval: Duration,
    ecn: bool,
}

impl CodelLaw {
    pub fn new(s: &Settings) -> CodelLaw {
        CodelLaw {
            target: Duration::from_secs_f64(s.number("target")),
            interval: Duration::from_secs_f64(s.number("interval")),
            ecn: s.choice("ecn") == "on",
        }
    }
    /// When the next drop is due. The spacing of drops shrinks with the square root of their
    /// number, to which TCP's throughput responds linearly (RFC 8289 section 3.4).
    fn next(&self, from: Time, count: u32) -> Time {
        from + Duration::from_nanos(
            (self.interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt()) as u64,
        )
    }
}

/// CoDel's state for one queue (RFC 8289 section 5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodelState {
    /// When the wait will have exceeded the target for an interval.
    first_above: Option<Time>,
    /// When the next drop is due, while dropping.
    drop_next: Time,
    /// Drops since the dropping state began, and the value of `count` when it last began.
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CodelState {
    /// Takes out the head of the queue. Also returns whether it may be dropped.
    fn head(
        &mut self,
        law: &CodelLaw,
        fifo: &mut Fifo,
        mtu: u32,
        now: Time,
    ) -> Option<(Time, QueuedPacket, bool)> {
        let Some((arrived, packet)) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        // A single packet is no standing queue, however slow the link.
        if now.since(arrived) < law.target || fifo.bytes() <= u64::from(mtu) {
            self.first_above = None;
            return Some((arrived, packet, false));
        }
        let due = *self.first_above.get_or_insert(now + law.interval);
        Some((arrived, packet, now >= due))
    }

    /// Takes out the packet to transmit, after CoDel's drops; `mtu` is the largest packet's size.
    pub fn dequeue(
        &mut self,
        law: &CodelLaw,
        fifo: &mut Fifo,
        mtu: u32,
        now: Time,
        observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        let Some((mut arrived, mut packet, mut may_drop)) = self.head(law, fifo, mtu, now) else {
            self.dropping = false;
            return None;
        };
        if !self.dropping {
            if !may_drop {
                return Some((arrived, packet));
            }
            // If this dropping state soon follows the last one, it begins at the drop rate that
            // controlled that one.
            let made = self.count.saturating_sub(self.last_count);
            let soon = now.since(self.drop_next) < law.interval.saturating_mul(16);
            self.count = if made > 1 && soon { made } else { 1 };
            self.last_count = self.count;
            self.dropping = true;
            self.drop_next = law.next(now, self.count);
            if strike(law.ecn, &mut packet, observer) {
                return Some((arrived, packet));
            }
            return self.head(law, fifo, mtu, now).map(|(arrived, packet, _)| (arrived, packet));
        }
        loop {
            self.dropping &= may_drop;
            if !self.dropping || now < self.drop_next {
                return Some((arrived, packet));
            }
            self.count = self.count.saturating_add(1);
            let marked = strike(law.ecn, &mut packet, observer);
            self.drop_next = law.next(self.drop_next, self.count);
            if marked {
                return Some((arrived, packet));
            }
            let Some(next) = self.head(law, fifo, mtu, now) else {
                self.dropping = false;
                return None;
            };
            (arrived, packet, may_drop) = next;
        }
    }
}

/// Marks the packet (true) or drops it.
fn strike(ecn: bool, packet: &mut QueuedPacket, observer: &mut dyn QueueObserver) -> bool {
    let marks = ecn && packet.ect;
    if marks {
        packet.marked = true;
        observer.marked(packet);
    } else {
        observer.dropped(packet);
    }
    marks
}

/// A single queue under CoDel.
pub(super) struct CoDel {
    law: CodelLaw,
    state: CodelState,
    fifo: Fifo,
    /// Size of the largest packet seen, taken as the MTU.
    mtu: u32,
}

impl CoDel {
    pub fn new(settings: &Settings, limit: QueueLimit) -> CoDel {
        CoDel {
            law: CodelLaw::new(settings),
            state: CodelState::default(),
            fifo: Fifo::new(limit),
            mtu: 0,
        }
    }
}

impl Discipline for CoDel {
    fn enqueue(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        if !idle && !self.fifo.has_room(packet.size) {
            observer.dropped(&packet);
            return false;
        }
        self.mtu = self.mtu.max(packet.size);
        self.fifo.push(now, packet);
        true
    }
    fn dequeue(
        &mut self,
        now: Time,
        observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        self.state.dequeue(&self.law, &mut self.fifo, self.mtu, now, observer)
    }
    fn waiting(&self) -> usize {
        self.fifo.len()
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
