//! Datagrams that are longer than a message: sent in parts, each of them a message.
//!
//! ```text
//! message: | flow (4), its highest bit set | datagram's number (2) | part (1) | parts (1) | bytes |
//! ```
//!
//! Parts count from 0. If one of them is lost, so is the datagram. The receiver keeps at most [`MAX_WAITING`]
//! incomplete datagrams of a connection, with at most [`MAX_BYTES`] in total, for [`LIFETIME`]; the oldest are dropped
//! first.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Maximum size of a datagram in bytes: UDP's length field.
pub const MAX_DATAGRAM: usize = 65_535;
/// Length of the header after the flow's number, in bytes.
pub const HEAD: usize = 4;
/// Maximum number of incomplete datagrams of a connection.
pub const MAX_WAITING: usize = 64;
/// Maximum number of bytes in all incomplete datagrams of a connection: four of the longest.
pub const MAX_BYTES: usize = 4 * (MAX_DATAGRAM + 255 * OVERHEAD);
/// Time that a part waits for the others; at the sender, parts expire within half a second.
pub const LIFETIME: Duration = Duration::from_secs(2);
/// Memory overhead of a part in bytes: an entry of a map.
const OVERHEAD: usize = 64;

/// The parts of a datagram, as messages with at most `room` bytes after the flow's number. Empty if 255 parts do not
/// suffice.
pub fn split(datagram: &[u8], number: u16, room: usize) -> impl Iterator<Item = Vec<u8>> {
    let count = datagram.len().div_ceil(room.saturating_sub(HEAD).max(1)).max(1);
    let count = u8::try_from(count).ok().filter(|_| room > HEAD).unwrap_or(0);
    let pieces = datagram.chunks(datagram.len().div_ceil(usize::from(count).max(1)).max(1));
    let [high, low] = number.to_be_bytes();
    // Chunks of equal length may be fewer than computed.
    let count = u8::try_from(pieces.len()).ok().filter(|_| count > 0).unwrap_or(0);
    (0..count).zip(pieces).map(move |(part, piece)| [&[high, low, part, count], piece].concat())
}

/// A datagram with missing parts.
#[derive(Debug)]
struct Incomplete {
    flow: u32,
    number: u16,
    count: u8,
    begun: Instant,
    parts: BTreeMap<u8, Vec<u8>>,
    bytes: usize,
}

/// Incomplete datagrams, ordered by age, the oldest first.
#[derive(Debug, Default)]
pub struct PartialDatagrams {
    waiting: VecDeque<Incomplete>,
    bytes: usize,
}

impl PartialDatagrams {
    /// Adds a part. Returns the datagram if it is complete now; an invalid part is dropped.
    pub fn join(&mut self, now: Instant, flow: u32, message: &[u8]) -> Option<Vec<u8>> {
        let ([high, low, part, count], piece) = message.split_first_chunk::<HEAD>()?;
        let number = u16::from_be_bytes([*high, *low]);
        if part >= count || piece.is_empty() || piece.len() > MAX_DATAGRAM {
            return None;
        }
        while self.waiting.front().is_some_and(|old| now.duration_since(old.begun) > LIFETIME) {
            self.drop_oldest();
        }
        let same = |one: &Incomplete| (one.flow, one.number, one.count) == (flow, number, *count);
        let at = self.waiting.iter().position(same).unwrap_or_else(|| {
            let parts = BTreeMap::new();
            let bytes = 0;
            self.waiting.push_back(Incomplete {
                flow,
                number,
                count: *count,
                begun: now,
                parts,
                bytes,
            });
            self.waiting.len() - 1
        });
        let one = self.waiting.get_mut(at)?;
        if one.parts.contains_key(part) {
            return None;
        }
        one.parts.insert(*part, piece.to_vec());
        one.bytes += piece.len();
        self.bytes += piece.len() + OVERHEAD;
        if one.parts.len() == usize::from(*count) || one.bytes > MAX_DATAGRAM {
            let one = self.waiting.remove(at)?;
            self.bytes -= one.cost();
            let whole: Vec<u8> = one.parts.into_values().flatten().collect();
            return (whole.len() <= MAX_DATAGRAM).then_some(whole);
        }
        while self.waiting.len() > MAX_WAITING || self.bytes > MAX_BYTES {
            self.drop_oldest();
        }
        None
    }

    fn drop_oldest(&mut self) {
        if let Some(old) = self.waiting.pop_front() {
            self.bytes -= old.cost();
        }
    }
}

impl Incomplete {
    fn cost(&self) -> usize {
        self.bytes + self.parts.len() * OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_join_in_any_order(datagram in prop::collection::vec(any::<u8>(), 1..5000), room in 40usize..1400, seed: u64) {
            let mut parts: Vec<_> = split(&datagram, 7, room).collect();
            prop_assert!(parts.iter().all(|part| part.len() <= room));
            let turn = seed as usize % parts.len();
            parts.rotate_left(turn);
            let now = Instant::now();
            let mut waiting = PartialDatagrams::default();
            let (last, others) = parts.split_last().unwrap();
            for part in others {
                prop_assert_eq!(waiting.join(now, 1, part), None);
                prop_assert_eq!(waiting.join(now, 1, part), None, "a copy is no other part");
                prop_assert_eq!(waiting.join(now, 2, part), None, "of another flow");
            }
            prop_assert_eq!(waiting.join(now, 1, last), Some(datagram));
        }

        #[test]
        fn incomplete_datagrams_are_bounded(messages in prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), 0usize..9000), 0..600)) {
            let now = Instant::now();
            let mut waiting = PartialDatagrams::default();
            for (number, part, count, length) in messages {
                let [high, low] = number.to_be_bytes();
                let message = [&[high, low, part, count], &vec![1; length][..]].concat();
                let whole = waiting.join(now, 1, &message);
                prop_assert!(whole.is_none_or(|whole| whole.len() <= MAX_DATAGRAM));
                prop_assert!(waiting.waiting.len() <= MAX_WAITING && waiting.bytes <= MAX_BYTES);
                prop_assert_eq!(waiting.bytes, waiting.waiting.iter().map(Incomplete::cost).sum::<usize>());
            }
        }
    }

    #[test]
    fn a_lost_part_costs_its_datagram_only_and_is_forgotten() {
        let now = Instant::now();
        let mut waiting = PartialDatagrams::default();
        let parts: Vec<_> = split(&[1; 100], 5, 64).collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(waiting.join(now, 1, &parts[0]), None);
        let later = now + LIFETIME + Duration::from_millis(1);
        assert_eq!(waiting.join(later, 1, &parts[1]), None, "the first part is too old");
        assert_eq!(waiting.join(later, 1, &parts[0]), Some(vec![1; 100]));
        assert_eq!((waiting.waiting.len(), waiting.bytes), (0, 0));
        assert_eq!(split(&[3; 1000], 1, HEAD).count(), 0, "no room");
        assert_eq!(split(&[3; 1000], 1, HEAD + 3).count(), 0, "more than 255 parts");
        assert_eq!(split(&[3; MAX_DATAGRAM], 1, 1200).count(), 55);
    }
}
