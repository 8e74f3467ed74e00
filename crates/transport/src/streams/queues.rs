//! Which streams have something to send, and what the application must hear.

use super::StreamEvent;
use super::open::Stream;
use std::collections::VecDeque;

/// Every stream is at most once in each list; a flag of the stream says so. An entry may be out of
/// date: whoever takes it looks.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Something other than data.
    pub control: VecDeque<u64>,
    /// Lost data, or an end alone: what needs no credit.
    pub again: VecDeque<u64>,
    /// New data that the stream's own limit permits.
    pub fresh: VecDeque<u64>,
    /// At most one of a kind for each stream.
    pub events: VecDeque<StreamEvent>,
    /// Streams opened by the peer that no event told yet.
    pub opened: u64,
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
        enter(&mut self.control, &mut stream.in_control, stream.id, must);
        let Some(half) = &stream.send else { return };
        let (again, fresh, busy) =
            (half.may_retransmit(), half.next_new().is_some(), half.is_busy());
        enter(&mut self.again, &mut stream.in_again, stream.id, again);
        enter(&mut self.fresh, &mut stream.in_fresh, stream.id, fresh);
        if busy != stream.is_counted {
            stream.is_counted = busy;
            self.busy = if busy { self.busy + 1 } else { self.busy.saturating_sub(1) };
        }
    }

    /// Bytes of its lists.
    pub fn memory(&self) -> usize {
        let lists = [&self.control, &self.again, &self.fresh];
        let lists: usize = lists.iter().map(|list| list.capacity() * 8).sum();
        lists + self.events.capacity() * size_of::<StreamEvent>()
    }

    /// Out of all lists. Rarely is it in one: what is over has nothing to send.
    pub fn forget(&mut self, stream: &Stream) {
        let leave = |list: &mut VecDeque<u64>, is_in: bool| {
            if is_in {
                list.retain(|id| *id != stream.id);
            }
        };
        leave(&mut self.control, stream.in_control);
        leave(&mut self.again, stream.in_again);
        leave(&mut self.fresh, stream.in_fresh);
        if stream.is_counted {
            self.busy = self.busy.saturating_sub(1);
        }
        self.withdraw(stream);
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
        for list in [&mut self.control, &mut self.again, &mut self.fresh] {
            if list.is_empty() && list.capacity() > 64 {
                *list = VecDeque::new();
            }
        }
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

#[inline]
fn enter(list: &mut VecDeque<u64>, is_in: &mut bool, id: u64, must: bool) {
    if must && !*is_in {
        *is_in = true;
        list.push_back(id);
    }
}
