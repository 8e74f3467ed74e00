//! Reassembly: data received behind a gap, in pieces by offset. Memory is proportional to the bytes received, not to
//! their offsets.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Data that continue a piece join it up to this length.
const MAX_PIECE: usize = 64 << 10;
/// Neighbours with at most this length together become one piece, so that single bytes do not remain single pieces.
/// Longer ones would be copied repeatedly.
const MAX_MERGED: usize = 1024;
/// Memory of a piece beside its bytes: its share of the map's nodes and of the allocator.
const PIECE_OVERHEAD: usize = 96;

#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Pieces by offset; not empty and without overlap.
    sent_frames: BTreeMap<u64, Vec<u8>>,
}

impl Reassembly {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sent_frames.is_empty()
    }
    pub fn len(&self) -> usize {
        self.sent_frames.len()
    }
    pub fn clear(&mut self) {
        self.sent_frames = BTreeMap::new();
    }
    /// Offset of the first piece.
    pub fn start(&self) -> Option<u64> {
        self.sent_frames.keys().next().copied()
    }
    /// End of the piece that contains this offset.
    pub fn end_around(&self, offset: u64) -> Option<u64> {
        let (start, piece) = self.sent_frames.range(..=offset).next_back()?;
        Some(start + piece.len() as u64).filter(|end| *end > offset)
    }
    /// Takes the piece that begins at `start`.
    pub fn take(&mut self, start: u64) -> Option<Vec<u8>> {
        self.sent_frames.remove(&start)
    }

    /// Stores the parts of the data that are not stored yet.
    pub fn insert(&mut self, from: u64, mut data: &[u8]) {
        let mut at = from;
        while !data.is_empty() {
            let below = self.sent_frames.range(..=at).next_back();
            let below = below.map(|(start, piece)| (*start, *start + piece.len() as u64));
            let next =
                self.sent_frames.range((Excluded(at), Unbounded)).next().map(|(start, _)| *start);
            let (known, free) = match below {
                Some((_, end)) if end > at => (end - at, 0),
                _ => (0, next.map_or(u64::MAX, |next| next - at)),
            };
            let n = known.max(free).min(data.len() as u64) as usize;
            let (front, rest) = data.split_at(n);
            if known == 0 {
                let start = self.put(below.filter(|b| b.1 == at).map(|b| b.0), at, front);
                self.merge(start, at + n as u64);
            }
            at += n as u64;
            data = rest;
        }
    }

    /// Stores data without overlap. `below` is the start of a piece that ends at `at`. Returns the start of the piece
    /// with the data.
    fn put(&mut self, below: Option<u64>, at: u64, data: &[u8]) -> u64 {
        if let Some(start) = below
            && let Some(piece) = self.sent_frames.get_mut(&start)
            && piece.len() + data.len() <= MAX_PIECE
        {
            piece.extend_from_slice(data);
            return start;
        }
        self.sent_frames.insert(at, data.to_vec());
        at
    }

    /// Joins two short neighbours.
    fn merge(&mut self, start: u64, next: u64) {
        let Some(behind) = self.sent_frames.get(&next).map(Vec::len) else { return };
        let Some(piece) =
            self.sent_frames.get_mut(&start).filter(|p| p.len() + behind <= MAX_MERGED)
        else {
            return;
        };
        piece.reserve_exact(behind);
        if let Some(behind) = self.sent_frames.remove(&next)
            && let Some(piece) = self.sent_frames.get_mut(&start)
        {
            piece.extend_from_slice(&behind);
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.sent_frames.values().map(|piece| piece.capacity() + PIECE_OVERHEAD).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn byte(at: u64) -> u8 {
        (at * 7 + 3) as u8
    }
    fn bytes(from: u64, n: usize) -> Vec<u8> {
        (from..from + n as u64).map(byte).collect()
    }

    proptest! {
        /// Pieces contain each received byte once, at its offset.
        #[test]
        fn pieces_hold_the_arrived_bytes(ops in prop::collection::vec((0u64..6000, 1usize..900), 1..80)) {
            let mut ahead = Reassembly::default();
            let mut came = vec![false; 7000];
            for (from, n) in ops {
                ahead.insert(from, &bytes(from, n));
                came[from as usize..from as usize + n].fill(true);
                let mut held = vec![false; 7000];
                for (start, piece) in &ahead.sent_frames {
                    prop_assert!(!piece.is_empty() && *piece == bytes(*start, piece.len()));
                    let place = &mut held[*start as usize..*start as usize + piece.len()];
                    prop_assert!(place.iter().all(|h| !h), "pieces overlap");
                    place.fill(true);
                }
                prop_assert_eq!(&held, &came);
            }
        }
    }

    #[test]
    fn single_byte_arrivals_are_joined() {
        let mut ahead = Reassembly::default();
        let orders: [Vec<u64>; 3] = [
            (0..20_000).collect(),
            (0..20_000).rev().collect(),
            (0..10_000).map(|n| 2 * n).chain((0..10_000).map(|n| 2 * n + 1)).collect(),
        ];
        for order in orders {
            ahead.clear();
            for at in order {
                ahead.insert(at, &[byte(at)]);
            }
            assert!(ahead.len() <= 42 && ahead.memory() <= 60_000, "{} pieces", ahead.len());
        }
    }
}
