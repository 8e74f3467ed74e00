//! A FIFO with a limit: the whole of drop-tail, and a part of other disciplines.

use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::Time;
use std::collections::VecDeque;

/// Whether one more packet of `size` may wait.
#[inline]
pub fn has_room(limit: QueueLimit, packets: u64, bytes: u64, size: u32) -> bool {
    limit.admits(packets.saturating_add(1), bytes.saturating_add(u64::from(size)))
}

/// Packets in order of arrival, each with its arrival time.
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
    /// When the packet at the head arrived.
    pub fn first(&self) -> Option<Time> {
        self.queue.front().map(|(arrived, _)| *arrived)
    }
    /// Takes out the packet at position `at`, counted from the head.
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
