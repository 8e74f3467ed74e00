//! Sorted disjoint ranges of numbers: a receiver's segments out of order, and a sender's segments acknowledged by SACK.
//!
//! Work per change grows with the number of holes that lie above the change, never with the length of the ranges; new
//! data usually extends the last one.

use std::collections::VecDeque;

/// Sorted, disjoint, non-adjacent ranges `[from, to)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(VecDeque<(u64, u64)>);

impl Ranges {
    /// Whether there are no ranges.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Number of ranges.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// The ranges in ascending order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }
    /// Removes all ranges.
    pub fn clear(&mut self) {
        self.0.clear();
    }
    /// The range that contains `n`.
    #[inline]
    pub fn find(&self, n: u64) -> Option<(u64, u64)> {
        match self.0.back() {
            Some(&(from, to)) if from <= n => return (n < to).then_some((from, to)),
            _ => {}
        }
        let i = self.0.partition_point(|r| r.1 <= n);
        self.0.get(i).copied().filter(|r| r.0 <= n)
    }
    /// Start of the first range that begins above `n`.
    #[inline]
    pub fn next_start(&self, n: u64) -> Option<u64> {
        let i = self.0.partition_point(|r| r.0 <= n);
        self.0.get(i).map(|r| r.0)
    }
    /// Adds `[from, to)`, calling `fresh` for each piece that was not there before.
    #[inline]
    pub fn insert(&mut self, from: u64, to: u64, mut fresh: impl FnMut(u64, u64)) {
        if from >= to {
            return;
        }
        if let Some(last) = self.0.back_mut() {
            if from >= last.0 && from <= last.1 {
                if to > last.1 {
                    fresh(last.1, to);
                    last.1 = to;
                }
                return;
            }
            if from > last.1 {
                fresh(from, to);
                self.0.push_back((from, to));
                return;
            }
        } else {
            fresh(from, to);
            self.0.push_back((from, to));
            return;
        }
        self.insert_inside(from, to, &mut fresh);
    }

    fn insert_inside(&mut self, from: u64, to: u64, fresh: &mut impl FnMut(u64, u64)) {
        // Ranges first..last touch or overlap [from, to).
        let first = self.0.partition_point(|r| r.1 < from);
        let last = self.0.partition_point(|r| r.0 <= to);
        let mut low = from;
        let mut high = to;
        let mut at = from;
        for i in first..last {
            let (a, b) = self.0[i];
            if a > at {
                fresh(at, a.min(to));
            }
            at = at.max(b);
            low = low.min(a);
            high = high.max(b);
        }
        if at < to {
            fresh(at, to);
        }
        if first == last {
            self.0.insert(first, (low, high));
        } else {
            self.0[first] = (low, high);
            self.0.drain(first + 1..last);
        }
    }

    /// Removes all numbers below `n`.
    #[inline]
    pub fn trim_below(&mut self, n: u64) {
        while let Some(first) = self.0.front_mut() {
            if first.1 <= n {
                self.0.pop_front();
            } else {
                first.0 = first.0.max(n);
                break;
            }
        }
    }
    /// Removes the first range if it begins at or below `n`; returns its end.
    #[inline]
    pub fn take_from(&mut self, n: u64) -> Option<u64> {
        let &(from, to) = self.0.front()?;
        if from > n {
            return None;
        }
        self.0.pop_front();
        Some(to)
    }
    /// The highest number of a report of at most `ranges` ranges that covers `late`; `highest` if that report does.
    pub fn top_of_report(&self, highest: u64, late: u64, ranges: usize) -> u64 {
        let first = self.0.partition_point(|r| r.1 <= late);
        match self.0.get(first) {
            Some(&(from, to)) if from <= late && self.0.len() - first > ranges => to - 1,
            _ => highest,
        }
    }
    /// The largest member that has at least `k` members at or above it.
    #[inline]
    pub fn kth_from_top(&self, k: u64) -> Option<u64> {
        let mut left = k;
        for &(from, to) in self.0.iter().rev() {
            if to - from >= left {
                return Some(to - left);
            }
            left -= to - from;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Ranges behave as a set of numbers.
        #[test]
        fn ranges_are_a_set(ops in prop::collection::vec((0u64..60, 1u64..9, any::<bool>()), 1..60)) {
            let mut ranges = Ranges::default();
            let mut set: BTreeSet<u64> = BTreeSet::new();
            for (from, length, trim) in ops {
                if trim && length == 1 {
                    ranges.trim_below(from);
                    set = set.split_off(&from);
                } else {
                    let mut new = Vec::new();
                    ranges.insert(from, from + length, |a, b| new.extend(a..b));
                    let expected: Vec<u64> = (from..from + length).filter(|n| set.insert(*n)).collect();
                    prop_assert_eq!(new, expected);
                }
                let flat: Vec<u64> = ranges.iter().flat_map(|(a, b)| a..b).collect();
                prop_assert_eq!(&flat, &set.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
                prop_assert_eq!(ranges.kth_from_top(3), set.iter().rev().nth(2).copied());
                for n in 0..70 {
                    prop_assert_eq!(ranges.find(n).is_some(), set.contains(&n));
                    let starts = |m: &&u64| **m > n && !set.contains(&(**m - 1));
                    prop_assert_eq!(ranges.next_start(n), set.iter().find(starts).copied());
                }
            }
        }
    }
}
