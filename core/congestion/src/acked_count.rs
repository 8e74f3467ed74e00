//! Counts the segments that an ACK acknowledges, for estimators of the rate of returning ACKs (Westwood, Westwood+,
//! Jersey).

use crate::Ack;

/// The segments that an ACK acknowledges, given cumulative ACKs and earlier duplicates (Hu and Zha, AckedCount).
#[derive(Clone, Debug, Default)]
pub(crate) struct AckedCount {
    accounted: u64,
}

impl AckedCount {
    /// Segments to count for this ACK.
    pub fn count(&mut self, ack: &Ack) -> u64 {
        match ack.cumulative.newly_acked {
            // A duplicate: something arrived, which a later advance will cover once more.
            0 if ack.cumulative.duplicate || ack.cumulative.newly_sacked > 0 => {
                self.accounted = self.accounted.saturating_add(1);
                1
            }
            0 => 0,
            1 => 1,
            advance if self.accounted >= advance => {
                self.accounted -= advance;
                1
            }
            advance => advance - std::mem::take(&mut self.accounted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{IdealPath, build};

    #[test]
    fn duplicates_are_not_counted_twice() {
        // Four duplicates, then an ACK for 6: four of them are already counted.
        let mut s = IdealPath::new(build("westwood"));
        let mut counter = AckedCount::default();
        let mut total = 0;
        for advance in [0, 0, 0, 0, 6, 1, 2] {
            total += counter.count(&s.ack(advance, false));
        }
        assert_eq!(total, 4 + 2 + 1 + 2);
        // More duplicates than the advance: one, and the rest stays on account.
        for advance in [0, 0, 0, 0, 0, 3, 4] {
            total += counter.count(&s.ack(advance, false));
        }
        assert_eq!(total, 9 + 5 + 1 + 2);
    }
}
