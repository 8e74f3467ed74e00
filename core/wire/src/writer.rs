//! Writing a payload: prelude and frames into the caller's buffer, frame by frame until it is full.

use crate::bytes::{BufferFull, MAX_VARINT, Sink, varint_len};
use crate::frame::{Frame, MAX_REASON_BYTES, OFFSETS, kind};
use crate::prelude::Prelude;
use crate::report::write_feedback;

/// Writes one payload. A frame that does not fit, or that a reader would reject, is refused and leaves no trace.
#[derive(Debug)]
pub struct FrameWriter<'b> {
    sink: Sink<'b>,
    /// The last frame extends to the end of the packet: no other may follow.
    ended: bool,
    /// Bytes of it in a separate buffer.
    apart: usize,
}

impl<'b> FrameWriter<'b> {
    /// Begins a payload. The buffer's length is the payload's limit.
    ///
    /// # Errors
    /// The prelude does not fit.
    pub fn new(buffer: &'b mut [u8], prelude: Prelude) -> Result<FrameWriter<'b>, BufferFull> {
        let mut sink = Sink::new(buffer);
        prelude.write(&mut sink)?;
        Ok(FrameWriter { sink, ended: false, apart: 0 })
    }

    /// Frames without a prelude, as in an EARLY-START.
    pub fn bare(buffer: &'b mut [u8]) -> FrameWriter<'b> {
        FrameWriter { sink: Sink::new(buffer), ended: false, apart: 0 }
    }

    /// Length of the payload so far, including bytes in a separate buffer.
    pub fn len(&self) -> usize {
        self.sink.used() + self.apart
    }
    /// Number of bytes at the end that are in a separate buffer.
    pub fn apart(&self) -> usize {
        self.apart
    }
    /// Whether the payload is empty, without even a prelude.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        if self.ended { 0 } else { self.sink.room() }
    }

    /// The most data that [`last_stream`](FrameWriter::last_stream) would accept now.
    pub fn stream_room(&self, id: u64, offset: u64) -> usize {
        self.room().saturating_sub(stream_head(id, offset))
    }

    /// Writes a frame; STREAM and DATAGRAM with a length, so that further frames can follow.
    ///
    /// # Errors
    /// The frame does not fit.
    pub fn frame(&mut self, frame: &Frame<'_>) -> Result<(), BufferFull> {
        self.whole(|sink| write(frame, sink))
    }

    /// Writes data of a stream as the last frame, without a length: they extend to the end of the
    /// packet.
    ///
    /// # Errors
    /// They do not fit.
    pub fn last_stream(
        &mut self,
        id: u64,
        offset: u64,
        fin: bool,
        data: &[u8],
    ) -> Result<(), BufferFull> {
        self.last_stream_apart(id, offset, fin, data.len())?;
        self.apart = 0;
        self.sink.put(data)
    }

    /// As [`last_stream`](FrameWriter::last_stream), but does not copy the data: pass them to
    /// [`Sealer::seal_with`](crate::Sealer::seal_with).
    ///
    /// # Errors
    /// They would not fit.
    pub fn last_stream_apart(
        &mut self,
        id: u64,
        offset: u64,
        fin: bool,
        data: usize,
    ) -> Result<(), BufferFull> {
        self.whole(|sink| {
            stream(id, offset, fin, data, true, sink)?;
            if data <= sink.room() { Ok(()) } else { Err(BufferFull) }
        })?;
        self.ended = true;
        self.apart = data;
        Ok(())
    }

    /// Writes a message as the last frame, without a length: it extends to the end of the packet.
    ///
    /// # Errors
    /// It does not fit.
    pub fn last_datagram(&mut self, data: &[u8]) -> Result<(), BufferFull> {
        self.whole(|sink| {
            sink.byte(kind::DATAGRAM_LAST)?;
            sink.put(data)
        })?;
        self.ended = true;
        Ok(())
    }

    fn whole(
        &mut self,
        f: impl FnOnce(&mut Sink<'b>) -> Result<(), BufferFull>,
    ) -> Result<(), BufferFull> {
        if self.ended {
            return Err(BufferFull);
        }
        let before = self.sink.used();
        f(&mut self.sink).inspect_err(|_| self.sink.back_to(before))
    }
}

/// Bytes in front of the data of a STREAM frame that extends to the end of the packet.
pub fn stream_head(id: u64, offset: u64) -> usize {
    let id = if id < u64::from(kind::ID) { 0 } else { varint_len(id) };
    1 + id + OFFSETS[offset_code(offset)]
}

fn offset_code(offset: u64) -> usize {
    match offset {
        0 => 0,
        0x1..=0xff_ffff => 1,
        0x100_0000..=0xff_ffff_ffff => 2,
        _ => 3,
    }
}

/// Writes the part of a STREAM frame in front of its data, without its length.
fn stream(
    id: u64,
    offset: u64,
    fin: bool,
    data: usize,
    last: bool,
    sink: &mut Sink<'_>,
) -> Result<(), BufferFull> {
    if offset.saturating_add(data as u64) > MAX_VARINT {
        return Err(BufferFull);
    }
    let code = offset_code(offset);
    let small = id < u64::from(kind::ID);
    let mut first = kind::STREAM | (code as u8) << kind::OFFSET_SHIFT;
    first |= if small { id as u8 } else { kind::ID };
    first |= if fin { kind::FIN } else { 0 } | if last { 0 } else { kind::LENGTH };
    sink.byte(first)?;
    if !small {
        sink.varint(id)?;
    }
    sink.number(offset, OFFSETS[code])
}

fn numbers(kind: u8, values: &[u64], sink: &mut Sink<'_>) -> Result<(), BufferFull> {
    sink.byte(kind)?;
    values.iter().try_for_each(|v| sink.varint(*v))
}

fn write(frame: &Frame<'_>, sink: &mut Sink<'_>) -> Result<(), BufferFull> {
    match *frame {
        Frame::Padding(bytes) => {
            // Zeros, without a check of the space for each one.
            if bytes > sink.room() {
                return Err(BufferFull);
            }
            (0..bytes).try_for_each(|_| sink.byte(kind::PADDING))
        }
        Frame::Ping => sink.byte(kind::PING),
        Frame::Report(ref report) => {
            sink.byte(kind::REPORT)?;
            report.write(sink)
        }
        Frame::Feedback(feedback) => {
            sink.byte(kind::FEEDBACK)?;
            write_feedback(feedback, sink)
        }
        Frame::Datagram(data) => {
            sink.byte(kind::DATAGRAM)?;
            sink.put_counted(data)
        }
        Frame::Stream { id, offset, fin, data } => {
            stream(id, offset, fin, data.len(), false, sink)?;
            sink.put_counted(data)
        }
        Frame::MaxData(most) => numbers(kind::MAX_DATA, &[most], sink),
        Frame::MaxStream { id, most } => numbers(kind::MAX_STREAM, &[id, most], sink),
        Frame::MaxStreams { one_way: false, most } => {
            numbers(kind::MAX_STREAMS_BOTH, &[most], sink)
        }
        Frame::MaxStreams { one_way: true, most } => numbers(kind::MAX_STREAMS_ONE, &[most], sink),
        Frame::Blocked { at } => numbers(kind::BLOCKED, &[at], sink),
        Frame::StreamBlocked { id, at } => numbers(kind::STREAM_BLOCKED, &[id, at], sink),
        Frame::StreamsBlocked { one_way: false, at } => {
            numbers(kind::STREAMS_BLOCKED_BOTH, &[at], sink)
        }
        Frame::StreamsBlocked { one_way: true, at } => {
            numbers(kind::STREAMS_BLOCKED_ONE, &[at], sink)
        }
        Frame::PathChallenge(data) => {
            sink.byte(kind::PATH_CHALLENGE)?;
            sink.put(&data)
        }
        Frame::PathResponse(data) => {
            sink.byte(kind::PATH_RESPONSE)?;
            sink.put(&data)
        }
        Frame::ResetStream { id, code, size } => {
            numbers(kind::RESET_STREAM, &[id, code, size], sink)
        }
        Frame::Stop { id, code } => numbers(kind::STOP, &[id, code], sink),
        Frame::Close { code, reason } => {
            if reason.len() > MAX_REASON_BYTES {
                return Err(BufferFull);
            }
            numbers(kind::CLOSE, &[code], sink)?;
            sink.byte(reason.len() as u8)?;
            sink.put(reason)
        }
        Frame::Extension { kind, body } => {
            if !(kind::EXTENSION..kind::STREAM).contains(&kind) {
                return Err(BufferFull);
            }
            sink.byte(kind)?;
            sink.put_counted(body)
        }
    }
}
