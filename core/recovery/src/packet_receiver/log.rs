//! Arrived and missing packets, as reports list them.

use crate::ranges::Ranges;
use narrows_base::PacketRun;

/// Limit on the ranges kept.
const MAX_RANGES: usize = 256;

/// The numbers of packets that arrived. Connections keep each packet's nonce beside its number, simulations keep no
/// nonces.
pub trait ReceivedNumbers: Default {
    /// The data kept per packet.
    type Nonce: Copy;
    /// Adds a packet that did not arrive before.
    fn insert(&mut self, number: u64, nonce: Self::Nonce);
    /// Forgets lower numbers.
    fn forget_below(&mut self, number: u64);
    /// The received numbers.
    fn ranges(&self) -> &Ranges;
}

impl ReceivedNumbers for Ranges {
    type Nonce = ();

    #[inline]
    fn insert(&mut self, number: u64, (): ()) {
        Ranges::insert(self, number, number + 1, |_, _| ());
    }
    #[inline]
    fn forget_below(&mut self, number: u64) {
        self.trim_below(number);
    }
    #[inline]
    fn ranges(&self) -> &Ranges {
        self
    }
}

/// A new packet's position among the earlier ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogPosition {
    /// The highest number received before, plus one.
    pub next: u64,
    /// The number that would have left no gap: above `next` if numbers in between do not count.
    pub expected: u64,
    /// The lowest of the uncounted numbers directly below the packet's; the packet's own number without any.
    pub uncounted_from: u64,
}

/// Received and missing packet numbers.
#[derive(Debug, Default)]
pub(super) struct ArrivalLog<R> {
    /// No numbers below the floor.
    received: R,
    /// Missing numbers that are no losses: packets that do not count, and numbers that the peer skipped.
    uncounted: Ranges,
    /// Reports do not cover lower numbers.
    floor: u64,
    /// The highest received number plus one.
    next: u64,
}

impl<R: ReceivedNumbers> ArrivalLog<R> {
    /// The highest received number plus one.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Reports do not cover lower numbers.
    #[inline]
    pub fn floor(&self) -> u64 {
        self.floor
    }
    /// The received numbers.
    pub fn received(&self) -> &R {
        &self.received
    }

    /// A new packet arrived. All outcomes below `least_unacked` are known to the sender; `uncounted` numbers directly
    /// below the packet's do not count.
    #[inline]
    pub fn on_arrival(
        &mut self,
        number: u64,
        nonce: R::Nonce,
        uncounted: u64,
        least_unacked: u64,
    ) -> LogPosition {
        let next = self.next;
        // Numbers below 0 or the floor cannot be missing: the lowest one remaining is the expected one.
        let uncounted = uncounted.min(number.saturating_sub(self.floor));
        let expected = if number > next { number.min(next + uncounted) } else { next };
        // Lower numbers have an outcome at the sender: a report that listed one would reach below the sender's packet
        // records.
        if number >= self.floor {
            self.received.insert(number, nonce);
        }
        if uncounted > 0 {
            self.leave_out(number - uncounted, number);
        }
        self.next = next.max(number + 1);
        if least_unacked > self.floor {
            self.forget_below(least_unacked.min(self.next));
        }
        while self.received.ranges().len() > MAX_RANGES {
            let Some((_, to)) = self.received.ranges().iter().next() else { break };
            self.forget_below(to);
        }
        LogPosition { next, expected, uncounted_from: number - uncounted }
    }

    /// Packet `to` shows that `[from, to)` do not count.
    #[cold]
    fn leave_out(&mut self, from: u64, to: u64) {
        // If those packets have arrived, there is no gap to remember.
        if self.received.ranges().find(to).is_none_or(|range| range.0 > from) {
            self.uncounted.insert(from, to, |_, _| ());
        }
        while self.uncounted.len() > MAX_RANGES {
            let Some((_, to)) = self.uncounted.iter().next() else { break };
            self.uncounted.trim_below(to);
        }
    }

    #[inline]
    fn forget_below(&mut self, number: u64) {
        self.floor = self.floor.max(number);
        self.received.forget_below(self.floor);
        if !self.uncounted.is_empty() {
            self.uncounted.trim_below(self.floor);
        }
    }

    /// Number of missing packets in a report of at most `max_runs` runs; 2 stands for more.
    pub fn missing(&self, max_runs: usize) -> u64 {
        let mut missing = 0;
        let mut ranges = self.received.ranges().iter().rev().peekable();
        for _ in 0..max_runs {
            let Some((from, _)) = ranges.next().filter(|_| missing < 2) else { break };
            let below = ranges.peek().map_or(self.floor.min(from), |r| r.1);
            // Uncounted numbers lie directly below the packet that announced them.
            let uncounted = match from.checked_sub(1).and_then(|n| self.uncounted.find(n)) {
                Some((begin, _)) => from - begin.max(below),
                None => 0,
            };
            missing += from - below - uncounted;
        }
        missing.min(2)
    }

