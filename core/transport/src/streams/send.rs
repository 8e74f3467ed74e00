//! The sending half of a stream: written bytes are kept until they are acknowledged. Lost ones are retransmitted in any
//! later packet.

use super::flow_control::Credit;
use super::send_buffer::{SendBuffers, StreamBuffer};
use super::{KEPT, StreamError};
use narrows_recovery::ranges::Ranges;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct SendHalf {
    /// Bytes from `base` on: not all acknowledged, or not sent.
    buffer: VecDeque<u8>,
    /// All bytes below are acknowledged.
    base: u64,
    /// Acknowledged ranges above `base`.
    arrived: Ranges,
    /// Ranges to retransmit. Parts of them may have been acknowledged since.
    lost: Ranges,
    /// `used` is the offset of the next new byte.
    pub credit: Credit,
    finished: bool,
    fin_sent: bool,
    fin_arrived: bool,
    /// The code of this end's reset.
    reset: Option<u64>,
    reset_sent: bool,
    reset_arrived: bool,
    /// The code of the peer's STOP.
    stopped: Option<u64>,
    /// Whether the application reset the stream, or was informed of the peer's STOP.
    told: bool,
    /// Whether a write took only part of its data.
    wants_room: bool,
    /// Whether one did since all bytes had arrived.
    was_full: bool,
    room: StreamBuffer,
}

impl SendHalf {
    /// With an empty buffer.
    pub fn new(most: u64, buffer: VecDeque<u8>) -> SendHalf {
        SendHalf {
            buffer,
            base: 0,
            arrived: Ranges::default(),
            lost: Ranges::default(),
            credit: Credit::new(most),
            finished: false,
            fin_sent: false,
            fin_arrived: false,
            reset: None,
            reset_sent: false,
            reset_arrived: false,
            stopped: None,
            told: false,
            wants_room: false,
            was_full: false,
            room: StreamBuffer::default(),
        }
    }

    #[inline]
    fn written(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    fn check(&mut self) -> Result<(), StreamError> {
        if self.told || self.finished {
            return Err(self.stopped.map_or(StreamError::Finished, StreamError::Stopped));
        }
        if let Some(code) = self.stopped {
            self.told = true;
            return Err(StreamError::Stopped(code));
        }
        Ok(())
    }

    /// Takes as much data as the buffer has space for.
    #[inline]
    pub fn write(&mut self, data: &[u8], held: &SendBuffers) -> Result<usize, StreamError> {
        self.check()?;
        let bound = held.bound(&self.room, self.buffer.len());
        let n = bound.saturating_sub(self.buffer.len()).min(data.len());
        self.wants_room |= n < data.len();
        self.was_full |= n < data.len();
        let bytes = self.buffer.len() + n;
        let capacity = self.buffer.capacity();
        if bytes > capacity {
            self.buffer.reserve_exact(bytes.max((2 * capacity).min(bound)) - self.buffer.len());
        } else if capacity > 2 * bound.max(KEPT) && bytes <= bound {
            // A ring buffer uses all of its capacity, even for few bytes. It is not shrunk while it holds more than the
            // bound, because each attempt to write would copy all of that.
            self.buffer.shrink_to(bound);
        }
        self.buffer.extend(data.get(..n).unwrap_or_default());
        if n < data.len() {
            self.room.filled();
        }
        Ok(n)
    }
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.check()?;
        self.finished = true;
        Ok(())
    }
    pub fn reset(&mut self, code: u64) -> Result<(), StreamError> {
        if self.told || self.all_arrived() {
            return Err(StreamError::Finished);
        }
        self.told = true;
        // After a STOP it is already reset.
        if self.reset.is_none() {
            self.give_up(code);
        }
        Ok(())
    }
    /// Handles the peer's STOP. Returns whether it had an effect.
    pub fn stop(&mut self, code: u64) -> bool {
        if self.reset.is_some() || self.all_arrived() {
            return false;
        }
        self.stopped = Some(code);
        self.told = self.finished;
        self.wants_room = false;
        self.give_up(code);
        true
    }
    fn give_up(&mut self, code: u64) {
        self.reset = Some(code);
        self.base = self.credit.used();
        self.buffer = VecDeque::new();
        self.arrived.clear();
        self.lost.clear();
    }

