//! Reassembly of a stream from ranges of bytes.

use narrows_recovery::ranges::Ranges;

/// Limit on ranges. A packet that would begin another one is refused as if it had been lost, so that memory is bounded
/// whatever a peer sends.
const MAX_RANGES: usize = 1 << 14;

/// Received bytes of a stream.
#[derive(Debug, Default)]
pub(in crate::endpoints) struct Assembly {
    /// All bytes below have arrived.
    next: u64,
    /// Bytes received above it.
    held: Ranges,
    held_bytes: u64,
}

impl Assembly {
    /// Whether `[offset, offset + length)` can be stored.
    #[inline]
    pub fn has_room(&self, offset: u64, length: u32) -> bool {
        offset.checked_add(u64::from(length)).is_some()
            && (self.held.len() < MAX_RANGES || offset <= self.next)
    }
    /// Stores a range; returns the number of new bytes.
    #[inline]
    pub fn take(&mut self, offset: u64, length: u32) -> u64 {
        let to = offset.saturating_add(u64::from(length));
        if offset <= self.next && self.held.is_empty() {
            let fresh = to.saturating_sub(self.next);
            self.next += fresh;
            return fresh;
        }
        let mut fresh = 0;
        self.held.insert(offset.max(self.next), to, |a, b| fresh += b - a);
        self.held_bytes += fresh;
        if let Some(end) = self.held.take_from(self.next) {
            self.held_bytes -= end - self.next;
            self.next = end;
        }
        fresh
    }
    /// Length of the in-order prefix in bytes.
    #[inline]
    pub fn in_order(&self) -> u64 {
        self.next
    }
    /// Bytes that wait for earlier ones.
    #[inline]
    pub fn held(&self) -> u64 {
        self.held_bytes
    }
    /// Number of distinct bytes received, in order or not.
    pub fn received(&self) -> u64 {
        self.next + self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// In any order and with duplicates, the counts of in-order and distinct bytes are right.
        #[test]
        fn bytes_are_counted_once(sent_frames in prop::collection::vec((0u64..60, 0u32..12), 1..60)) {
            let mut a = Assembly::default();
            let mut set = BTreeSet::new();
            for (offset, length) in sent_frames {
                let fresh = (offset..offset + u64::from(length)).filter(|b| set.insert(*b)).count();
                prop_assert_eq!(a.take(offset, length), fresh as u64);
                let in_order = (0..).find(|b| !set.contains(b)).unwrap();
                prop_assert_eq!((a.in_order(), a.received()), (in_order, set.len() as u64));
            }
        }
    }

    #[test]
    fn a_peer_that_sends_holes_only_is_bounded() {
        let mut a = Assembly::default();
        let mut refused = 0u64;
        for i in 0..2 * MAX_RANGES as u64 {
            let offset = 1 + 3 * i;
            if a.has_room(offset, 1) {
                a.take(offset, 1);
            } else {
                refused += 1;
            }
        }
        assert_eq!((a.held.len(), refused), (MAX_RANGES, MAX_RANGES as u64));
        assert!(a.has_room(0, 1) && !a.has_room(u64::MAX, 2));
    }
}
