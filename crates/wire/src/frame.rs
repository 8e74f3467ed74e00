//! Frames: what a sealed payload holds after its prelude. `docs/rrtp.md` draws each.
//!
//! The first byte is the type. 0x80 to 0xff is STREAM; 0x40 to 0x7f are extensions, which begin
//! with a length: unknown ones are skipped. Any other unknown type ends the connection.

use crate::bytes::{MAX_VARINT, Malformed, Sink, Source};
use crate::prelude::Prelude;
use crate::report::{Report, read_feedback};

/// The extension by which a server says what it sends with, where that is not what its parameters
/// said: the label of a controller, as parameter 10 has it.
pub const CONTROLLER: u8 = 0x42;

/// The extension that says that packet numbers were left out on purpose: how many directly below the packet's
/// own, as [`number`] reads it.
pub const SKIPPED: u8 = 0x43;

/// The content of an extension that is one number; none if it is malformed.
pub fn number(body: &[u8]) -> Option<u64> {
    Source::new(body).varint().ok()
}
/// The content of an extension that is one number; empty above 2^62 - 1.
pub fn number_bytes(number: u64, buffer: &mut [u8; 8]) -> &[u8] {
    let mut sink = Sink::new(buffer);
    let _ = sink.varint(number);
    let used = sink.used();
    buffer.get(..used).unwrap_or_default()
}

/// The extension that says that this end's packets take another path, with a new congestion state: how often that
/// has happened, as [`number`] reads it.
pub const NEW_PATH: u8 = 0x44;

/// The extension that says that packets do not count: of how many numbers directly below the packet's own nobody
/// may conclude a loss, as [`number`] reads it.
pub const UNCOUNTED: u8 = 0x45;

/// The extension by which a server says which of the application protocols that the client offered it speaks.
pub const APPLICATION: u8 = 0x46;

/// The extension that asks for reports that are so far apart (microseconds), as [`number`] reads it; 0 takes that back.
pub const REPORT_SPACING: u8 = 0x47;

/// Longest reason of a CLOSE, bytes.
pub const MAX_REASON_BYTES: usize = 255;

pub(crate) mod kind {
    pub const PADDING: u8 = 0x00;
    pub const PING: u8 = 0x01;
    pub const REPORT: u8 = 0x02;
    pub const FEEDBACK: u8 = 0x03;
    pub const DATAGRAM_LAST: u8 = 0x04;
    pub const DATAGRAM: u8 = 0x05;
    pub const MAX_DATA: u8 = 0x06;
    pub const MAX_STREAM: u8 = 0x07;
    pub const MAX_STREAMS_BOTH: u8 = 0x08;
    pub const MAX_STREAMS_ONE: u8 = 0x09;
    pub const BLOCKED: u8 = 0x0a;
    pub const STREAM_BLOCKED: u8 = 0x0b;
    pub const STREAMS_BLOCKED_BOTH: u8 = 0x0c;
    pub const STREAMS_BLOCKED_ONE: u8 = 0x0d;
    pub const PATH_CHALLENGE: u8 = 0x10;
    pub const PATH_RESPONSE: u8 = 0x11;
    pub const RESET_STREAM: u8 = 0x12;
    pub const STOP: u8 = 0x13;
    pub const CLOSE: u8 = 0x14;
    pub const EXTENSION: u8 = 0x40;
    pub const STREAM: u8 = 0x80;
    /// STREAM's bits: end of the stream; a length follows; size of the offset; id, 7 for "follows".
    pub const FIN: u8 = 0x40;
    pub const LENGTH: u8 = 0x20;
    pub const OFFSET_SHIFT: u8 = 3;
    pub const ID: u8 = 7;
}

/// Bytes of an offset by STREAM's two bits.
pub(crate) const OFFSETS: [usize; 4] = [0, 3, 5, 8];

