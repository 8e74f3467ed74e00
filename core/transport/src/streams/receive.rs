//! The receiving half of a stream: takes bytes in any order, returns them in order.
//!
//! In-order data are in one buffer, which is freed when everything has been read. Data behind a gap are kept in pieces,
//! and are read from there after the gap has closed. Memory is proportional to the bytes received, and flow control
//! limits it.

use super::flow_control::{ReceiveWindow, Total};
use super::reassembly::Reassembly;
use super::{KEPT, Read, StreamError, Violation};
use std::collections::VecDeque;

/// Limit on pieces behind gaps, plus one piece per `BYTES_PER_PIECE` of the window, for one stream and for all. A
/// conforming sender stays far below. Without a limit pieces could take more memory than data.
const MAX_PIECES: u64 = 1024;
const BYTES_PER_PIECE: u64 = 128;
/// A new buffer is as large as the last one's highest use, up to this.
const MAX_USUAL: usize = 64 << 10;

const BEYOND: Violation = Violation { code: 2, why: "more data than the limits permit" };
const SIZE: Violation = Violation { code: 3, why: "a stream's final size changed" };
const TORN: Violation = Violation { code: 2, why: "a stream in too many pieces" };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiveState {
    Open,
    /// The peer reset the stream with this code.
    Reset(u64),
    /// This end stopped reading.
    Stopped,
}

#[derive(Debug)]
pub(super) struct Receiving {
    /// `came` is the highest offset, `taken` the bytes read.
    pub window: ReceiveWindow,
    /// Bytes from `window.taken` on.
    buffer: VecDeque<u8>,
    /// All bytes below have arrived; those that are not in the buffer are in pieces.
    ready: u64,
    /// Bytes that arrived behind a gap, which may have closed since.
    ahead: Reassembly,
    size: Option<u64>,
    state: ReceiveState,
    /// Highest number of waiting bytes since the buffer was last empty.
    peak: usize,
    /// That number for the time before: as many may wait again.
    usual: usize,
    /// Whether the end or reset was reported to the application.
    is_reported: bool,
    /// Code of a STOP to be sent.
    pub stop: Option<u64>,
    stop_code: u64,
    /// Whether the application waits for an event.
    pub wants: bool,
}

impl Receiving {
    /// With an empty buffer.
    pub fn new(window: u64, buffer: VecDeque<u8>) -> Receiving {
        Receiving {
            window: ReceiveWindow::new(window),
            buffer,
            ready: 0,
            ahead: Reassembly::default(),
            size: None,
            state: ReceiveState::Open,
            peak: 0,
            usual: 0,
            is_reported: false,
            stop: None,
            stop_code: 0,
            wants: true,
        }
    }

    /// Handles data from the peer. Returns whether more can be read than before.
    #[inline]
    pub fn data(
        &mut self,
        offset: u64,
        data: &[u8],
        fin: bool,
        all: &mut Total,
    ) -> Result<bool, Violation> {
        let end = offset.saturating_add(data.len() as u64);
        let fits = match self.size {
            Some(size) => end <= size && (!fin || end == size),
            None => !fin || end >= self.window.came(),
        };
        if !fits {
            return Err(SIZE);
        }
        let before = self.ready;
        self.advance(end, all)?;
        let ended = fin && self.size.is_none();
        if fin {
            self.size = Some(end);
        }
        if self.state != ReceiveState::Open {
            self.drop_all(all);
            return Ok(false);
        }
        if end > self.ready {
            let from = offset.max(self.ready);
            let new = data.get((from - offset) as usize..).unwrap_or_default();
            // If the end arrives before its data, there are no bytes to keep.
            if from == self.ready && self.ahead.is_empty() {
                self.append(new);
                self.ready = end;
            } else if !new.is_empty() {
                self.keep(from, new, all)?;
            }
        }
        Ok(self.ready > before || ended && self.size == Some(self.ready))
    }

    /// Raises the highest offset to at least `end`.
    #[inline]
    fn advance(&mut self, end: u64, all: &mut Total) -> Result<(), Violation> {
        let more = end.saturating_sub(self.window.came());
        if more > self.window.room() || more > all.window.room() {
            return Err(BEYOND);
        }
        self.window.come(more);
        all.window.come(more);
        Ok(())
    }

    #[inline]
    fn append(&mut self, data: &[u8]) {
        self.reserve(self.buffer.len() + data.len());
        self.buffer.extend(data);
    }

    #[inline]
    fn reserve(&mut self, bytes: usize) {
        let capacity = self.buffer.capacity();
        if bytes > capacity {
            let most = usize::try_from(self.window.size()).unwrap_or(usize::MAX);
            let target = bytes.max((2 * capacity).max(self.usual).min(most));
            self.buffer.reserve_exact(target - self.buffer.len());
        }
    }

    /// Keeps data that follow a gap, or that fill one.
    fn keep(&mut self, from: u64, data: &[u8], all: &mut Total) -> Result<(), Violation> {
        let sent_frames = self.ahead.len();
        let buffered = self.window.taken() + self.buffer.len() as u64;
        let mut rest = data;
        if from == self.ready && from == buffered {
            // It fills the gap after the buffer, at least partly.
            let gap = self.ahead.start().map_or(u64::MAX, |start| start - from);
            let (front, back) = data.split_at(gap.min(data.len() as u64) as usize);
            self.append(front);
            self.ready += front.len() as u64;
            rest = back;
        }
        self.ahead.insert(from + (data.len() - rest.len()) as u64, rest);
        while let Some(end) = self.ahead.end_around(self.ready) {
            self.ready = end;
        }
        all.sent_frames = all.sent_frames + self.ahead.len() - sent_frames;
        let is_torn = |sent_frames: usize, window: &ReceiveWindow| {
            sent_frames as u64 > MAX_PIECES + window.size() / BYTES_PER_PIECE
        };
        if is_torn(self.ahead.len(), &self.window) || is_torn(all.sent_frames, &all.window) {
            return Err(TORN);
        }
        Ok(())
    }