    /// The first range of unacknowledged bytes in `[from, to)`.
    fn missing(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let mut from = from.max(self.base);
        if let Some((_, end)) = self.arrived.find(from) {
            from = end;
        }
        let to = self.arrived.next_start(from).map_or(to, |start| to.min(start));
        (from < to).then_some((from, to))
    }
    /// Whether a retransmission, or the end alone, may have to be sent.
    #[inline]
    pub fn may_retransmit(&self) -> bool {
        !self.lost.is_empty() || self.is_end_due()
    }
    #[inline]
    fn is_end_due(&self) -> bool {
        self.finished
            && !self.fin_sent
            && self.reset.is_none()
            && self.credit.used() == self.written()
    }
    /// The next range that needs no credit: lost bytes, or the end alone (an empty range).
    pub fn next_retransmission(&mut self) -> Option<(u64, u64)> {
        loop {
            let Some((from, to)) = self.lost.iter().next() else { break };
            let piece = self.missing(from, to);
            self.lost.trim_below(piece.map_or(to, |p| p.0));
            if piece.is_some() {
                return piece;
            }
        }
        self.is_end_due().then(|| (self.written(), self.written()))
    }
    /// Bytes to retransmit; some of them may have been acknowledged since.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.iter().map(|(from, to)| to - from).sum()
    }
    /// Whether the application probably writes more than it has written: its writes have filled the buffer, and it has
    /// not emptied since.
    pub fn is_endless(&self) -> bool {
        self.was_full && !self.finished && self.reset.is_none()
    }
    /// The next range of new bytes, within this stream's limit.
    #[inline]
    pub fn next_new(&self) -> Option<(u64, u64)> {
        let from = self.credit.used();
        let to = self.written().min(self.credit.most());
        (from < to).then_some((from, to))
    }
    /// The bytes of a range as far as they are contiguous in memory; at least one, unless it is empty.
    #[inline]
    pub fn bytes(&self, from: u64, to: u64) -> &[u8] {
        let (front, back) = self.buffer.as_slices();
        let at = (from - self.base) as usize;
        let end = (to - self.base) as usize;
        let slice = match at.checked_sub(front.len()) {
            Some(at) => back.get(at..end - front.len()),
            None => front.get(at..end.min(front.len())),
        };
        slice.unwrap_or_default()
    }
    /// Whether the stream ends at this offset.
    #[inline]
    pub fn ends_at(&self, to: u64) -> bool {
        self.finished && to == self.written()
    }
    /// Records the retransmission up to `to`, of a range from [`next_retransmission`](SendHalf::next_retransmission).
    pub fn on_retransmitted(&mut self, to: u64) {
        self.lost.trim_below(to);
        self.fin_sent |= self.ends_at(to);
    }
    /// Records that `n` new bytes were sent.
    #[inline]
    pub fn on_sent(&mut self, n: u64) {
        self.credit.spend(n);
        self.room.under_way(self.under_way());
        self.fin_sent |= self.ends_at(self.credit.used());
    }

    /// Bytes acknowledged in order.
    #[inline]
    pub fn in_order(&self) -> u64 {
        self.base
    }
    /// Bytes in the buffer.
    #[inline]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }
    /// Bytes from the first unacknowledged one to the last sent.
    #[inline]
    fn under_way(&self) -> usize {
        (self.credit.used() - self.base) as usize
    }
    /// Handles the acknowledgement of a frame. Returns whether it completes the stream, including its end.
    #[inline]
    pub fn arrived(&mut self, offset: u64, length: u32, fin: bool) -> bool {
        if self.reset.is_some() || self.all_arrived() {
            return false;
        }
        self.room.under_way(self.under_way());
        self.fin_arrived |= fin;
        let to = offset.saturating_add(u64::from(length)).min(self.credit.used());
        let before = self.base;
        let mut base = before;
        if offset <= base && self.arrived.is_empty() {
            base = base.max(to);
        } else {
            self.arrived.insert(offset.max(base), to, |_, _| ());
            base = self.arrived.take_from(base).unwrap_or(base);
        }
        self.buffer.drain(..(base - before) as usize);
        self.base = base;
        self.was_full &= !self.buffer.is_empty();
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = VecDeque::new();
            self.arrived = Ranges::default();
            self.lost = Ranges::default();
        } else if self.buffer.capacity() > 8 * self.buffer.len().max(KEPT) {
            // The rest may remain for long, as the peer decides.
            self.buffer.shrink_to(2 * self.buffer.len());
        }
        self.all_arrived()
    }
    /// Handles the loss of a frame. Returns whether a part of it must be retransmitted.
    pub fn lost(&mut self, offset: u64, length: u32, fin: bool) -> bool {
        if self.reset.is_some() {
            return false;
        }
        let to = offset.saturating_add(u64::from(length)).min(self.credit.used());
        let piece = self.missing(offset, to);
        if let Some((from, _)) = piece {
            // Acknowledged parts are left out at retransmission.
            self.lost.insert(from, to, |_, _| ());
        }
        let end = fin && !self.fin_arrived;
        self.fin_sent &= !end;
        piece.is_some() || end
    }

    /// Code and size of a RESET_STREAM to be sent.
    #[inline]
    pub fn must_reset(&self) -> Option<(u64, u64)> {
        self.reset.filter(|_| !self.reset_sent).map(|code| (code, self.credit.used()))
    }
    pub fn reset_left(&mut self) {
        self.reset_sent = true;
    }
    pub fn reset_arrived(&mut self) {
        self.reset_arrived = true;
    }
    /// Handles the loss of RESET_STREAM. Returns whether it must be repeated.
    pub fn reset_lost(&mut self) -> bool {
        self.reset_sent &= self.reset_arrived;
        !self.reset_arrived
    }

    /// Whether to report to the peer that its limit blocks this stream.
    #[inline]
    pub fn must_say_blocked(&self) -> bool {
        self.written() > self.credit.most() && self.credit.must_say()
    }
    /// Whether a waiting writer can continue: a quarter of the bound is free, so that it writes in bulk.
    #[inline]
    pub fn has_room_again(&mut self, held: &SendBuffers) -> bool {
        let bound = held.bound(&self.room, self.buffer.len());
        let room = bound.saturating_sub(self.buffer.len());
        let yes = self.wants_room && room > 0 && room >= bound / 4;
        self.wants_room &= !yes;
        yes
    }
    fn all_arrived(&self) -> bool {
        self.fin_arrived && self.buffer.is_empty()
    }
    /// Whether data, the end or a reset are in flight.
    #[inline]
    pub fn is_busy(&self) -> bool {
        match self.reset {
            Some(_) => self.reset_sent && !self.reset_arrived,
            None => self.base < self.credit.used() || self.fin_sent && !self.fin_arrived,
        }
    }
    /// Whether this direction is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        match self.reset {
            Some(_) => self.reset_arrived && self.told,
            None => self.all_arrived(),
        }
    }
    /// The buffer of a closed stream, for reuse.
    pub fn take_buffer(&mut self) -> VecDeque<u8> {
        std::mem::take(&mut self.buffer)
    }
    /// Releases the memory of a closed stream, except a buffer of up to `buffer` bytes.
    #[inline]
    pub fn shrink(&mut self, buffer: usize) {
        if self.buffer.capacity() > buffer {
            self.buffer = VecDeque::new();
        }
        self.arrived = Ranges::default();
        self.lost = Ranges::default();
    }
    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + (self.arrived.len() + self.lost.len()) * 16
    }
}
