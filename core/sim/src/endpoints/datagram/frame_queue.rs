//! Parts of frames that wait to be sent: lower layers first, each layer in the order of writing.

use crate::endpoints::interface::FramePart;
use narrows_base::{Duration, Time};
use narrows_congestion::layers::MAX_LAYERS;
use std::collections::VecDeque;

/// Limit on waiting parts of one layer: beyond it the oldest is dropped, so that memory is bounded.
const MAX_WAITING: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct QueuedPart {
    tag: u64,
    expires: Time,
    left: u32,
}

/// One queue for each layer.
#[derive(Debug, Default)]
pub(crate) struct FrameQueue {
    layers: [VecDeque<QueuedPart>; MAX_LAYERS],
    /// Whether the first part of the layer was partly sent, so that it does not expire.
    begun: [bool; MAX_LAYERS],
    bytes: u64,
    pub expired: u64,
}

impl FrameQueue {
    /// `expiry` is the flow's limit on a write's waiting time; zero for no limit.
    pub fn push(&mut self, now: Time, part: &FramePart, expiry: Duration) {
        if part.bytes == 0 {
            return;
        }
        let layer = usize::from(part.layer).min(MAX_LAYERS - 1);
        let own = if expiry == Duration::ZERO { Time::NEVER } else { now + expiry };
        let part = QueuedPart { tag: part.tag(), expires: part.expires.min(own), left: part.bytes };
        self.layers[layer].push_back(part);
        self.bytes += u64::from(part.left);
        if self.layers[layer].len() > MAX_WAITING {
            self.drop_one(layer);
        }
    }
    fn drop_one(&mut self, layer: usize) {
        if let Some(part) = self.layers[layer].remove(usize::from(self.begun[layer])) {
            self.bytes -= u64::from(part.left);
            self.expired += 1;
        }
    }
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
    /// Takes at most `max` bytes for the next packet; returns the part's tag and the number of bytes.
    pub fn take(&mut self, now: Time, max: u32) -> Option<(u64, u32)> {
        for layer in 0..MAX_LAYERS {
            let begun = usize::from(self.begun[layer]);
            while self.layers[layer].get(begun).is_some_and(|p| p.expires < now) {
                self.drop_one(layer);
            }
            let Some(part) = self.layers[layer].front_mut() else { continue };
            let bytes = part.left.min(max);
            part.left -= bytes;
            let tag = part.tag;
            let left = part.left;
            self.bytes -= u64::from(bytes);
            self.begun[layer] = left > 0;
            if left == 0 {
                self.layers[layer].pop_front();
            }
            return Some((tag, bytes));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn part(frame: u64, layer: u8, bytes: u32, expires_ms: u64) -> FramePart {
        FramePart { frame, layer, bytes, playout: at(expires_ms), expires: at(expires_ms) }
    }

    #[test]
    fn lower_layers_interrupt_parts_of_higher_ones() {
        let mut q = FrameQueue::default();
        q.push(at(0), &part(0, 1, 1500, 900), Duration::ZERO);
        let high = part(0, 1, 0, 0).tag();
        assert_eq!(q.take(at(1), 1000), Some((high, 1000)));
        q.push(at(2), &part(1, 0, 300, 900), Duration::ZERO);
        assert_eq!((q.bytes(), q.is_empty()), (800, false));
        assert_eq!(q.take(at(3), 1000), Some((part(1, 0, 0, 0).tag(), 300)));
        assert_eq!(q.take(at(3), 1000), Some((high, 500)));
        assert_eq!((q.take(at(3), 1000), q.is_empty()), (None, true));
    }

    #[test]
    fn unsent_parts_expire_but_begun_ones_do_not() {
        let mut q = FrameQueue::default();
        for frame in 0..3 {
            q.push(at(0), &part(frame, 0, 1500, 100 + frame), Duration::ZERO);
        }
        assert!(q.take(at(1), 1000).is_some());
        assert_eq!(q.take(at(102), 1000), Some((part(0, 0, 0, 0).tag(), 500)));
        assert_eq!(q.take(at(102), 1000), Some((part(2, 0, 0, 0).tag(), 1000)));
        assert_eq!(q.expired, 1);
        let mut q = FrameQueue::default();
        q.push(at(0), &part(0, 0, 10, 1000), Duration::from_millis(50));
        assert_eq!((q.take(at(51), 1000), q.expired), (None, 1));
        for frame in 0..5000 {
            q.push(at(0), &part(frame, 2, 1, 9000), Duration::ZERO);
        }
        assert_eq!((q.bytes(), q.expired), (MAX_WAITING as u64, 1 + 5000 - MAX_WAITING as u64));
    }
}