    /// Handles the peer's reset. Returns whether it must be reported to the application.
    pub fn reset(&mut self, code: u64, size: u64, all: &mut Total) -> Result<bool, Violation> {
        if self.size.is_some_and(|known| known != size) || size < self.window.came() {
            return Err(SIZE);
        }
        self.advance(size, all)?;
        // A stream that arrived completely, with its end, cannot be reset.
        let whole = self.size.replace(size) == Some(self.ready);
        if self.state == ReceiveState::Open && !whole {
            self.state = ReceiveState::Reset(code);
            self.drop_all(all);
            return Ok(true);
        }
        if self.state == ReceiveState::Stopped {
            self.drop_all(all);
        }
        Ok(false)
    }

    /// Marks the reset as reported.
    pub fn know_reset(&mut self) {
        self.is_reported = true;
    }

    /// Stops reading, for the application.
    pub fn stop(&mut self, code: u64, all: &mut Total) -> Result<(), StreamError> {
        if self.state == ReceiveState::Stopped || self.is_reported {
            return Err(StreamError::Finished);
        }
        if self.size.is_none() {
            self.stop = Some(code);
            self.stop_code = code;
        }
        self.state = ReceiveState::Stopped;
        self.drop_all(all);
        Ok(())
    }
    /// Handles the loss of a STOP. Returns whether it must be repeated.
    pub fn stop_lost(&mut self) -> bool {
        let again = self.state == ReceiveState::Stopped && self.size.is_none();
        if again {
            self.stop = Some(self.stop_code);
        }
        again
    }

    /// Drops all waiting data, as if they had been read.
    fn drop_all(&mut self, all: &mut Total) {
        let more = self.window.came() - self.window.taken();
        self.window.take(more);
        all.window.take(more);
        all.sent_frames -= self.ahead.len();
        self.buffer = VecDeque::new();
        self.ahead.clear();
        self.ready = self.window.came();
    }

    /// Passes at most `most` bytes to `put`, in pieces.
    pub fn read(
        &mut self,
        most: usize,
        put: &mut dyn FnMut(&[u8]),
        all: &mut Total,
    ) -> Result<Read, StreamError> {
        match self.state {
            ReceiveState::Open => {}
            ReceiveState::Stopped => return Err(StreamError::Finished),
            ReceiveState::Reset(code) => {
                self.is_reported = true;
                return Err(StreamError::Reset(code));
            }
        }
        let waiting = (self.ready - self.window.taken()) as usize;
        if waiting == 0 {
            if self.size == Some(self.ready) {
                self.is_reported = true;
                return Ok(Read::End);
            }
            self.wants = true;
            return Ok(Read::Blocked);
        }
        let most = waiting.min(most);
        let mut n = 0;
        while n < most {
            if self.buffer.is_empty() {
                let Some(piece) = self.ahead.take(self.window.taken()) else { break };
                all.sent_frames -= 1;
                self.buffer = VecDeque::from(piece);
            }
            n += self.take(most - n, put, all);
        }
        self.wants |= n == waiting;
        Ok(if n > 0 { Read::Bytes(n) } else { Read::Blocked })
    }

    /// Takes at most `most` bytes out of the buffer. Returns their number.
    fn take(&mut self, most: usize, put: &mut dyn FnMut(&[u8]), all: &mut Total) -> usize {
        let n = most.min(self.buffer.len());
        self.peak = self.peak.max(self.buffer.len());
        let (front, back) = self.buffer.as_slices();
        let cut = front.len().min(n);
        put(front.get(..cut).unwrap_or_default());
        if let Some(rest) = back.get(..n - cut).filter(|rest| !rest.is_empty()) {
            put(rest);
        }
        self.buffer.drain(..n);
        all.read += n as u64;
        all.window.take(n as u64);
        self.window.grow(all.of_stream);
        self.window.take(n as u64);
        if self.buffer.is_empty() {
            self.usual = std::mem::take(&mut self.peak).min(MAX_USUAL);
            if self.buffer.capacity() > KEPT {
                self.buffer = VecDeque::new();
            }
        }
        n
    }

    /// Whether only the end is left to read.
    pub fn only_end_left(&self) -> bool {
        self.state == ReceiveState::Open
            && !self.is_reported
            && self.size == Some(self.window.taken())
    }
    /// Whether a greater limit is to be sent to the peer.
    #[inline]
    pub fn must_grant(&self) -> bool {
        self.window.is_pending() && self.size.is_none() && self.state == ReceiveState::Open
    }
    /// Whether STOP is to be sent.
    #[inline]
    pub fn must_stop(&self) -> bool {
        self.stop.is_some() && self.size.is_none()
    }
    /// Whether this direction is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_reported || self.state == ReceiveState::Stopped && self.size.is_some()
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
        self.ahead.clear();
    }
    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + self.ahead.memory()
    }
}
