//! Queues of streams with frames to send, and of events for the application.

use super::StreamEvent;
use super::priority::PriorityQueue;
use super::stream::Stream;
use std::collections::VecDeque;

/// A stream is at most once in each list; flags of the stream show in which. Entries may be
/// outdated and are checked when taken.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Streams with control frames.
    pub control: VecDeque<u64>,
    /// Streams with lost data, or only their end to send, which need no credit.
    pub again: PriorityQueue,
    /// Streams with new data within the stream's own limit.
    pub fresh: PriorityQueue,
    /// Pending events, at most one of a kind per stream.
    pub events: VecDeque<StreamEvent>,
    /// The peer opened streams, which no event has reported yet.
    pub opened: bool,
    /// Streams with data, an end or a reset in flight.
    pub busy: usize,
    /// Other frames in flight.
    pub said: usize,
}

impl Queues {
    /// Adds a stream to the lists where it belongs.
    #[inline]
    pub fn touch(&mut self, stream: &mut Stream) {
        let must = stream.must_control();
        if must && !stream.in_control {
            stream.in_control = true;
            self.control.push_back(stream.id);
        }
        let Some(half) = &stream.send else { return };
        let again = half.may_retransmit();
        let fresh = half.next_new().is_some();
        let busy = half.is_busy();
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

    /// Removes a stream from all lists. Usually it is in no list, because a closed stream has no
    /// data to send.
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
    /// Moves the stream to the end of its new priority.
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

    /// Withdraws a readable event.
    pub fn unreadable(&mut self, stream: &mut Stream) {
        self.withdraw(stream);
        stream.readable_told = false;
    }
    fn withdraw(&mut self, stream: &Stream) {
        if stream.readable_told {
            self.events.retain(|e| *e != StreamEvent::Readable(stream.id));
        }
    }

    /// Releases long lists; called when no stream is left.
    pub fn release(&mut self) {
        if self.control.is_empty() && self.control.capacity() > 64 {
            self.control = VecDeque::new();
        }
        self.again.release();
        self.fresh.release();
    }

    /// Releases unused memory.
    pub fn release_all(&mut self) {
        self.control.shrink_to_fit();
        self.events.shrink_to_fit();
        self.again.shrink();
        self.fresh.shrink();
    }

    /// Adds a readable event.
    #[inline]
    pub fn readable(&mut self, stream: &mut Stream) {
        if !stream.readable_told {
            stream.readable_told = true;
            self.events.push_back(StreamEvent::Readable(stream.id));
        }
    }
    /// Adds a writable event: the buffer has space, or the peer stopped reading.
    pub fn writable(&mut self, stream: &mut Stream) {
        if !stream.writable_told {
            stream.writable_told = true;
            self.events.push_back(StreamEvent::Writable(stream.id));
        }
    }
}