/// One frame; data borrows from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// So many bytes that mean nothing: a probe for the path's MTU.
    Padding(usize),
    /// Ack-eliciting, and nothing else.
    Ping,
    /// What arrived.
    Report(Report<'a>),
    /// From the sender side of a controller to its receiver side: 1 to 16 bytes.
    Feedback(&'a [u8]),
    /// An unreliable message.
    Datagram(&'a [u8]),
    /// Data of a stream.
    Stream {
        /// Which stream: bit 0 set if the server opened it, bit 1 set if only its opener sends.
        id: u64,
        /// Of the first byte of `data`.
        offset: u64,
        /// Whether the stream ends after `data`.
        fin: bool,
        /// Perhaps nothing.
        data: &'a [u8],
    },
    /// All streams together may hold so many bytes since the beginning.
    MaxData(u64),
    /// A stream may hold so many bytes.
    MaxStream {
        /// Which.
        id: u64,
        /// Bytes from its beginning.
        most: u64,
    },
    /// How many streams the peer may have opened since the beginning.
    MaxStreams {
        /// Of one direction; otherwise of both.
        one_way: bool,
        /// How many.
        most: u64,
    },
    /// The sender would send more than MAX_DATA permits.
    Blocked {
        /// The limit.
        at: u64,
    },
    /// The sender would send more than MAX_STREAM permits.
    StreamBlocked {
        /// Which.
        id: u64,
        /// The limit.
        at: u64,
    },
    /// The sender would open more streams than MAX_STREAMS permits.
    StreamsBlocked {
        /// Of one direction; otherwise of both.
        one_way: bool,
        /// The limit.
        at: u64,
    },
    /// To be returned over the path on which it came.
    PathChallenge([u8; 8]),
    /// A challenge returned.
    PathResponse([u8; 8]),
    /// The sender of a stream gives it up.
    ResetStream {
        /// Which.
        id: u64,
        /// The application's reason.
        code: u64,
        /// Bytes that were sent, for flow control.
        size: u64,
    },
    /// The receiver of a stream wants no more of it.
    Stop {
        /// Which.
        id: u64,
        /// The application's reason.
        code: u64,
    },
    /// The connection ends.
    Close {
        /// The reason's number: `docs/rrtp.md` lists those below 256, others are the
        /// application's.
        code: u64,
        /// For people: UTF-8, at most 255 bytes. Untrusted: to be cleaned before it is shown.
        reason: &'a [u8],
    },
    /// An extension that this version does not know, to be skipped.
    Extension {
        /// 0x40 to 0x7f.
        kind: u8,
        /// Its content.
        body: &'a [u8],
    },
}

/// The frames of a payload, one after the other; after an error nothing more.
#[derive(Clone, Debug)]
pub struct Frames<'a>(Source<'a>);

impl<'a> Frames<'a> {
    /// The prelude of an opened payload, and the frames behind it.
    ///
    /// # Errors
    /// If the prelude is cut off.
    pub fn read(payload: &'a [u8]) -> Result<(Prelude, Frames<'a>), Malformed> {
        let mut source = Source::new(payload);
        let prelude = Prelude::read(&mut source)?;
        Ok((prelude, Frames(source)))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let frame = read(&mut self.0);
        if frame.is_err() {
            self.0 = Source::new(&[]);
        }
        Some(frame)
    }
}

impl std::iter::FusedIterator for Frames<'_> {}

fn read<'a>(source: &mut Source<'a>) -> Result<Frame<'a>, Malformed> {
    let first = source.byte()?;
    Ok(match first {
        kind::STREAM.. => return stream(first, source),
        kind::EXTENSION.. => Frame::Extension { kind: first, body: source.take_counted()? },
        kind::PADDING => {
            let more = source.rest().iter().take_while(|b| **b == kind::PADDING).count();
            source.take(more)?;
            Frame::Padding(1 + more)
        }
        kind::PING => Frame::Ping,
        kind::REPORT => Frame::Report(Report::read(source)?),
        kind::FEEDBACK => Frame::Feedback(read_feedback(source)?),
        kind::DATAGRAM_LAST => Frame::Datagram(source.take(source.rest().len())?),
        kind::DATAGRAM => Frame::Datagram(source.take_counted()?),
        kind::MAX_DATA => Frame::MaxData(source.varint()?),
        kind::MAX_STREAM => Frame::MaxStream { id: source.varint()?, most: source.varint()? },
        kind::MAX_STREAMS_BOTH => Frame::MaxStreams { one_way: false, most: source.varint()? },
        kind::MAX_STREAMS_ONE => Frame::MaxStreams { one_way: true, most: source.varint()? },
        kind::BLOCKED => Frame::Blocked { at: source.varint()? },
        kind::STREAM_BLOCKED => Frame::StreamBlocked { id: source.varint()?, at: source.varint()? },
        kind::STREAMS_BLOCKED_BOTH => {
            Frame::StreamsBlocked { one_way: false, at: source.varint()? }
        }
        kind::STREAMS_BLOCKED_ONE => Frame::StreamsBlocked { one_way: true, at: source.varint()? },
        kind::PATH_CHALLENGE => Frame::PathChallenge(source.array()?),
        kind::PATH_RESPONSE => Frame::PathResponse(source.array()?),
        kind::RESET_STREAM => Frame::ResetStream {
            id: source.varint()?,
            code: source.varint()?,
            size: source.varint()?,
        },
        kind::STOP => Frame::Stop { id: source.varint()?, code: source.varint()? },
        kind::CLOSE => {
            let code = source.varint()?;
            let length = usize::from(source.byte()?);
            Frame::Close { code, reason: source.take(length)? }
        }
        _ => return Err(Malformed::new("an unknown type of frame")),
    })
}

#[inline]
fn stream<'a>(first: u8, source: &mut Source<'a>) -> Result<Frame<'a>, Malformed> {
    let id = match first & kind::ID {
        kind::ID => source.varint()?,
        small => u64::from(small),
    };
    let size = OFFSETS[usize::from(first >> kind::OFFSET_SHIFT) & 3];
    let offset = source.number(size)?;
    let data = if first & kind::LENGTH != 0 {
        source.take_counted()?
    } else {
        source.take(source.rest().len())?
    };
    if offset.saturating_add(data.len() as u64) > MAX_VARINT {
        return Err(Malformed::new("a stream longer than 2^62 - 1 bytes"));
    }
    Ok(Frame::Stream { id, offset, fin: first & kind::FIN != 0, data })
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
