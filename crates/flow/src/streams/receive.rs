//! The receiving half of a stream: bytes in any order in, in order out.
//!
//! One buffer holds everything from what was read to the highest byte that came, with ranges for
//! what of it is there. Its size is bounded by what flow control granted, so a gap is never an
//! error. It is given back when all is read.

use super::flow_control::Window;
use super::{KEPT, Read, StreamError, Violation};
use crate::ranges::Ranges;
use std::collections::VecDeque;

/// A peer may leave so many holes, and one more per so many bytes of the window. One that repairs
/// its losses stays far below; without a bound ranges could take more memory than data.
const HOLES: u64 = 1024;
const BYTES_PER_HOLE: u64 = 256;

const BEYOND: Violation = Violation { code: 2, why: "more data than the limits permit" };
const SIZE: Violation = Violation { code: 3, why: "a stream's final size changed" };
const TORN: Violation = Violation { code: 2, why: "a stream in too many pieces" };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// The peer gave up, with this code.
    Reset(u64),
    /// This end wants no more.
    Stopped,
}

#[derive(Debug)]
pub(super) struct Receiving {
    /// `came` is the highest offset, `taken` what was read.
    pub window: Window,
    /// Bytes from `window.taken` to `window.came`, zeros where some are missing.
    buffer: VecDeque<u8>,
    /// All below came.
    ready: u64,
    /// What came above it.
    ahead: Ranges,
    size: Option<u64>,
    state: State,
    /// Most bytes that waited since the buffer was last empty.
    peak: usize,
    /// And before: as many may wait again.
    usual: usize,
    /// The application was told of the end or reset.
    told: bool,
    /// The code of a STOP that must be said.
    pub stop: Option<u64>,
    stop_code: u64,
    /// Whether the application waits for an event.
    pub wants: bool,
}

impl Receiving {
    pub fn new(window: u64) -> Receiving {
        Receiving {
            window: Window::new(window),
            buffer: VecDeque::new(),
            ready: 0,
            ahead: Ranges::default(),
            size: None,
            state: State::Open,
            peak: 0,
            usual: 0,
            told: false,
            stop: None,
            stop_code: 0,
            wants: true,
        }
    }

    /// Data of the peer. Whether there is something to read that was not there before.
    #[inline]
    pub fn data(
        &mut self,
        offset: u64,
        data: &[u8],
        fin: bool,
        all: &mut Window,
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
        if self.state != State::Open {
            self.drop_all(all);
            return Ok(false);
        }
        if end > self.ready {
            let from = offset.max(self.ready);
            let new = data.get((from - offset) as usize..).unwrap_or_default();
            // An end that comes before its data brings none: nothing is to be kept of it.
            if from == self.ready && self.ahead.is_empty() {
                self.append(new);
                self.ready = end;
            } else if !new.is_empty() {
                self.keep(from, new)?;
            }
        }
        Ok(self.ready > before || ended && self.size == Some(self.ready))
    }

