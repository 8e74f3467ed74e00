//! The receiver's replay window: each packet number is accepted once.

/// The largest packet number (RFC 9000 section 12.3).
pub const MAX_PACKET_NUMBER: u64 = (1 << 62) - 1;

/// How far below the highest received number a packet may be and still be accepted.
pub const WINDOW: u64 = 1024;
const WORDS: usize = WINDOW as usize / 64;

/// Which of the last [`WINDOW`] packet numbers have been received: a bitmap of fixed size (as in
/// RFC 6479, but without shifts). Over sockets, only numbers of authenticated packets are marked.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    /// The highest marked number plus one.
    next: u64,
    seen: [u64; WORDS],
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize % WORDS, 1 << (number % 64))
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
        if number.saturating_add(WINDOW) < self.next {
            return false;
        }
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|w| w & bit == 0)
    }

    /// Marks a number as received. Returns false if it was marked already or is too old.
    #[inline]
    pub fn mark(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if number == self.next {
            // Its slot is initialised again below.
            self.next = number + 1;
        } else if number > self.next {
            self.forget(number);
            self.next = number + 1;
        }
        let (word, bit) = place(number);
        if let Some(w) = self.seen.get_mut(word) {
            *w |= bit;
        }
        true
    }

    /// Clears the bits of the numbers from `next` to `number`; each bit still stands for a number
    /// that is now below the window.
    fn forget(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen = [0; WORDS];
            return;
        }
        let mut at = self.next;
        while at <= number {
            let (word, bit) = place(at);
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
        /// The window accepts and rejects the same numbers as an unbounded set.
        #[test]
        fn it_agrees_with_a_set(steps in prop::collection::vec((0u8..4, 0u64..3000), 1..400), start in 0u64..1 << 40) {
            let mut window = ReplayWindow::default();
            let mut set = BTreeSet::new();
            let mut at = start;
            for (kind, by) in steps {
                let number = match kind {
                    0 => { at += by; at }
                    1 => { at += by % 3; at }
                    2 => at.saturating_sub(by),
                    _ => at.saturating_sub(by % 80),
                };
                let highest = set.last().copied();
                let old = highest.is_some_and(|h| number + WINDOW <= h);
                let expected = !old && !set.contains(&number);
                prop_assert_eq!(window.is_new(number), expected);
                prop_assert_eq!(window.mark(number), expected);
                if expected {
                    set.insert(number);
                }
                prop_assert!(!window.mark(number));
                prop_assert_eq!(window.highest(), set.last().copied());
            }
        }
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
