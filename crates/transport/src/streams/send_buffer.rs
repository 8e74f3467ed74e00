//! Limits on data that are written before they can be sent.
//!
//! Written data are kept until they have arrived; behind a lost packet that takes as long as its retransmission. A
//! buffer much larger than the data in flight delays what is written last, and no longer fits into the processor's
//! cache. So each stream's bound follows its data in flight, and grows as soon as more is in flight than ever before: a
//! path that is filled at once has used a quarter of the buffer when the writer is asked for more.
//!
//! A peer that reads or acknowledges nothing must not make a connection hold much memory, on however many streams: all
//! streams share what a path may need at once, and each has a little of its own, so that a blocked stream blocks no
//! other.

/// The bound is so many times what is under way: a sender whose rate doubles finds the next round
/// trip's bytes written.
const TIMES: usize = 2;
/// Bytes that there is room for in any case, of all streams that are in use, once some have arrived.
const MIN_BYTES: usize = 256 << 10;
/// And before: several times what leaves until then.
const FIRST: usize = 64 << 10;
/// Bytes that a stream has room for whatever the others hold.
const MIN_OF_ONE: usize = 2 << 10;

/// What all streams hold that was written and has not arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffers {
    most: usize,
    least: usize,
    bytes: usize,
    /// Streams that hold something.
    streams: usize,
}

impl SendBuffers {
    pub fn new(most: usize) -> SendBuffers {
        SendBuffers { most, least: FIRST, bytes: 0, streams: 0 }
    }
    /// So many bytes may leave before anything arrives: the path is known.
    pub fn on_known_path(&mut self, bytes: usize) {
        self.least = self.least.max(bytes);
    }
    /// Bytes that all streams hold.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// A stream holds so many bytes now.
    #[inline]
    pub fn change(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
        self.streams = self.streams + usize::from(after > 0) - usize::from(before > 0);
    }
    /// Something arrived: the peer lives.
    #[inline]
    pub fn arrived(&mut self) {
        self.least = self.least.max(MIN_BYTES);
    }
    /// Bytes that a stream may hold which holds `own`.
    #[inline]
    pub fn bound(&self, room: &StreamBuffer, own: usize) -> usize {
        let streams = self.streams + usize::from(own == 0);
        let share = (self.least / streams.max(1)).min(own + self.least.saturating_sub(self.bytes));
        let free = self.most.saturating_sub(self.bytes);
        room.bound.max(share).min(own + free).max(MIN_OF_ONE).min(self.most)
    }
}

/// What a stream's own way asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamBuffer {
    bound: usize,
    /// Most bytes under way since the bound last fell; 0 if that is not known.
    under_way: usize,
}

impl StreamBuffer {
    /// So many bytes are under way: from the first that has not arrived to the last that was sent.
    #[inline]
    pub fn under_way(&mut self, bytes: usize) {
        self.under_way = self.under_way.max(bytes);
        self.bound = self.bound.max(self.wanted());
    }
    fn wanted(&self) -> usize {
        self.under_way.saturating_mul(TIMES)
    }
    /// The stream is full: if that is more than needed, it need not be so again.
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

    /// What a lone stream may hold.
    fn alone(room: &StreamBuffer, most: usize) -> usize {
        let mut held = SendBuffers::new(most);
        held.arrived();
        held.bound(room, 0)
    }

    #[test]
    fn the_bound_follows_what_is_under_way() {
        let most = 6 << 20;
        let mut room = StreamBuffer::default();
        assert_eq!(SendBuffers::new(most).bound(&room, 0), FIRST, "nobody has answered yet");
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
        // A configured buffer below the least is obeyed.
        let mut small = StreamBuffer::default();
        small.under_way(5000);
        small.filled();
        assert_eq!(alone(&small, 10_000), 10_000);
    }

    #[test]
    fn a_writer_who_asks_often_costs_one_step_an_arrival() {
        let mut room = StreamBuffer::default();
        room.under_way(3 << 20);
        room.filled();
        room.under_way(1);
        for _ in 0..20 {
            room.filled();
        }
        assert_eq!(alone(&room, 6 << 20), (6 << 20) * 3 / 4);
    }

    /// Streams that stand still must neither take all of the memory nor stop the others.
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