    /// The highest offset is at least this.
    #[inline]
    fn advance(&mut self, end: u64, all: &mut Window) -> Result<(), Violation> {
        let more = end.saturating_sub(self.window.came());
        if more > self.window.room() || more > all.room() {
            return Err(BEYOND);
        }
        self.window.come(more);
        all.come(more);
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

    /// Keeps what came out of order.
    fn keep(&mut self, from: u64, data: &[u8]) -> Result<(), Violation> {
        let end = from + data.len() as u64;
        let read = self.window.taken();
        let highest = read + self.buffer.len() as u64;
        if from >= highest {
            self.reserve((end - read) as usize);
            self.buffer.resize((from - read) as usize, 0);
            self.buffer.extend(data);
            self.ahead.insert(from, end, |_, _| ());
        } else {
            if end > highest {
                self.reserve((end - read) as usize);
                self.buffer.resize((end - read) as usize, 0);
            }
            let buffer = &mut self.buffer;
            self.ahead.insert(from, end, |a, b| {
                let new = data.get((a - from) as usize..(b - from) as usize);
                put_at(buffer, (a - read) as usize, new.unwrap_or_default());
            });
        }
        if let Some(end) = self.ahead.take_from(self.ready) {
            self.ready = end;
        }
        if self.ahead.len() as u64 > HOLES + self.window.size() / BYTES_PER_HOLE {
            return Err(TORN);
        }
        Ok(())
    }

    /// The peer gives up. Whether the application has something to learn from it.
    pub fn reset(&mut self, code: u64, size: u64, all: &mut Window) -> Result<bool, Violation> {
        if self.size.is_some_and(|known| known != size) || size < self.window.came() {
            return Err(SIZE);
        }
        self.advance(size, all)?;
        // What came as a whole, its end included, is not taken back.
        let whole = self.size.replace(size) == Some(self.ready);
        if self.state == State::Open && !whole {
            self.state = State::Reset(code);
            self.drop_all(all);
            return Ok(true);
        }
        if self.state == State::Stopped {
            self.drop_all(all);
        }
        Ok(false)
    }

    /// The application wants no more.
    pub fn stop(&mut self, code: u64, all: &mut Window) -> Result<(), StreamError> {
        if self.state == State::Stopped || self.told {
            return Err(StreamError::Finished);
        }
        if self.size.is_none() {
            self.stop = Some(code);
            self.stop_code = code;
        }
        self.state = State::Stopped;
        self.drop_all(all);
        Ok(())
    }
    /// A STOP got lost; whether it must be said again.
    pub fn stop_lost(&mut self) -> bool {
        let again = self.state == State::Stopped && self.size.is_none();
        if again {
            self.stop = Some(self.stop_code);
        }
        again
    }

    /// Forgets what waits, as if it had been read.
    fn drop_all(&mut self, all: &mut Window) {
        let more = self.window.came() - self.window.taken();
        self.window.take(more);
        all.take(more);
        self.buffer = VecDeque::new();
        self.ahead.clear();
        self.ready = self.window.came();
    }

    pub fn read(&mut self, into: &mut [u8], all: &mut Window) -> Result<Read, StreamError> {
        match self.state {
            State::Open => {}
            State::Stopped => return Err(StreamError::Finished),
            State::Reset(code) => {
                self.told = true;
                return Err(StreamError::Reset(code));
            }
        }
        let waiting = (self.ready - self.window.taken()) as usize;
        if waiting == 0 {
            if self.size == Some(self.ready) {
                self.told = true;
                return Ok(Read::End);
            }
            self.wants = true;
            return Ok(Read::Blocked);
        }
        let n = waiting.min(into.len());
        if n == 0 {
            return Ok(Read::Blocked);
        }
        self.peak = self.peak.max(self.buffer.len());
        copy_out(&self.buffer, into, n);
        self.buffer.drain(..n);
        self.window.take(n as u64);
        all.take(n as u64);
        if self.buffer.is_empty() {
            self.usual = std::mem::take(&mut self.peak);
            if self.buffer.capacity() > KEPT {
                self.buffer = VecDeque::new();
                self.ahead = Ranges::default();
            }
        }
        self.wants |= n == waiting;
        Ok(Read::Bytes(n))
    }

    /// Whether the end is all that there is left to read.
    pub fn only_end_left(&self) -> bool {
        self.state == State::Open && !self.told && self.size == Some(self.window.taken())
    }
    /// Whether the peer should be told of a greater limit.
    #[inline]
    pub fn must_grant(&self) -> bool {
        self.window.is_pending() && self.size.is_none() && self.state == State::Open
    }
    /// Whether a STOP must be said.
    #[inline]
    pub fn must_stop(&self) -> bool {
        self.stop.is_some() && self.size.is_none()
    }
    /// Whether nothing more will happen.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.told || self.state == State::Stopped && self.size.is_some()
    }
    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + self.ahead.len() * 16
    }
}

fn put_at(buffer: &mut VecDeque<u8>, at: usize, data: &[u8]) {
    let (front, back) = buffer.as_mut_slices();
    let cut = front.len().saturating_sub(at).min(data.len());
    let (first, second) = data.split_at(cut);
    if let Some(place) = front.get_mut(at..at + first.len()) {
        place.copy_from_slice(first);
    }
    let at = (at + cut).saturating_sub(front.len());
    if let Some(place) = back.get_mut(at..at + second.len()) {
        place.copy_from_slice(second);
    }
}

/// The first `n` bytes, of which there are as many on both sides.
fn copy_out(buffer: &VecDeque<u8>, into: &mut [u8], n: usize) {
    let (front, back) = buffer.as_slices();
    let cut = front.len().min(n);
    let (first, rest) = into.split_at_mut(cut);
    first.copy_from_slice(front.get(..cut).unwrap_or_default());
    if let (Some(place), Some(bytes)) = (rest.get_mut(..n - cut), back.get(..n - cut)) {
        place.copy_from_slice(bytes);
    }
}
