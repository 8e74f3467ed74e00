//! Which pieces in flight on one path were offered to the scheduler for a copy on another.

use crate::scheduler::InFlightPiece;

/// A piece of data, and the number of the packet that carries it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NumberedPiece {
    /// Packet number on the piece's path.
    pub number: u64,
    /// Path, time of departure and length.
    pub piece: InFlightPiece,
}

/// Packet numbers of a path, the data of which may leave again on another path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered {
    /// The lowest one that was not repeated. It may be overdue later.
    oldest: u64,
    /// The lowest one that was never offered.
    new: u64,
}

impl Offered {
    /// The packet number of the next piece to repeat: the oldest, which may be overdue, or one that was not offered before. A
    /// refused piece may arrive before a copy where one behind it does not.
    ///
    /// `first` returns the first piece in flight from a packet number on; `is_wanted` asks the scheduler.
    pub fn next(
        &mut self,
        first: impl Fn(u64) -> Option<NumberedPiece>,
        mut is_wanted: impl FnMut(&InFlightPiece) -> bool,
    ) -> Option<u64> {
        let mut found = first(self.oldest)?;
        self.oldest = found.number;
        loop {
            let NumberedPiece { number, piece } = found;
            self.new = self.new.max(number + 1);
            if is_wanted(&piece) {
                self.oldest += u64::from(number == self.oldest);
                return Some(number);
            }
            found = first(self.new)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Time;

    /// Packets 0 to 9 left one millisecond apart.
    fn first(from: u64) -> Option<NumberedPiece> {
        let sent = Time::from_nanos(from * 1_000_000);
        let piece = InFlightPiece { path: 0, sent, length: 1 };
        (from < 10).then_some(NumberedPiece { number: from, piece })
    }

    #[test]
    fn refused_piece_does_not_block_those_behind_it() {
        let mut offered = Offered::default();
        let late = |piece: &InFlightPiece| piece.sent >= Time::from_nanos(7_000_000);
        let mut copied = Vec::new();
        while let Some(number) = offered.next(first, late) {
            copied.push(number);
        }
        assert_eq!(copied, [7, 8, 9]);
    }

    #[test]
    fn oldest_piece_is_offered_until_it_is_overdue() {
        let mut offered = Offered::default();
        assert_eq!(offered.next(first, |_| false), None);
        let mut asked = Vec::new();
        let refuse = |piece: &InFlightPiece| {
            asked.push(piece.sent.as_nanos());
            false
        };
        assert_eq!(offered.next(first, refuse), None);
        assert_eq!(asked, [0]);
        assert_eq!(offered.next(first, |_| true), Some(0));
        assert_eq!(offered.next(first, |_| true), Some(1));
    }
}
