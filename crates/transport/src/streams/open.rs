//! Stream IDs; opening and finding streams.

use super::receive::Receiving;
use super::send::Sending;
use super::{Side, StreamEvent, Streams, Violation};
use std::collections::VecDeque;

/// Most streams of a kind: IDs are at most 2^62 - 1, and two of their bits are the kind.
pub(super) const MAX_STREAMS: u64 = 1 << 60;

/// A stream at this end; `None` for a direction that it does not have.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: u64,
    pub send: Option<Sending>,
    pub receive: Option<Receiving>,
    /// Whether it is in each of the queues, and in the count of busy streams.
    pub in_control: bool,
    pub in_again: bool,
    pub in_fresh: bool,
    pub is_counted: bool,
    /// Priority of the data that this end sends on it.
    pub priority: i32,
    /// Whether a readable or a writable event is pending.
    pub readable_told: bool,
    pub writable_told: bool,
    /// The peer reset it before it was accepted: the application never sees it.
    pub is_unseen: bool,
}

impl Stream {
    /// A stream with these initial limits for sending and receiving; `None` for a direction that it does not have. It
    /// uses the given empty buffers.
    #[inline]
    pub fn new(
        id: u64,
        credit: Option<u64>,
        window: Option<u64>,
        buffers: [VecDeque<u8>; 2],
    ) -> Stream {
        // A unidirectional stream uses the larger buffer.
        let [first, second] = buffers;
        let is_first = first.capacity() >= second.capacity();
        let (larger, smaller) = if is_first { (first, second) } else { (second, first) };
        let (sending, receiving) =
            if credit.is_some() { (larger, smaller) } else { (smaller, larger) };
        Stream {
            id,
            send: credit.map(|credit| Sending::new(credit, sending)),
            receive: window.map(|window| Receiving::new(window, receiving)),
            in_control: false,
            in_again: false,
            in_fresh: false,
            is_counted: false,
            priority: 0,
            readable_told: false,
            writable_told: false,
            is_unseen: false,
        }
    }
    /// Whether control frames wait.
    #[inline]
    pub fn must_control(&self) -> bool {
        let receive = self.receive.as_ref().is_some_and(|r| r.must_grant() || r.must_stop());
        receive || {
            let half = self.send.as_ref();
            half.is_some_and(|s| s.must_reset().is_some() || s.must_say_blocked())
        }
    }
    pub fn is_over(&self) -> bool {
        self.send.as_ref().is_none_or(Sending::is_over)
            && self.receive.as_ref().is_none_or(Receiving::is_over)
    }

    /// The buffers of a closed stream, for reuse.
    #[inline]
    pub fn take_buffers(&mut self) -> [VecDeque<u8>; 2] {
        let send = self.send.as_mut().map(Sending::take_buffer);
        let receive = self.receive.as_mut().map(Receiving::take_buffer);
        [send.unwrap_or_default(), receive.unwrap_or_default()]
    }
    /// Releases the memory of a closed stream, except buffers of up to `buffer` bytes.
    #[inline]
    pub fn shrink(&mut self, buffer: usize) {
        if let Some(half) = &mut self.send {
            half.shrink(buffer);
        }
        if let Some(half) = &mut self.receive {
            half.shrink(buffer);
        }
    }
    /// Bytes of memory, including the stream itself.
    pub fn memory(&self) -> usize {
        let send = self.send.as_ref().map_or(0, Sending::memory);
        let receive = self.receive.as_ref().map_or(0, Receiving::memory);
        size_of::<Stream>() + send + receive
    }
}

/// The direction of a stream that a frame concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From the peer to this end.
    In,
    /// From this end to the peer.
    Out,
}

#[inline]
pub(super) fn is_ours(side: Side, id: u64) -> bool {
    (id & 1 == 1) == (side == Side::Server)
}
/// 0 for bidirectional streams, 1 for unidirectional ones.
#[inline]
pub(super) fn direction_index(id: u64) -> usize {
    (id >> 1 & 1) as usize
}

impl Streams {
    /// Opens a stream. `None` if the peer's limit is reached; [`StreamEvent::MayOpen`] follows when it permits another
    /// one.
    pub fn open(&mut self, one_way: bool) -> Option<u64> {
        let direction_index = usize::from(one_way);
        let ours = &mut self.ours[direction_index];
        if ours.room() == 0 {
            self.wants_open[direction_index] = true;
            return None;
        }
        let side = u64::from(self.side == Side::Server);
        let id = ours.used() << 2 | (direction_index as u64) << 1 | side;
        ours.spend(1);
        self.insert(id);
        Some(id)
    }
    /// The next stream opened by the peer, if any.
    pub fn accept(&mut self) -> Option<u64> {
        let peer = u64::from(self.side == Side::Client);
        for direction_index in 0..2 {
            while self.accepted[direction_index] < self.theirs[direction_index].came() {
                let id = self.accepted[direction_index] << 2 | (direction_index as u64) << 1 | peer;
                self.accepted[direction_index] += 1;
                // It may be over already, with or without events.
                if self.map.get(id).is_some_and(|stream| !stream.is_unseen) {
                    return Some(id);
                }
            }
        }
        None
    }

    fn insert(&mut self, id: u64) {
        let (ours, one_way) = (is_ours(self.side, id), direction_index(id) == 1);
        let credit = (ours || !one_way).then_some(self.stream_credit);
        let window = (!ours || !one_way).then_some(self.stream_window);
        self.map.insert(id, self.spare.make(id, credit, window));
    }

    /// Checks that a frame may concern this stream, and opens the stream if the peer is to open it.
    pub(super) fn admit(&mut self, id: u64, direction: Direction) -> Result<(), Violation> {
        let ours = is_ours(self.side, id);
        if direction_index(id) == 1 && ours == (direction == Direction::In) {
            return Err(Violation { code: 3, why: "a frame about a direction that is not there" });
        }
        let (n, direction_index) = (id >> 2, direction_index(id));
        if ours {
            if n >= self.ours[direction_index].used() {
                return Err(Violation { code: 3, why: "a frame about a stream not opened yet" });
            }
            return Ok(());
        }
        let theirs = &mut self.theirs[direction_index];
        if n >= theirs.granted() {
            return Err(Violation { code: 2, why: "more streams than the limits permit" });
        }
        let first = theirs.came();
        if n >= first {
            // IDs are used in order, so lower ones are open, too.
            theirs.come(n + 1 - first);
            self.queues.opened = true;
            for k in first..=n {
                self.insert(k << 2 | id & 3);
            }
        }
        Ok(())
    }

    /// Handles the peer's limit on the number of streams.
    pub(super) fn on_max_streams(&mut self, one_way: bool, most: u64) {
        let direction_index = usize::from(one_way);
        let more = self.ours[direction_index].raise(most.min(MAX_STREAMS));
        if more && self.wants_open[direction_index] {
            self.wants_open[direction_index] = false;
            if !self.queues.events.contains(&StreamEvent::MayOpen) {
                self.queues.events.push_back(StreamEvent::MayOpen);
            }
        }
    }
}
