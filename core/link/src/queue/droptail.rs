//! Drop-tail: drops arrivals beyond its limit.

use super::discipline::{Discipline, QueueEntry, QueueObserver, limit_param};
use super::fifo::Fifo;
use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::{Descriptor, Status, Time};

/// Drop-tail's descriptor.
pub const DROP_TAIL: Descriptor = Descriptor {
    name: "droptail",
    summary: "first in, first out; an arrival at a full queue is dropped",
    source: "RFC 2309 section 2",
    senses: "packets or bytes waiting",
    sets: "drops",
    params: &[limit_param(1e15, "no limit unless a link sets one; ns-2's limit_ L is (L-1)p")],
    status: Status::Validated(
        "ns-2.35 DropTail: one flow of four TCPs drops as many packets, within one (docs/validation.md)",
    ),
};

/// Drop-tail's entry.
pub(super) const ENTRY: QueueEntry =
    QueueEntry::new(&DROP_TAIL, |s| Box::new(DropTail::new(s.limit)));

/// A FIFO queue with a limit.
#[derive(Debug)]
pub(super) struct DropTail(Fifo);

impl DropTail {
    pub fn new(limit: QueueLimit) -> DropTail {
        DropTail(Fifo::new(limit))
    }
}

impl Discipline for DropTail {
    fn enqueue(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        let fits = idle || self.0.has_room(packet.size);
        if fits {
            self.0.push(now, packet);
        } else {
            observer.dropped(&packet);
        }
        fits
    }
    fn dequeue(
        &mut self,
        _now: Time,
        _observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        self.0.pop()
    }
    fn pass(
        &mut self,
        _now: Time,
        packet: QueuedPacket,
        _observer: &mut dyn QueueObserver,
    ) -> Option<QueuedPacket> {
        Some(packet)
    }
    fn waiting(&self) -> usize {
        self.0.len()
    }
}
