//! Copies of the frames of recent packets. The sender makes repair packets from them, the receiver rebuilds lost
//! packets.

use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Most packets that one repair packet covers, and the most numbers that they span.
pub const MAX_GROUP: u64 = 128;

/// Upper limit on the bytes kept, for packets of any size.
const MAX_BYTES: usize = MAX_GROUP as usize * 1500;

/// The frames of one packet.
#[derive(Debug)]
pub(super) struct KeptPacket {
    pub number: u64,
    /// Time of sending or arrival.
    pub at: Time,
    pub frames: Box<[u8]>,
}

/// Packets in ascending order of their numbers.
#[derive(Default, Debug)]
pub(super) struct KeptPackets {
    packets: VecDeque<KeptPacket>,
    bytes: usize,
}

impl KeptPackets {
    /// Keeps a packet's frames, given in two pieces, and drops the lowest packets beyond the limits.
    pub fn keep(&mut self, now: Time, number: u64, [front, tail]: [&[u8]; 2]) {
        let mut frames = Vec::with_capacity(front.len() + tail.len());
        frames.extend_from_slice(front);
        frames.extend_from_slice(tail);
        let place = self.packets.partition_point(|p| p.number < number);
        if self.packets.get(place).is_some_and(|p| p.number == number) {
            return;
        }
        self.bytes += frames.len();
        let kept = KeptPacket { number, at: now, frames: frames.into_boxed_slice() };
        self.packets.insert(place, kept);
        while self.packets.len() > MAX_GROUP as usize || self.bytes > MAX_BYTES {
            self.drop_lowest();
        }
    }
    fn drop_lowest(&mut self) {
        let dropped = self.packets.pop_front();
        self.bytes -= dropped.map_or(0, |p| p.frames.len());
    }
    /// Drops the lowest packets for which `is_useless` returns true, up to the first for which it does not.
    pub fn drop_while(&mut self, is_useless: impl Fn(&KeptPacket) -> bool) {
        while self.packets.front().is_some_and(&is_useless) {
            self.drop_lowest();
        }
    }
    /// Drops the lowest packets that are older than `age`.
    pub fn drop_older(&mut self, now: Time, age: Duration) {
        self.drop_while(|p| now.since(p.at) > age);
    }
    pub fn clear(&mut self) {
        *self = KeptPackets::default();
    }
    /// The frames of a packet; `None` if they are not kept.
    pub fn get(&self, number: u64) -> Option<&[u8]> {
        let place = self.packets.binary_search_by_key(&number, |p| p.number).ok()?;
        self.packets.get(place).map(|p| &*p.frames)
    }
    pub fn iter(&self) -> impl Iterator<Item = &KeptPacket> {
        self.packets.iter()
    }
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.bytes + self.packets.capacity() * size_of::<KeptPacket>()
    }
}
