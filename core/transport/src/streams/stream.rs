//! A stream at this end: its two directions and its places in the queues.

use super::receive::Receiving;
use super::send::SendHalf;
use super::values::Side;
use std::collections::VecDeque;

/// Most streams of a kind: IDs are at most 2^62 - 1, and two of their bits are the kind.
pub(super) const MAX_STREAMS: u64 = 1 << 60;

/// A stream at this end; `None` for a direction that it does not have.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: u64,
    pub send: Option<SendHalf>,
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
            send: credit.map(|credit| SendHalf::new(credit, sending)),
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
        self.send.as_ref().is_none_or(SendHalf::is_over)
            && self.receive.as_ref().is_none_or(Receiving::is_over)
    }

    /// The buffers of a closed stream, for reuse.
    #[inline]
    pub fn take_buffers(&mut self) -> [VecDeque<u8>; 2] {
        let send = self.send.as_mut().map(SendHalf::take_buffer);
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
        let send = self.send.as_ref().map_or(0, SendHalf::memory);
        let receive = self.receive.as_ref().map_or(0, Receiving::memory);
        size_of::<Stream>() + send + receive
    }
}

/// The direction of a stream that a frame concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StreamDirection {
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
