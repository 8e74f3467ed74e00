//! Limits on data written before they can be sent.
//!
//! Written data are kept until they are acknowledged; after a loss that takes as long as the retransmission. A buffer
//! much larger than the data in flight delays the data written last, and exceeds the processor's cache. So each
//! stream's bound follows its data in flight, and grows as soon as their maximum rises. If a path is filled at once,
//! the writer gets its next event when a quarter of the buffer has been sent.
//!
//! A peer that does not read or acknowledge must not make a connection hold much memory, on any number of streams. So
//! all streams share the amount that a path may need at once. Each stream also has a small amount of its own, so that a
//! blocked stream does not block others.

/// Ratio of the bound to the data in flight: a sender that doubles its rate finds the data for the next round trip
/// written.
const TIMES: usize = 2;
/// Bytes that all active streams together may hold in any case, once data were acknowledged.
const MIN_BYTES: usize = 256 << 10;
/// The same before the first acknowledgement: several times the data sent until then.
const FIRST: usize = 64 << 10;
/// Bytes that one stream may hold, independently of the other streams.
const MIN_OF_ONE: usize = 2 << 10;

/// Bytes written and not acknowledged, over all streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffers {
    most: usize,
    least: usize,
    bytes: usize,
    /// Streams with bytes in their buffers.
    streams: usize,
}

impl SendBuffers {
    pub fn new(most: usize) -> SendBuffers {
        SendBuffers { most, least: FIRST, bytes: 0, streams: 0 }
    }
    /// Sets the bytes that may leave before the first acknowledgement, if the path is known.
    pub fn on_known_path(&mut self, bytes: usize) {
        self.least = self.least.max(bytes);
    }
    /// Limit on all bytes.
    pub fn most(&self) -> usize {
        self.most
    }
    /// Raises the limit to at least this many bytes.
    pub fn grow(&mut self, most: usize) {
        self.most = self.most.max(most);
    }
    /// Bytes in the buffers of all streams.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Records a change in the bytes of one stream.
    #[inline]
    pub fn change(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
        self.streams = self.streams + usize::from(after > 0) - usize::from(before > 0);
    }
    /// Records an acknowledgement, which shows that the peer is alive.
    #[inline]
    pub fn arrived(&mut self) {
        self.least = self.least.max(MIN_BYTES);
    }
    /// Limit on the bytes of a stream that now holds `own`.
    #[inline]
    pub fn bound(&self, room: &StreamBuffer, own: usize) -> usize {
        let streams = self.streams + usize::from(own == 0);
        let share = (self.least / streams.max(1)).min(own + self.least.saturating_sub(self.bytes));
        let free = self.most.saturating_sub(self.bytes);
        room.bound.max(share).min(own + free).max(MIN_OF_ONE).min(self.most)
    }
}

/// The bound of one stream, from its own data in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamBuffer {
    bound: usize,
    /// Maximum of the data in flight since the bound last fell, in bytes; 0 if unknown.
    under_way: usize,
}

impl StreamBuffer {
    /// Records the data in flight: from the first unacknowledged byte to the last sent.
    #[inline]
    pub fn under_way(&mut self, bytes: usize) {
        self.under_way = self.under_way.max(bytes);
        self.bound = self.bound.max(self.wanted());
    }
    fn wanted(&self) -> usize {
        self.under_way.saturating_mul(TIMES)
    }
    /// Lowers the bound by a step when the buffer is full, if that is more than needed.
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

    /// Bound of a stream without others.
    fn alone(room: &StreamBuffer, most: usize) -> usize {
        let mut held = SendBuffers::new(most);
        held.arrived();
        held.bound(room, 0)
    }

    #[test]
    fn bound_follows_the_bytes_in_flight() {
        let most = 6 << 20;
        let mut room = StreamBuffer::default();
        assert_eq!(
            SendBuffers::new(most).bound(&room, 0),
            FIRST,
            "no acknowledgement has arrived yet"
        );
        let mut known = SendBuffers::new(most);
        known.on_known_path(1_000_000);
        assert_eq!(known.bound(&room, 0), 1_000_000, "before and after something arrives");
        known.arrived();
        assert_eq!(known.bound(&room, 0), 1_000_000);
        room.filled();
        assert_eq!(alone(&room, most), MIN_BYTES, "nothing is known of the path yet");
        room.under_way(300_000);
        assert_eq!(alone(&room, most), 600_000, "a faster path has room at once");
        for _ in 0..20 {
            room.under_way(200_000);
            room.under_way(1000);
            room.filled();
            room.filled();
        }
        assert_eq!(alone(&room, most), 400_000);
        for _ in 0..20 {
            room.under_way(1000);
            room.filled();
        }
        assert_eq!(alone(&room, most), MIN_BYTES);
        room.under_way(usize::MAX);
        assert_eq!(alone(&room, most), most);
        // A configured limit below the minimum is respected.
        let mut small = StreamBuffer::default();
        small.under_way(5000);
        small.filled();
        assert_eq!(alone(&small, 10_000), 10_000);
    }

    #[test]
    fn frequent_polls_cost_one_step_per_arrival() {
        let mut room = StreamBuffer::default();
        room.under_way(3 << 20);
        room.filled();
        room.under_way(1);
        for _ in 0..20 {
            room.filled();
        }
        assert_eq!(alone(&room, 6 << 20), (6 << 20) * 3 / 4);
    }

    /// Blocked streams must neither take all of the memory nor stop other streams.
    #[test]
    fn streams_share_and_each_has_a_little() {
        let mut held = SendBuffers::new(1 << 20);
        let fast = StreamBuffer { bound: 700_000, under_way: 0 };
        held.change(0, held.bound(&fast, 0));
        assert_eq!(held.bytes, 700_000);
        let second = held.bound(&fast, 0);
        assert_eq!(second, (1 << 20) - 700_000, "what is left");
        held.change(0, second);
        for _ in 0..100 {
            assert_eq!(held.bound(&fast, 0), MIN_OF_ONE);
            held.change(0, MIN_OF_ONE);
        }
        held.change(700_000, 0);
        assert_eq!(held.bound(&fast, 0), 700_000 - 100 * MIN_OF_ONE);
    }
}
