//! Consecutive numbers for the receiver side: only packets that count for it have one.

use std::collections::VecDeque;

/// Uncounted ranges that are remembered, so that reordered packets get the right number.
const REMEMBERED: usize = 16;

/// Numbers `[from, to)` do not count; `offset` is the total of uncounted ones below `to`.
#[derive(Clone, Copy, Debug)]
struct UncountedRange {
    from: u64,
    to: u64,
    offset: u64,
}

/// Maps packet numbers to the receiver side's.
#[derive(Debug, Default)]
pub(super) struct Numbering(VecDeque<UncountedRange>);

impl Numbering {
    /// The numbers `[from, to)` do not count; they are above all earlier such ranges.
    pub fn leave_out(&mut self, from: u64, to: u64) {
        let offset = self.0.back().map_or(0, |s| s.offset);
        let from = from.max(self.0.back().map_or(0, |s| s.to));
        if from >= to {
            return;
        }
        if let Some(last) = self.0.back_mut().filter(|s| s.to == from) {
            last.to = to;
            last.offset = offset + (to - from);
            return;
        }
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(UncountedRange { from, to, offset: offset + (to - from) });
    }

    /// The consecutive number of a packet; for one that does not count, that of the last counted
    /// packet below it.
    #[inline]
    pub fn of(&self, number: u64) -> u64 {
        match self.0.back() {
            None => number,
            Some(last) if number >= last.to => number - last.offset,
            Some(_) => self.search(number),
        }
    }
    fn search(&self, number: u64) -> u64 {
        let Some(step) = self.0.iter().rev().find(|s| number >= s.from) else {
            let before = self.0.front().map_or(0, |s| s.offset - (s.to - s.from));
            return number.saturating_sub(before);
        };
        if number >= step.to {
            return number - step.offset;
        }
        (step.to - step.offset).saturating_sub(1)
    }
    /// Whether a number counts, as far as it is remembered.
    pub fn counts(&self, number: u64) -> bool {
        self.0.iter().all(|s| number < s.from || number >= s.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Counted packets have consecutive numbers, uncounted ones repeat the last.
        #[test]
        fn counted_packets_have_rising_numbers_without_holes(steps in prop::collection::vec((1u64..9, 0u64..4), 1..REMEMBERED)) {
            let mut numbering = Numbering::default();
            let mut at = 0;
            let mut out = Vec::new();
            for (counted, not) in steps {
                at += counted;
                numbering.leave_out(at, at + not);
                out.extend(at..at + not);
                at += not;
            }
            let counted: Vec<u64> = (0..at + 5).filter(|n| !out.contains(n)).collect();
            for (number, packet) in counted.iter().enumerate() {
                prop_assert!(numbering.counts(*packet));
                prop_assert_eq!(numbering.of(*packet), number as u64);
            }
            for packet in out {
                prop_assert!(!numbering.counts(packet));
                let before = counted.iter().filter(|n| **n < packet).count() as u64;
                prop_assert_eq!(numbering.of(packet), before - 1);
            }
        }
    }
}
