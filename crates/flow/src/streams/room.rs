//! How much of a stream may be written ahead.
//!
//! What was written is kept until it arrived, behind a lost packet for as long as its repair takes.
//! A buffer much longer than what is under way delays what is written last, and costs: memory that
//! a processor's cache holds is the cheaper one. So it follows what is under way, and grows as soon
//! as more leaves than ever before: a path that is filled at once has filled a quarter of it when
//! its writer is asked for more.

/// The bound is so many times what is under way: a sender whose rate doubles finds the next round
/// trip's bytes written.
const TIMES: usize = 2;
/// Bytes that there is room for in any case.
const LEAST: usize = 256 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    most: usize,
    bound: usize,
    /// Most bytes under way since the bound last fell; 0 if that is not known.
    under_way: usize,
}

impl Room {
    pub fn new(most: usize) -> Room {
        Room { most, bound: most.min(LEAST), under_way: 0 }
    }
    /// Bytes of a stream that may wait to arrive.
    #[inline]
    pub fn bound(&self) -> usize {
        self.bound
    }
    /// So many bytes of a stream are under way: from the first that has not arrived to the last that
    /// was sent.
    #[inline]
    pub fn under_way(&mut self, bytes: usize) {
        self.under_way = self.under_way.max(bytes);
        self.bound = self.bound.max(self.wanted());
    }
    fn wanted(&self) -> usize {
        self.under_way.saturating_mul(TIMES).max(LEAST).min(self.most)
    }
    /// A stream is full: if that is more than needed, it need not be so again.
    #[inline]
    pub fn filled(&mut self) {
        if self.under_way > 0 {
            self.bound = self.wanted().max(self.bound - self.bound / 4);
            self.under_way = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_follows_what_is_under_way() {
        let mut room = Room::new(6 << 20);
        room.filled();
        assert_eq!(room.bound(), LEAST, "nothing is known of the path yet");
        room.under_way(300_000);
        assert_eq!(room.bound(), 600_000, "a faster path has room at once");
        for _ in 0..20 {
            room.under_way(200_000);
            room.under_way(1000);
            room.filled();
            room.filled();
        }
        assert_eq!(room.bound(), 400_000);
        for _ in 0..20 {
            room.under_way(1000);
            room.filled();
        }
        assert_eq!(room.bound(), LEAST);
        room.under_way(usize::MAX);
        assert_eq!(room.bound(), 6 << 20);
        // A configured buffer below the least is obeyed.
        let mut small = Room::new(10_000);
        small.under_way(5000);
        small.filled();
        assert_eq!(small.bound(), 10_000);
    }

    #[test]
    fn a_writer_who_asks_often_costs_one_step_an_arrival() {
        let mut room = Room::new(6 << 20);
        room.under_way(3 << 20);
        room.filled();
        room.under_way(1);
        for _ in 0..20 {
            room.filled();
        }
        assert_eq!(room.bound(), (6 << 20) * 3 / 4);
    }
}