    /// The highest number in a report of at most `max_runs` runs; lower than usual if the report must cover `late`, a
    /// packet that arrived late.
    #[inline]
    pub fn highest(&self, late: Option<u64>, max_runs: usize) -> Option<u64> {
        let highest = self.next.checked_sub(1)?;
        // Otherwise a late packet below the last run that fits would not be reported.
        let ranges = self.received.ranges();
        Some(late.map_or(highest, |late| ranges.top_of_report(highest, late, max_runs)))
    }

    /// Arrived and missing numbers, from `highest` downwards; `radio` returns whether a missing number's run is
    /// attributed to the radio link.
    #[inline]
    pub fn runs(
        &self,
        highest: u64,
        radio: impl Fn(u64) -> bool,
    ) -> impl Iterator<Item = PacketRun> {
        runs(self.received.ranges().iter().rev(), self.floor, highest, radio)
    }

    /// Heap memory in bytes, without the received numbers.
    pub fn memory(&self) -> usize {
        self.uncounted.len() * size_of::<(u64, u64)>()
    }
}

/// The runs from `highest` down to `floor`, from received ranges `[from, to)` in descending order.
#[inline]
pub fn runs(
    arrived: impl Iterator<Item = (u64, u64)>,
    floor: u64,
    highest: u64,
    radio: impl Fn(u64) -> bool,
) -> impl Iterator<Item = PacketRun> {
    let mut ranges = arrived.skip_while(move |r| r.0 > highest).take_while(move |r| r.1 > floor);
    let mut next = ranges.next();
    std::iter::from_fn(move || {
        let (from, to) = next.take()?;
        next = ranges.next();
        let from = from.max(floor);
        let to = to.min(highest.saturating_add(1));
        let below = next.map_or(floor.min(from), |range| range.1);
        let missing = from - below;
        Some(PacketRun { arrived: to - from, missing, radio: missing > 0 && radio(below) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Late packets, packets below the floor, and reordering: the log equals a set.
    #[test]
    fn report_lists_arrivals_above_the_least_unacked() {
        let mut log = ArrivalLog::<Ranges>::default();
        for (number, least_unacked) in [(0, 0), (10, 10), (12, 10), (3, 0), (11, 0)] {
            log.on_arrival(number, (), 0, least_unacked);
        }
        let runs: Vec<_> = log.runs(12, |_| true).collect();
        assert_eq!(runs, [PacketRun { arrived: 3, missing: 0, radio: false }]);
        let kept: Vec<_> = log.received().iter().collect();
        assert_eq!(kept, [(10, 13)], "what is below is not kept");
    }

    #[test]
    fn numbers_that_do_not_count_are_no_gap() {
        let mut log = ArrivalLog::<Ranges>::default();
        log.on_arrival(0, (), 0, 0);
        let place = log.on_arrival(4, (), 2, 0);
        assert_eq!((place.next, place.expected, place.uncounted_from), (1, 3, 2));
        assert_eq!(log.missing(9), 1, "number 1, neither 2 nor 3");
    }

    proptest! {
        /// In any order of arrival, runs equal the received and missing numbers down to the floor, and memory is
        /// bounded.
        #[test]
        fn runs_match_a_set(
            steps in prop::collection::vec((0u64..700, 0u64..900), 1..700), floor_moves in any::<bool>(),
        ) {
            let mut log = ArrivalLog::<Ranges>::default();
            let mut set = BTreeSet::new();
            for (at, (number, back)) in steps.into_iter().enumerate() {
                let number = number + at as u64;
                if !set.insert(number) {
                    continue;
                }
                let floor = if floor_moves { number.saturating_sub(back) } else { 0 };
                log.on_arrival(number, (), 0, floor);
                prop_assert!(log.received.len() <= MAX_RANGES);
                let mut at = log.next;
                for run in log.runs(log.next - 1, |_| false) {
                    let arrived = at - run.arrived..at;
                    let missing = arrived.start - run.missing..arrived.start;
                    prop_assert!(missing.clone().all(|n| !set.contains(&n) || n < log.floor));
                    prop_assert!(arrived.clone().all(|n| set.contains(&n)));
                    at = missing.start;
                }
                prop_assert!(at == log.floor.min(log.next - 1) || log.received.is_empty());
            }
        }
    }
}
