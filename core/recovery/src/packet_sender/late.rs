//! Packets declared lost are remembered for a round trip: if one arrives after all, the loss was spurious. Packet
//! numbers are never reused, so its arrival proves that (RFC 3522 needs timestamps for this, RFC 8985 the receiver's
//! report of duplicates).

use super::sent_packet::SentPacket;
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Limit on remembered packets.
const MAX_REMEMBERED: usize = 256;

/// A packet that was declared lost.
#[derive(Debug)]
struct LostPacket<L> {
    seq: u64,
    sent: Time,
    payload: L,
    bytes: u16,
    radio: bool,
    /// It was sent directly after one that met no long queue.
    short_queue: bool,
    /// When it was declared lost.
    found: Time,
    arrived: bool,
}

/// A packet that arrived after it was declared lost.
#[derive(Debug)]
pub(super) struct LatePacket<'a, L> {
    pub seq: u64,
    pub sent: Time,
    pub payload: &'a L,
    pub bytes: u16,
    pub radio: bool,
    pub short_queue: bool,
}

/// Packets that may still arrive late, by ascending number.
#[derive(Debug)]
pub(super) struct LostPackets<L> {
    packets: VecDeque<LostPacket<L>>,
    /// The highest number that is finally lost, plus one.
    gone: u64,
}

impl<L> LostPackets<L> {
    pub fn new() -> LostPackets<L> {
        LostPackets { packets: VecDeque::new(), gone: 0 }
    }
    /// The lowest number that may still arrive late.
    #[inline]
    pub fn lowest(&self) -> Option<u64> {
        self.packets.front().map(|p| p.seq)
    }
    /// The highest number that is finally lost, plus one.
    pub fn gone(&self) -> u64 {
        self.gone
    }
    /// Releases unused memory.
    pub fn release_memory(&mut self) {
        self.packets.shrink_to_fit();
    }
    /// Heap memory, in bytes.
    pub fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<LostPacket<L>>()
    }

    /// Packet `seq`, above all earlier ones, is declared lost.
    pub fn push(&mut self, now: Time, seq: u64, packet: SentPacket<L>) {
        if self.packets.len() >= MAX_REMEMBERED {
            self.pop();
        }
        let SentPacket { sent, payload, bytes, radio, short_queue, .. } = packet;
        self.packets.push_back(LostPacket {
            seq,
            sent,
            payload,
            bytes,
            radio,
            short_queue,
            found: now,
            arrived: false,
        });
    }
    fn pop(&mut self) {
        if let Some(p) = self.packets.pop_front()
            && !p.arrived
        {
            self.gone = p.seq + 1;
        }
    }
    /// Packets below `lowest` are finally lost.
    #[inline]
    pub fn forget_below(&mut self, lowest: u64) {
        while self.packets.front().is_some_and(|p| p.seq < lowest) {
            self.pop();
        }
    }
    /// Packets declared lost longer ago than `longest` are finally lost.
    #[inline]
    pub fn forget(&mut self, now: Time, longest: Duration) {
        let over = |p: &LostPacket<L>| p.arrived || now.since(p.found) > longest;
        while self.packets.front().is_some_and(over) {
            self.pop();
        }
        if self.packets.is_empty() && self.packets.capacity() > MAX_REMEMBERED / 4 {
            self.packets = VecDeque::new();
        }
    }
    pub fn clear(&mut self) {
        self.packets.clear();
    }

    /// `[from, to)` arrived: calls `news` for each of them that had been declared lost.
    #[inline]
    pub fn take_arrived(
        &mut self,
        (from, to): (u64, u64),
        mut news: impl FnMut(LatePacket<'_, L>),
    ) {
        if self.packets.back().is_none_or(|p| p.seq < from) {
            return;
        }
        let start = self.packets.partition_point(|p| p.seq < from);
        for p in self.packets.range_mut(start..).take_while(|p| p.seq < to) {
            if !std::mem::replace(&mut p.arrived, true) {
                news(LatePacket {
                    seq: p.seq,
                    sent: p.sent,
                    payload: &p.payload,
                    bytes: p.bytes,
                    radio: p.radio,
                    short_queue: p.short_queue,
                });
            }
        }
    }
}
