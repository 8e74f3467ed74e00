//! Which streams have something to send, and what the application must hear.

use super::StreamEvent;
use super::open::Stream;
use super::priority::PriorityQueue;
use std::collections::VecDeque;

/// Every stream is at most once in each list; a flag of the stream says so. An entry may be out of
/// date: whoever takes it looks.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Something other than data.
    pub control: VecDeque<u64>,
    /// Lost data, or an end alone: what needs no credit.
    pub again: PriorityQueue,
    /// New data that the stream's own limit permits.
    pub fresh: PriorityQueue,
    /// At most one of a kind for each stream.
    pub events: VecDeque<StreamEvent>,
    /// The peer opened streams, and no event told so yet.
    pub opened: bool,
    /// Streams of which data, an end or a reset left and is not known to have arrived.
    pub busy: usize,
    /// Other pieces of unknown outcome.
    pub said: usize,
}

impl Queues {
    /// Into the lists where it belongs.
    #[inline]
    pub fn touch(&mut self, stream: &mut Stream) {
        let must = stream.must_control();
        if must && !stream.in_control {
            stream.in_control = true;
            self.control.push_back(stream.id);
        }
        let Some(half) = &stream.send else { return };
        let (again, fresh, busy) =
            (half.may_retransmit(), half.next_new().is_some(), half.is_busy());
        if again && !stream.in_again {
            stream.in_again = true;
            self.again.push_back(stream.priority, stream.id);
        }
        if fresh && !stream.in_fresh {
            stream.in_fresh = true;
            self.fresh.push_back(stream.priority, stream.id);
        }
        if busy != stream.is_counted {
            stream.is_counted = busy;
            self.busy = if busy { self.busy + 1 } else { self.busy.saturating_sub(1) };
        }
    }

    /// Bytes of its lists.
    pub fn memory(&self) -> usize {
        let waiting = self.again.memory() + self.fresh.memory();
        let control = self.control.capacity() * size_of::<u64>();
        control + waiting + self.events.capacity() * size_of::<StreamEvent>()
    }

    /// Out of all lists. Rarely is it in one: what is over has nothing to send.
    pub fn forget(&mut self, stream: &Stream) {
        if stream.in_control {
            self.control.retain(|id| *id != stream.id);
        }
        if stream.in_again {
            self.again.remove(stream.priority, stream.id);
        }
        if stream.in_fresh {
            self.fresh.remove(stream.priority, stream.id);
        }
        if stream.is_counted {
            self.busy = self.busy.saturating_sub(1);
        }
        self.withdraw(stream);
    }
    /// It waits behind others from now on, or before them.
    pub fn change_priority(&mut self, stream: &mut Stream, priority: i32) {
        let before = std::mem::replace(&mut stream.priority, priority);
        if stream.in_again {
            self.again.remove(before, stream.id);
            self.again.push_back(priority, stream.id);
        }
        if stream.in_fresh {
            self.fresh.remove(before, stream.id);
            self.fresh.push_back(priority, stream.id);
        }
    }

    /// There is nothing to read after all.
    pub fn unreadable(&mut self, stream: &mut Stream) {
        self.withdraw(stream);
        stream.readable_told = false;
    }
    fn withdraw(&mut self, stream: &Stream) {
        if stream.readable_told {
            self.events.retain(|e| *e != StreamEvent::Readable(stream.id));
        }
    }

    /// Gives back what long lists took; for when there is no stream at all.
    pub fn release(&mut self) {
        if self.control.is_empty() && self.control.capacity() > 64 {
            self.control = VecDeque::new();
        }
        self.again.release();
        self.fresh.release();
    }

    /// Gives back all memory that is not in use.
    pub fn release_all(&mut self) {
        self.control.shrink_to_fit();
        self.events.shrink_to_fit();
        self.again.shrink();
        self.fresh.shrink();
    }

    /// There is something to read.
    #[inline]
    pub fn readable(&mut self, stream: &mut Stream) {
        if !stream.readable_told {
            stream.readable_told = true;
            self.events.push_back(StreamEvent::Readable(stream.id));
        }
    }
    /// There is room, or the peer wants no more.
    pub fn writable(&mut self, stream: &mut Stream) {
        if !stream.writable_told {
            stream.writable_told = true;
            self.events.push_back(StreamEvent::Writable(stream.id));
        }
    }
}
