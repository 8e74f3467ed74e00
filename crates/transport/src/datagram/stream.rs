//! The payload of the reliable mode: a stream of bytes, and which of them must be sent again.
//!
//! The receiving side is in `assembly`. The packet sender handles packets; this module handles only ranges of bytes, so
//! that the bytes of a lost packet may be sent in any later packet (RFC 9002 section 2; RFC 9000 section 13.3).

use crate::ranges::Ranges;

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct SentRange {
    pub offset: u64,
    pub length: u32,
    /// Whether these bytes left before.
    pub again: bool,
}

/// A stream's bytes on the sending side.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes handed over and not sent yet; `u64::MAX` has no end.
    available: u64,
    /// Offset of the next new byte.
    next: u64,
    /// Everything below arrived.
    floor: u64,
    /// What arrived above it.
    arrived: Ranges,
    /// What must leave again; parts of it may have arrived since.
    again: Ranges,
    /// What the receiver asks for is sent again, and not what the sender takes for lost.
    on_request: bool,
}

impl Outgoing {
    /// A stream that sends again what the receiver asks for.
    pub fn on_request() -> Outgoing {
        Outgoing { on_request: true, ..Outgoing::default() }
    }
    /// The sender takes these bytes for lost, or probes with them; whether they are sent again. On request only the
    /// last ones are: nothing behind them shows a receiver that they are missing.
    pub fn lost(&mut self, offset: u64, length: u32) -> bool {
        let is_last = self.available == 0 && offset + u64::from(length) == self.next;
        (!self.on_request || is_last) && self.send_again(offset, length)
    }
    /// The receiver asks for bytes; those that never left are none to be sent again.
    pub fn requested(&mut self, from: u64, to: u64) {
        let length = to.min(self.next).saturating_sub(from).min(u64::from(u32::MAX));
        if length > 0 {
            self.send_again(from, length as u32);
        }
    }
    /// The application writes bytes.
    pub fn push(&mut self, bytes: u64) {
        self.available = self.available.saturating_add(bytes);
    }
    /// The application discards what has not been sent yet; what was sent is still retransmitted if
    /// lost.
    pub fn stop(&mut self) {
        self.available = 0;
    }
    /// Bytes that were not sent yet.
    pub fn unsent(&self) -> u64 {
        self.available
    }
    /// Whether nothing waits, neither new data nor retransmissions.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.available == 0 && (self.again.is_empty() || self.first_again().is_none())
    }
    /// Whether everything sent has arrived.
    #[inline]
    pub fn all_arrived(&self) -> bool {
        self.floor == self.next
    }
    /// Bytes `[offset, offset + length)` that have not arrived: the first piece of them.
    fn missing(&self, offset: u64, to: u64) -> Option<(u64, u64)> {
        let mut from = offset.max(self.floor);
        if let Some((_, end)) = self.arrived.find(from) {
            from = end;
        }
        let to = self.arrived.next_start(from).map_or(to, |start| to.min(start));
        (from < to).then_some((from, to))
    }
    /// The first piece to be sent again; forgets what need not be.
    fn first_again(&mut self) -> Option<(u64, u64)> {
        loop {
            let (from, to) = self.again.iter().next()?;
            let piece = self.missing(from, to);
            self.again.trim_below(piece.map_or(to, |p| p.0));
            if piece.is_some() {
                return piece;
            }
        }
    }
    /// Takes the next packet's range of at most `most` bytes, retransmissions first.
    #[inline]
    pub fn take(&mut self, most: u32) -> Option<SentRange> {
        if !self.again.is_empty()
            && let Some((from, to)) = self.first_again()
        {
            let to = to.min(from + u64::from(most));
            self.again.trim_below(to);
            return Some(SentRange { offset: from, length: (to - from) as u32, again: true });
        }
        let length = self.available.min(u64::from(most)) as u32;
        if length == 0 {
            return None;
        }
        if self.available != u64::MAX {
            self.available -= u64::from(length);
        }
        let offset = self.next;
        self.next += u64::from(length);
        Some(SentRange { offset, length, again: false })
    }
    /// A packet with these bytes arrived.
    #[inline]
    pub fn arrived(&mut self, offset: u64, length: u32) {
        let to = offset + u64::from(length);
        if offset <= self.floor && self.arrived.is_empty() {
            self.floor = self.floor.max(to);
            return;
        }
        self.arrived.insert(offset.max(self.floor), to, |_, _| ());
        if let Some(end) = self.arrived.take_from(self.floor) {
            self.floor = end;
        }
    }
    /// Queues these bytes for retransmission, except those that have arrived; false if all have.
    pub fn send_again(&mut self, offset: u64, length: u32) -> bool {
        let to = offset + u64::from(length);
        let piece = self.missing(offset, to);
        if let Some((from, _)) = piece {
            // A hole in it is left out when it is taken.
            self.again.insert(from, to, |_, _| ());
        }
        piece.is_some()
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
