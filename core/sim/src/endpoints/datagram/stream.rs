//! The payload of the reliable mode: a stream of bytes, and the ranges to be retransmitted.
//!
//! The receiving side is in `assembly`. The packet sender handles packets; this module handles only ranges of bytes, so
//! that the bytes of a lost packet may be sent in any later packet (RFC 9002 section 2; RFC 9000 section 13.3).

use narrows_recovery::packet_sender::PayloadSource;
use narrows_recovery::ranges::Ranges;

/// The stream bytes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::endpoints) struct SentRange {
    pub offset: u64,
    pub length: u32,
    /// Whether these bytes were sent before.
    pub again: bool,
    /// Whether another packet with these bytes is in flight on another path.
    pub copy: bool,
}

/// The sending side of a stream.
#[derive(Debug, Default)]
pub(in crate::endpoints) struct OutgoingStream {
    /// Bytes written and not sent yet; `u64::MAX` for data without end.
    available: u64,
    /// Offset of the next new byte.
    next: u64,
    /// All bytes below have arrived.
    floor: u64,
    /// Bytes above it that have arrived.
    arrived: Ranges,
    /// Bytes to be retransmitted; some may have arrived since.
    again: Ranges,
    /// Whether only requests of the receiver cause retransmissions, not losses that the sender detects.
    on_request: bool,
}

impl OutgoingStream {
    /// A stream that retransmits on the receiver's request.
    pub fn on_request() -> OutgoingStream {
        OutgoingStream { on_request: true, ..OutgoingStream::default() }
    }
    /// These bytes were declared lost, or are repeated by a probe; returns whether they are sent again. With
    /// `on_request` only the stream's last bytes are, since no later packet shows a receiver that they are missing.
    pub fn lost(&mut self, offset: u64, length: u32) -> bool {
        let is_last = self.available == 0 && offset + u64::from(length) == self.next;
        (!self.on_request || is_last) && self.send_again(offset, length)
    }
    /// The receiver requests bytes; ranges that were never sent are ignored.
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
    /// The application discards unsent data; sent data is still retransmitted if lost.
    pub fn stop(&mut self) {
        self.available = 0;
    }
    /// Bytes that have not been sent yet.
    pub fn unsent(&self) -> u64 {
        self.available
    }
    /// Whether no data waits, neither new data nor retransmissions.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.available == 0 && (self.again.is_empty() || self.first_again().is_none())
    }
    /// Whether everything sent has arrived.
    #[inline]
    pub fn all_arrived(&self) -> bool {
        self.floor == self.next
    }
    /// The first piece of `[offset, to)` that has not arrived.
    fn missing(&self, offset: u64, to: u64) -> Option<(u64, u64)> {
        let mut from = offset.max(self.floor);
        if let Some((_, end)) = self.arrived.find(from) {
            from = end;
        }
        let to = self.arrived.next_start(from).map_or(to, |start| to.min(start));
        (from < to).then_some((from, to))
    }
    /// The first piece to be retransmitted; drops pieces that have arrived.
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
    /// Bytes of the next retransmission, at most `max`; 0 if there is none.
    pub fn lost_bytes(&mut self, max: u32) -> u32 {
        if self.again.is_empty() {
            return 0;
        }
        self.first_again().map_or(0, |(from, to)| (to - from).min(u64::from(max)) as u32)
    }
    /// Bytes of all retransmissions; some may have arrived since.
    pub fn all_lost_bytes(&self) -> u64 {
        self.again.iter().map(|(from, to)| to - from).sum()
    }
    /// Whether some of these bytes have not arrived.
    pub fn is_missing(&self, range: &SentRange) -> bool {
        self.missing(range.offset, range.offset + u64::from(range.length)).is_some()
    }
    /// Bytes from the lowest that has not arrived to the highest that was sent.
    pub fn span(&self) -> u64 {
        self.next - self.floor
    }
    /// Takes at most `max` bytes for the next packet, retransmissions first.
    #[inline]
    pub fn take(&mut self, max: u32) -> Option<SentRange> {
        if !self.again.is_empty()
            && let Some((from, to)) = self.first_again()
        {
            let to = to.min(from + u64::from(max));
            self.again.trim_below(to);
            return Some(SentRange {
                offset: from,
                length: (to - from) as u32,
                again: true,
                copy: false,
            });
        }
        self.take_new(max)
    }
    /// Takes at most `max` new bytes for the next packet.
    #[inline]
    pub fn take_new(&mut self, max: u32) -> Option<SentRange> {
        let length = self.available.min(u64::from(max)) as u32;
        if length == 0 {
            return None;
        }
        if self.available != u64::MAX {
            self.available -= u64::from(length);
        }
        let offset = self.next;
        self.next += u64::from(length);
        Some(SentRange { offset, length, again: false, copy: false })
    }
    /// A packet with these bytes was acknowledged.
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
            // Holes in it are skipped when it is taken.
            self.again.insert(from, to, |_, _| ());
        }
        piece.is_some()
    }
}

impl PayloadSource for OutgoingStream {
    type Payload = SentRange;

    fn is_empty(&mut self) -> bool {
        OutgoingStream::is_empty(self)
    }
    fn all_arrived(&self, _in_flight: u64) -> bool {
        OutgoingStream::all_arrived(self)
    }
    fn arrived(&mut self, range: &SentRange) {
        OutgoingStream::arrived(self, range.offset, range.length);
    }
    fn lost(&mut self, range: &SentRange) -> bool {
        OutgoingStream::lost(self, range.offset, range.length)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
