//! Packets received above a gap.

/// Ranges kept at most: a gap is over after three packets near it, and those far above it matter
/// only if it is filled.
const MAX_RANGES: usize = 16;

/// Packet numbers above a gap, as a few ranges `[from, to)` in ascending order. Packets beyond its capacity are
/// ignored, as if they had not arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketRanges {
    ranges: Vec<(u64, u64)>,
}

impl PacketRanges {
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    /// Keeps `seq`; false if it is a duplicate or exceeds the capacity.
    pub fn insert(&mut self, seq: u64) -> bool {
        let at = self.ranges.partition_point(|r| r.1 < seq);
        let end = seq.saturating_add(1);
        let full = self.ranges.len() >= MAX_RANGES;
        match self.ranges.get_mut(at) {
            Some(r) if (r.0..r.1).contains(&seq) => return false,
            Some(r) if r.1 == seq => {
                r.1 = end;
                let next = self.ranges.get(at + 1).filter(|n| n.0 == end).map(|n| n.1);
                if let Some(to) = next {
                    self.ranges[at].1 = to;
                    self.ranges.remove(at + 1);
                }
            }
            Some(r) if r.0 == end => r.0 = seq,
            _ if full => return false,
            _ => self.ranges.insert(at, (seq, end)),
        }
        true
    }
    /// How many lie in `[from, to)`.
    pub fn count(&self, from: u64, to: u64) -> u64 {
        self.ranges.iter().map(|r| r.1.min(to).saturating_sub(r.0.max(from))).sum()
    }
    /// One above the highest, or `min`.
    pub fn end(&self, min: u64) -> u64 {
        self.ranges.last().map_or(min, |r| r.1.max(min))
    }
    /// Removes the run that begins at `seq` and returns its end, or `seq` without such a run.
    pub fn take_run(&mut self, seq: u64) -> u64 {
        match self.ranges.first() {
            Some(r) if r.0 == seq => self.ranges.remove(0).1,
            _ => seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_runs_join_and_each_packet_counts_once() {
        let mut h = PacketRanges::default();
        for (seq, new) in [(5, true), (7, true), (5, false), (6, true), (4, true), (9, true)] {
            assert_eq!(h.insert(seq), new, "{seq}");
        }
        assert_eq!(h.ranges, [(4, 8), (9, 10)]);
        assert_eq!((h.count(5, 10), h.count(8, 9), h.end(0)), (4, 0, 10));
        assert_eq!((h.take_run(3), h.take_run(4), h.take_run(9)), (3, 8, 10));
        assert!(h.is_empty());
    }

    #[test]
    fn it_stays_small() {
        let mut h = PacketRanges::default();
        for i in 0..1000 {
            h.insert(i << 32);
        }
        assert_eq!(h.ranges.len(), MAX_RANGES);
        assert!(!h.insert(u64::MAX));
    }
}
