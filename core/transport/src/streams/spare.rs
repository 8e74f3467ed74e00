//! Closed streams are kept for reuse, with their small buffers, so that a request on a new stream needs no allocation.
//! An idle connection releases them ([`Streams::release_memory`](super::Streams::release_memory)).

use super::stream::Stream;
use std::collections::VecDeque;

/// Limit on kept streams.
const MAX_SPARE: usize = 64;
/// Limit on a kept buffer in bytes.
const MAX_SPARE_BUFFER: usize = 256;

/// Closed streams.
#[derive(Debug, Default)]
pub(super) struct SpareStreams(
    #[expect(clippy::vec_box, reason = "the boxes are kept")] Vec<Box<Stream>>,
);

impl SpareStreams {
    /// A new stream with these initial limits for sending and receiving; `None` for a direction that it does not have.
    #[inline]
    pub fn make(&mut self, id: u64, credit: Option<u64>, window: Option<u64>) -> Box<Stream> {
        let Some(mut stream) = self.0.pop() else {
            return Box::new(Stream::new(id, credit, window, [VecDeque::new(), VecDeque::new()]));
        };
        let buffers = stream.take_buffers().map(|mut buffer| {
            buffer.clear();
            if buffer.capacity() > MAX_SPARE_BUFFER { VecDeque::new() } else { buffer }
        });
        *stream = Stream::new(id, credit, window, buffers);
        stream
    }
    /// Keeps a closed stream, or drops it.
    #[inline]
    pub fn keep(&mut self, mut stream: Box<Stream>) {
        if self.0.len() < MAX_SPARE {
            stream.shrink(MAX_SPARE_BUFFER);
            self.0.push(stream);
        }
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.0.iter().map(|stream| stream.memory() + size_of::<Box<Stream>>()).sum()
    }
}
