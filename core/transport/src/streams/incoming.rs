//! Frames from the peer.

use super::stream::{self, StreamDirection};
use super::{Frame, Streams, Violation};

impl Streams {
    /// Handles a frame from the peer. False if it does not concern streams.
    ///
    /// # Errors
    /// The peer violated the protocol: the connection must be closed with the violation's code.
    #[inline]
    pub fn on_frame(&mut self, frame: &Frame<'_>) -> Result<bool, Violation> {
        match *frame {
            Frame::Stream { id, offset, fin, data } => self.on_data(id, offset, fin, data)?,
            Frame::MaxData(most) => {
                self.credit.raise(most);
            }
            Frame::MaxStream { id, most } => self.on_max_stream(id, most)?,
            Frame::MaxStreams { one_way, most } => self.on_max_streams(one_way, most),
            Frame::Blocked { at } => self.all.window.waits_at(at),
            Frame::StreamBlocked { id, at } => self.on_stream_blocked(id, at)?,
            Frame::StreamsBlocked { one_way, at } => {
                self.theirs[usize::from(one_way)].waits_at(at);
            }
            Frame::ResetStream { id, code, size } => self.on_reset(id, code, size)?,
            Frame::Stop { id, code } => self.on_stop(id, code)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn on_data(&mut self, id: u64, offset: u64, fin: bool, data: &[u8]) -> Result<(), Violation> {
        let Some(stream) = self.map.get_mut(id) else {
            let n = self.map.len();
            self.admit(id, StreamDirection::In)?;
            // A stream opened just now, or one that was dropped.
            return if self.map.len() > n { self.on_data(id, offset, fin, data) } else { Ok(()) };
        };
        let Some(half) = &mut stream.receive else { return self.admit(id, StreamDirection::In) };
        if half.data(offset, data, fin, &mut self.all)? && half.wants {
            half.wants = false;
            self.queues.readable(stream);
        } else if fin && half.is_over() {
            self.settle(id);
        }
        Ok(())
    }

    fn on_max_stream(&mut self, id: u64, most: u64) -> Result<(), Violation> {
        self.admit(id, StreamDirection::Out)?;
        let Some(stream) = self.map.get_mut(id) else { return Ok(()) };
        if let Some(half) = &mut stream.send {
            half.credit.raise(most);
        }
        self.queues.touch(stream);
        Ok(())
    }

    fn on_stream_blocked(&mut self, id: u64, at: u64) -> Result<(), Violation> {
        self.admit(id, StreamDirection::In)?;
        let Some(stream) = self.map.get_mut(id) else { return Ok(()) };
        if let Some(half) = &mut stream.receive {
            half.window.waits_at(at);
        }
        self.queues.touch(stream);
        Ok(())
    }

    fn on_reset(&mut self, id: u64, code: u64, size: u64) -> Result<(), Violation> {
        self.admit(id, StreamDirection::In)?;
        let is_accepted = self.is_accepted(id);
        let Some(stream) = self.map.get_mut(id) else { return Ok(()) };
        let Some(half) = &mut stream.receive else { return Ok(()) };
        let is_news = half.reset(code, size, &mut self.all)?;
        if is_news && !is_accepted {
            // The application has not seen the stream and need not.
            self.give_up_unseen(id, code);
        } else if is_news {
            half.wants = false;
            self.queues.readable(stream);
        } else {
            self.settle(id);
        }
        Ok(())
    }

    /// Whether the application has the stream: this end opened it, or `accept` returned it.
    fn is_accepted(&self, id: u64) -> bool {
        stream::is_ours(self.side, id) || id >> 2 < self.accepted[stream::direction_index(id)]
    }

    /// If the peer resets a stream before it is accepted, the other direction is reset, too.
    fn give_up_unseen(&mut self, id: u64, code: u64) {
        let Some(stream) = self.map.get_mut(id) else { return };
        stream.is_unseen = true;
        if let Some(half) = &mut stream.receive {
            half.know_reset();
        }
        if let Some(half) = &mut stream.send {
            let _ = half.reset(code);
        }
        self.queues.unreadable(stream);
        self.settle(id);
    }

    fn on_stop(&mut self, id: u64, code: u64) -> Result<(), Violation> {
        self.admit(id, StreamDirection::Out)?;
        let Some(stream) = self.map.get_mut(id) else { return Ok(()) };
        let Some(half) = &mut stream.send else { return Ok(()) };
        let before = half.buffered();
        if half.stop(code) {
            self.held.change(before, half.buffered());
            self.queues.writable(stream);
            self.queues.touch(stream);
        }
        Ok(())
    }
}
