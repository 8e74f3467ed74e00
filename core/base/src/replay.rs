//! The receiver's replay window: each packet number is accepted once.

/// The largest packet number (RFC 9000 section 12.3).
pub const MAX_PACKET_NUMBER: u64 = (1 << 62) - 1;

/// How far below the highest received number a packet may at first be and still be accepted.
pub const WINDOW: u64 = 1024;
/// The longest window: a third of a second at 1 Gbit/s in packets of 1250 bytes, 4 kB.
pub const MAX_WINDOW: u64 = 1 << 15;

/// Which of the last packet numbers have been received: a bitmap (as in RFC 6479, but without shifts). Over sockets, only
/// numbers of authenticated packets are marked. From [`WINDOW`] to [`MAX_WINDOW`] the window doubles each time that as many
/// packets have been received as it has numbers: a fast path reorders more packets, and a short connection costs little.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    /// The highest marked number plus one.
    next: u64,
    /// A bit for each number of the window; none before the first packet.
    seen: Vec<u64>,
    /// Packets marked since the window has had its length.
    marked: u64,
}

impl ReplayWindow {
    /// The highest number marked.
    #[inline]
    pub fn highest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// Whether a packet with this number would be new and not too old.
    #[inline]
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number <= MAX_PACKET_NUMBER;
        }
        if number.saturating_add(self.length()) < self.next {
            return false;
        }
        let (word, bit) = self.place(number);
        self.seen.get(word).is_some_and(|w| w & bit == 0)
    }

    /// Marks a number as received. Returns false if it was marked already or is too old.
    #[inline]
    pub fn mark(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        self.marked += 1;
        if self.marked >= self.length() && self.length() < MAX_WINDOW {
            self.grow();
        }
        if number == self.next {
            // Its slot is initialised again below.
            self.next = number + 1;
        } else if number > self.next {
            self.forget(number);
            self.next = number + 1;
        }
        let (word, bit) = self.place(number);
        if let Some(w) = self.seen.get_mut(word) {
            *w |= bit;
        }
        true
    }

    /// Length of the window in numbers.
    #[inline]
    fn length(&self) -> u64 {
        self.seen.len() as u64 * 64
    }

    #[inline]
    fn place(&self, number: u64) -> (usize, u64) {
        // The length is a power of two.
        ((number / 64) as usize & self.seen.len().wrapping_sub(1), 1 << (number % 64))
    }

    /// Doubles the window. It is not known which of the numbers below the old one were received: they count as such.
    #[cold]
    fn grow(&mut self) {
        let length = (2 * self.length()).max(WINDOW);
        let old = std::mem::replace(&mut self.seen, vec![u64::MAX; length as usize / 64]);
        let mask = old.len().wrapping_sub(1);
        for number in self.next.saturating_sub(old.len() as u64 * 64)..self.next {
            let seen =
                old.get((number / 64) as usize & mask).is_some_and(|w| w & 1 << (number % 64) != 0);
            let (word, bit) = self.place(number);
            if let Some(w) = self.seen.get_mut(word).filter(|_| !seen) {
                *w &= !bit;
            }
        }
        self.marked = 0;
    }

    /// Clears the bits of the numbers from `next` to `number`; each bit still stands for a number
    /// that is now below the window.
    fn forget(&mut self, number: u64) {
        if number - self.next >= self.length() {
            self.seen.fill(0);
            return;
        }
        let mut at = self.next;
        while at <= number {
            let (word, bit) = self.place(at);
            if let Some(w) = self.seen.get_mut(word) {
                if at.is_multiple_of(64) && number - at >= 63 {
                    *w = 0;
                    at += 64;
                    continue;
                }
                *w &= !bit;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The window accepts and rejects the same numbers as an unbounded set, while it grows, too.
        #[test]
        fn it_agrees_with_a_set(steps in prop::collection::vec((0u8..4, 0u64..3000), 1..4000), start in 0u64..1 << 40) {
            let mut window = ReplayWindow::default();
            let mut set = BTreeSet::new();
            let mut at = start;
            let mut length = WINDOW;
            let mut lowest = 0;
            for (kind, by) in steps {
                let number = match kind {
                    0 => { at += by; at }
                    1 => { at += by % 3; at }
                    2 => at.saturating_sub(by),
                    _ => at.saturating_sub(by % 80),
                };
                let expected = number >= lowest && !set.contains(&number);
                prop_assert_eq!(window.is_new(number), expected);
                prop_assert_eq!(window.mark(number), expected);
                if expected {
                    set.insert(number);
                    // The first packet gives the window its first length.
                    if set.len() as u64 > 2 * length - WINDOW && length < MAX_WINDOW {
                        length *= 2;
                    }
                    let highest = set.last().copied().unwrap_or_default();
                    lowest = lowest.max((highest + 1).saturating_sub(length));
                }
                prop_assert!(!window.mark(number));
                prop_assert_eq!(window.highest(), set.last().copied());
            }
        }
    }

    /// Packets that a fast path delays by thousands of numbers are accepted.
    #[test]
    fn it_grows_with_the_packets_received() {
        let mut window = ReplayWindow::default();
        assert!((1..100_000).filter(|n| n % 5000 != 0).all(|n| window.mark(n)));
        assert!(window.mark(70_000) && !window.mark(70_000) && !window.mark(70_001));
        assert!(!window.mark(99_999 - MAX_WINDOW));
    }

    #[test]
    fn the_far_end_of_numbers_is_refused() {
        let mut window = ReplayWindow::default();
        assert!(!window.mark(u64::MAX));
        assert!(window.mark(MAX_PACKET_NUMBER));
        assert!(!window.mark(MAX_PACKET_NUMBER));
        assert!(window.is_new(MAX_PACKET_NUMBER - WINDOW + 1));
        assert!(!window.is_new(MAX_PACKET_NUMBER - WINDOW));
    }
}
