//! Frames of the peer.

use super::open::Direction;
use super::{Frame, Streams, Violation};

impl Streams {
    /// Takes a frame of the peer; false if it is not about streams.
    ///
    /// # Errors
    /// If the peer may not send it: the connection must end with the violation's code.
    #[inline]
    pub fn on_frame(&mut self, frame: &Frame<'_>) -> Result<bool, Violation> {
        match *frame {
            Frame::Stream { id, offset, fin, data } => self.on_data(id, offset, fin, data)?,
            Frame::MaxData(most) => {
                self.credit.raise(most);
            }
            Frame::MaxStream { id, most } => self.on_max_stream(id, most)?,
            Frame::MaxStreams { one_way, most } => self.on_max_streams(one_way, most),
            Frame::Blocked { at } => self.window.waits_at(at),
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
        let Some(stream) = self.map.get_mut(&id) else {
            let n = self.map.len();
            self.admit(id, Direction::In)?;
            // One opened just now, or one that was forgotten.
            return if self.map.len() > n { self.on_data(id, offset, fin, data) } else { Ok(()) };
        };
        let Some(half) = &mut stream.receive else { return self.admit(id, Direction::In) };
        if half.data(offset, data, fin, &mut self.window)? && half.wants {
            half.wants = false;
            self.queues.readable(stream);
        } else if fin && half.is_over() {
            self.settle(id);
        }
        Ok(())
    }

    fn on_max_stream(&mut self, id: u64, most: u64) -> Result<(), Violation> {
        self.admit(id, Direction::Out)?;
        let Some(stream) = self.map.get_mut(&id) else { return Ok(()) };
        if let Some(half) = &mut stream.send {
            half.credit.raise(most);
        }
        self.queues.touch(stream);
        Ok(())
    }

    fn on_stream_blocked(&mut self, id: u64, at: u64) -> Result<(), Violation> {
        self.admit(id, Direction::In)?;
        let Some(stream) = self.map.get_mut(&id) else { return Ok(()) };
        if let Some(half) = &mut stream.receive {
            half.window.waits_at(at);
        }
        self.queues.touch(stream);
        Ok(())
    }

    fn on_reset(&mut self, id: u64, code: u64, size: u64) -> Result<(), Violation> {
        self.admit(id, Direction::In)?;
        let Some(stream) = self.map.get_mut(&id) else { return Ok(()) };
        let Some(half) = &mut stream.receive else { return Ok(()) };
        if half.reset(code, size, &mut self.window)? {
            half.wants = false;
            self.queues.readable(stream);
        } else {
            self.settle(id);
        }
        Ok(())
    }

    fn on_stop(&mut self, id: u64, code: u64) -> Result<(), Violation> {
        self.admit(id, Direction::Out)?;
        let Some(stream) = self.map.get_mut(&id) else { return Ok(()) };
        if let Some(half) = &mut stream.send
            && half.stop(code)
        {
            self.queues.writable(stream);
            self.queues.touch(stream);
        }
        Ok(())
    }
}
