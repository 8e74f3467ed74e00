//! Drop-tail: drops arrivals beyond its limit. Also the first-in-first-out queue that other disciplines build on.

use super::{Discipline, QueueEntry, QueueObserver, QueuedPacket, limit_param};
use crate::config::QueueLimit;
use narrows_base::{Descriptor, Status, Time};
use std::collections::VecDeque;

/// Drop-tail's descriptor.
pub const DROP_TAIL: Descriptor = Descriptor {
    name: "droptail",
    summary: "first in, first out; an arrival that finds no room is dropped",
    source: "RFC 2309 section 2",
    senses: "packets or bytes waiting",
    sets: "drops",
    params: &[limit_param(1e15, "no limit unless a link says so; ns-2's limit_ L is (L-1)p")],
    status: Status::Validated(
        "ns-2.35 DropTail: one flow of four TCPs drops as many packets, within one (docs/validation.md)",
    ),
};

/// Drop-tail's entry.
pub(super) const ENTRY: QueueEntry =
    QueueEntry::new(&DROP_TAIL, |s| Box::new(DropTail::new(s.limit)));

/// Whether one more packet of `size` may wait.
#[inline]
pub fn has_room(limit: QueueLimit, packets: u64, bytes: u64, size: u32) -> bool {
    match limit {
        QueueLimit::Unlimited => true,
        QueueLimit::Packets(n) => packets < n,
        QueueLimit::Bytes(n) => bytes.saturating_add(u64::from(size)) <= n,
    }
}

/// Packets in order of arrival, each with when it came.
#[derive(Debug)]
pub(super) struct Fifo {
    limit: QueueLimit,
    bytes: u64,
    queue: VecDeque<(Time, QueuedPacket)>,
}

impl Fifo {
    pub fn new(limit: QueueLimit) -> Fifo {
        Fifo { limit, bytes: 0, queue: VecDeque::new() }
    }
    #[inline]
    pub fn has_room(&self, size: u32) -> bool {
        has_room(self.limit, self.queue.len() as u64, self.bytes, size)
    }
    #[inline]
    pub fn push(&mut self, now: Time, packet: QueuedPacket) {
        self.bytes += u64::from(packet.size);
        self.queue.push_back((now, packet));
    }
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, QueuedPacket)> {
        let head = self.queue.pop_front()?;
        self.bytes -= u64::from(head.1.size);
        Some(head)
    }
    /// Takes out the packet in place `at`, counted from the head.
    pub fn remove(&mut self, at: usize) -> Option<QueuedPacket> {
        let (_, packet) = self.queue.remove(at)?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.queue.len()
    }
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// First in, first out, with a limited room.
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
