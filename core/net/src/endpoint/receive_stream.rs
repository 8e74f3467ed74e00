//! The receiving half of a stream, asynchronous by tokio's trait, which needs no runtime.

use super::blocking::Blocking;
use super::connection_ref::ConnectionRef;
use super::shared::MAX_LOCKED;
use super::state::AppConnection;
use crate::block::block_on;
use crate::error::Error;
use narrows_transport::streams::Read;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The receiving half of a stream. Dropping it before its end stops the stream.
#[derive(Debug)]
pub struct ReceiveStream {
    hold: Arc<ConnectionRef>,
    id: u64,
    over: bool,
}

impl ReceiveStream {
    /// For a stream that has an entry in the connection's stream table.
    pub(super) fn new(hold: Arc<ConnectionRef>, id: u64) -> ReceiveStream {
        ReceiveStream { hold, id, over: false }
    }

    /// The stream id within the connection.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// At a server that accepts early data: whether this stream's data came with the client's first packet. A copy of
    /// that packet is not accepted again. However, a client without an answer repeats the request on another
    /// connection, where it is executed a second time. So the application should do only repeatable work for such a
    /// stream. Also true if the connection has ended, so that this is unknown.
    pub fn is_early(&self) -> bool {
        let id = self.id;
        self.hold.look(|machine, _| machine.is_early(id)).unwrap_or(true)
    }

    /// Reads available data, at least one byte; 0 means the end of the stream.
    ///
    /// # Errors
    /// The peer reset the stream, or the connection is over.
    pub fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, Error>> {
        let max = into.len();
        let mut at = 0;
        self.poll_with(context, max, &mut |piece| {
            if let Some(place) = into.get_mut(at..at + piece.len()) {
                place.copy_from_slice(piece);
                at += piece.len();
            }
        })
    }

    /// Passes available data to `put`, at least one byte and at most `max`; 0 is the stream's end.
    fn poll_with(
        &mut self,
        context: &mut Context<'_>,
        max: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<usize, Error>> {
        if max == 0 || self.over {
            return Poll::Ready(Ok(0));
        }
        let id = self.id;
        let read = {
            let mut core = self.hold.shared().lock();
            let left = core.any_life(self.hold.handle).and_then(|l| left(l, id, max, put));
            if let Some(count) = left {
                return Poll::Ready(Ok(count));
            }
            let (endpoint, state) = core.parts(self.hold.handle)?;
            let read =
                endpoint.inspect(self.hold.handle, |machine| machine.read_with(id, max, put));
            let read = read.ok_or(Error::Closed)??;
            if read == Read::Blocked {
                state.streams.wait_for_data(id, context.waker());
            }
            read
        };
        match read {
            Read::Bytes(count) => {
                // The peer's flow control limit may rise.
                self.hold.shared().kick();
                Poll::Ready(Ok(count))
            }
            Read::Blocked => Poll::Pending,
            Read::End => {
                self.over = true;
                self.hold.shared().kick();
                Poll::Ready(Ok(0))
            }
        }
    }

    /// Reads available data, at least one byte; 0 means the end of the stream.
    ///
    /// # Errors
    /// The peer reset the stream, or the connection is over.
    pub async fn receive(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_receive(context, into)).await
    }

    /// Reads available data, at least one and at most `max` bytes, into a new vector; `None` means the end of the
    /// stream.
    ///
    /// # Errors
    /// The peer reset the stream, or the connection is over.
    pub async fn receive_chunk(&mut self, max: usize) -> Result<Option<Vec<u8>>, Error> {
        let max = max.clamp(1, MAX_LOCKED);
        let mut chunk = Vec::new();
        poll_fn(|context| {
            self.poll_with(context, max, &mut |piece| chunk.extend_from_slice(piece))
        })
        .await?;
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    /// Reads to the end of the stream, which must be at most `max` bytes long.
    ///
    /// # Errors
    /// The stream is longer, the peer reset it, or the connection is over.
    pub async fn receive_all(&mut self, max: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        loop {
            // One byte more than permitted detects a longer stream.
            let room = (max - all.len()).saturating_add(1).min(MAX_LOCKED);
            let count = poll_fn(|context| {
                self.poll_with(context, room, &mut |piece| all.extend_from_slice(piece))
            })
            .await?;
            if count == 0 {
                return Ok(all);
            }
            if all.len() > max {
                let _ = self.stop(0);
                return Err(Error::TooLong { max });
            }
        }
    }

    /// Stops the stream: requests the peer to send no more (STOP).
    ///
    /// # Errors
    /// The stream or the connection is over.
    pub fn stop(&mut self, code: u64) -> Result<(), Error> {
        let id = self.id;
        self.over = true;
        self.hold.with(|machine, _| machine.stop(id, code))??;
        Ok(())
    }

    /// Converts into the blocking form.
    pub fn blocking(self) -> Blocking<ReceiveStream> {
        Blocking(self)
    }
}

/// Reads the data that an ended connection kept for a stream: `None` if there was no such data, or if all of it was
/// read and the stream's end never arrived.
fn left(
    state: &mut AppConnection,
    id: u64,
    max: usize,
    put: &mut dyn FnMut(&[u8]),
) -> Option<usize> {
    let rest = state.unread.get_mut(&id)?;
    let piece = rest.bytes.as_slices().0;
    let piece = piece.get(..max).unwrap_or(piece);
    let count = piece.len();
    put(piece);
    rest.bytes.drain(..count);
    (count > 0 || rest.whole).then_some(count)
}

impl Drop for ReceiveStream {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.stop(0);
        }
        let mut core = self.hold.shared().lock();
        if let Some(state) = core.any_life(self.hold.handle) {
            state.streams.end_reading(self.id);
            state.unread.remove(&self.id);
        }
    }
}

impl AsyncRead for ReceiveStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let max = into.remaining();
        ready!(self.poll_with(context, max, &mut |piece| into.put_slice(piece)))?;
        Poll::Ready(Ok(()))
    }
}

impl io::Read for Blocking<ReceiveStream> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(block_on(self.0.receive(into))?)
    }
}
