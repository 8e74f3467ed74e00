//! The sending half of a stream, asynchronous by tokio's trait, which needs no runtime.

use super::blocking::Blocking;
use super::connection_ref::ConnectionRef;
use super::shared::MAX_LOCKED;
use crate::block::block_on;
use crate::error::Error;
use narrows_transport::streams::StreamError;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// The sending half of a stream. Dropping it finishes the stream.
#[derive(Debug)]
pub struct SendStream {
    hold: Arc<ConnectionRef>,
    id: u64,
    /// Whether it was finished or reset.
    over: bool,
    /// Whether its end will leave, or has left.
    is_finished: bool,
    /// Whether a waker of this half may be stored.
    has_waited: bool,
}

impl SendStream {
    pub(super) fn new(hold: Arc<ConnectionRef>, id: u64) -> SendStream {
        SendStream { hold, id, over: false, is_finished: false, has_waited: false }
    }

    /// A stream that was finished with its first data.
    pub(super) fn finished(hold: Arc<ConnectionRef>, id: u64) -> SendStream {
        SendStream { hold, id, over: true, is_finished: true, has_waited: false }
    }

    /// The stream id within the connection.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sets the stream's priority. Among streams with data to send, including lost data, those of the highest priority
    /// go first; within a priority they take turns packet by packet. New streams have priority 0. A change applies to
    /// data that has not been sent yet. The peer does not see priorities, and messages go before all streams.
    ///
    /// A stream with a lower priority sends **no** data as long as those above it can fill all that the connection may
    /// send. A stream that is blocked by its own flow control limit, or has no data, blocks no other.
    ///
    /// ```no_run
    /// # async fn both(connection: narrows_net::Connection) -> Result<(), narrows_net::Error> {
    /// let (mut terminal, _screen) = connection.open_bi().await?;
    /// let mut upload = connection.open_uni().await?;
    /// terminal.set_priority(1)?;
    /// upload.send_all(&[0; 1 << 20]).await?;
    /// terminal.send_all(b"ls\n").await?; // is in the next packet
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The stream has arrived completely or was reset, or the connection is over.
    pub fn set_priority(&self, priority: i32) -> Result<(), Error> {
        let id = self.id;
        Ok(self.hold.look(|machine, _| machine.set_priority(id, priority))??)
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream has arrived completely or was reset, or the connection is over.
    pub fn priority(&self) -> Result<i32, Error> {
        let id = self.id;
        Ok(self.hold.look(|machine, _| machine.priority(id))??)
    }

    /// Accepts as much of `data` as fits in the send buffer, at least one byte and at most 64 KB.
    ///
    /// # Errors
    /// The peer stopped the stream, the stream is finished, or the connection is over.
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, Error>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let id = self.id;
        let data = data.get(..MAX_LOCKED).unwrap_or(data);
        let taken = self.hold.with(|machine, state| {
            let taken = machine.write(id, data);
            if taken == Ok(0) {
                state.streams.wait_to_write(id, context.waker());
            }
            taken
        })??;
        self.has_waited |= taken == 0;
        if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) }
    }

    /// Sends all of `data`.
    ///
    /// # Errors
    /// The peer stopped the stream, the stream is finished, or the connection is over.
    pub async fn send_all(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            let taken = poll_fn(|context| self.poll_send(context, data)).await?;
            data = data.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Sends all of `data` and finishes the stream. If all of it fits in the send buffer at once, data and end are sent
    /// together with either driver; after [`send_all`](SendStream::send_all) and [`finish`](SendStream::finish) a
    /// driver thread may send them in separate packets.
    ///
    /// # Errors
    /// The peer stopped the stream, the stream is finished, or the connection is over.
    pub async fn send_last(&mut self, mut data: &[u8]) -> Result<(), Error> {
        loop {
            let sent = poll_fn(|context| self.poll_send_last(context, data)).await?;
            data = data.get(sent..).unwrap_or_default();
            if self.over {
                return Ok(());
            }
        }
    }

    /// Accepts as much as fits in the send buffer; the last byte finishes the stream.
    fn poll_send_last(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let id = self.id;
        let piece = data.get(..MAX_LOCKED).unwrap_or(data);
        let (taken, is_all) = self.hold.with(|machine, state| {
            let taken = machine.write(id, piece)?;
            let is_all = taken == data.len();
            if is_all {
                machine.finish(id)?;
                state.streams.on_finished(id);
            } else if taken == 0 {
                state.streams.wait_to_write(id, context.waker());
            }
            Ok::<_, StreamError>((taken, is_all))
        })??;
        self.over = is_all;
        self.is_finished = is_all;
        self.has_waited |= taken == 0 && !is_all;
        if taken == 0 && !is_all { Poll::Pending } else { Poll::Ready(Ok(taken)) }
    }

    /// Finishes the stream: no more data will be sent.
    ///
    /// # Errors
    /// The stream was finished before, the peer stopped it, or the connection is over.
    pub fn finish(&mut self) -> Result<(), Error> {
        let id = self.id;
        self.over = true;
        self.hold.with(|machine, state| {
            machine.finish(id)?;
            state.streams.on_finished(id);
            Ok::<_, StreamError>(())
        })??;
        self.is_finished = true;
        Ok(())
    }

    /// Finishes the stream if necessary, and waits until all data have arrived at the peer.
    ///
    /// # Errors
    /// The peer stopped the stream, or the connection is over before.
    pub async fn arrived(&mut self) -> Result<(), Error> {
        if !self.over {
            self.finish()?;
        }
        poll_fn(|context| self.poll_arrived(context)).await
    }

    fn poll_arrived(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let id = self.id;
        let is_finished = self.is_finished;
        self.has_waited = true;
        self.hold.look(|machine, state| {
            if is_finished && !state.streams.is_under_way(id) {
                return Poll::Ready(Ok(()));
            }
            if let Err(StreamError::Stopped(code)) = machine.write(id, &[]) {
                return Poll::Ready(Err(Error::StreamStopped(code)));
            }
            state.streams.wait_to_write(id, context.waker());
            Poll::Pending
        })?
    }

    /// Resets the stream: data that has not arrived is not sent again.
    ///
    /// # Errors
    /// All data has arrived, or the connection is over.
    pub fn reset(&mut self, code: u64) -> Result<(), Error> {
        let id = self.id;
        self.over = true;
        self.is_finished = false;
        self.hold.with(|machine, state| {
            state.streams.on_arrived(id, &mut Vec::new());
            machine.reset(id, code)
        })??;
        Ok(())
    }

    /// Converts into the blocking form.
    pub fn blocking(self) -> Blocking<SendStream> {
        Blocking(self)
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.finish();
        }
        if !self.has_waited {
            return;
        }
        let mut core = self.hold.shared().lock();
        if let Some(state) = core.any_life(self.hold.handle) {
            state.streams.end_writing(self.id);
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(ready!(self.poll_send(context, data))?))
    }
    /// Written data is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    /// Finishes; [`SendStream::arrived`] waits for the peer.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Ok(self.finish()?))
    }
}

impl io::Write for Blocking<SendStream> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(block_on(poll_fn(|context| self.0.poll_send(context, data)))?)
    }
    /// Written data is sent without a flush.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
