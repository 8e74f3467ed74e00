//! Frames: the contents of a sealed payload after its prelude. `docs/rrtp.md` has the layouts.
//!
//! The first byte is the type. 0x80 to 0xff is STREAM; 0x40 to 0x7f are extensions, which begin
//! with a length: unknown ones are skipped. Any other unknown type ends the connection.

use crate::bytes::{ByteReader, MAX_VARINT, Malformed, Sink};
use crate::header::ConnectionId;
use crate::prelude::Prelude;
use crate::report::{Report, read_feedback};

/// Extension: the server's congestion controller, if it differs from the one in its parameters;
/// encoded like parameter 10.
pub const CONTROLLER: u8 = 0x42;

/// Extension: the number of packet numbers directly below this packet's that were skipped on purpose, as [`number`]
/// reads it.
pub const SKIPPED: u8 = 0x43;

/// Reads an extension whose content is one number; `None` if it is malformed.
pub fn number(body: &[u8]) -> Option<u64> {
    ByteReader::new(body).varint().ok()
}
/// Encodes an extension's content that is one number; empty above 2^62 - 1.
pub fn number_bytes(number: u64, buffer: &mut [u8; 8]) -> &[u8] {
    let mut sink = Sink::new(buffer);
    let _ = sink.varint(number);
    let used = sink.used();
    buffer.get(..used).unwrap_or_default()
}

/// Extension: this end's packets now take another path and its congestion state was reset. The content is the number of
/// such changes so far, as [`number`] reads it.
pub const NEW_PATH: u8 = 0x44;

/// Extension: the number of packet numbers directly below this packet's from which no loss may be concluded, as
/// [`number`] reads it.
pub const UNCOUNTED: u8 = 0x45;

/// Extension: the application protocol that the server chose among those that the client offered.
pub const APPLICATION: u8 = 0x46;

/// Extension: requests reports at least this many microseconds apart, as [`number`] reads it; 0
/// cancels the request.
pub const REPORT_SPACING: u8 = 0x47;

/// The extension by which a server gives a client an address token ([`crate::token`]) for its next handshake.
pub const TOKEN: u8 = 0x48;

/// Extension: the XOR of the frames of earlier packets, as [`RepairFields`](crate::RepairFields) reads it, from which a lost one is
/// rebuilt.
pub const REPAIR: u8 = 0x49;

/// Extension: the connection id by which this end takes packets of a further path, as [`PathId`] reads it.
pub const PATH_ID: u8 = 0x4a;

/// The content of a PATH_ID: `| path (1) | connection id (4) |`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathId {
    /// The path; 0 is the one of the handshake, which has its id already.
    pub path: u8,
    /// The id in packets to this frame's sender.
    pub connection: ConnectionId,
}

impl PathId {
    /// Reads the content of a PATH_ID.
    ///
    /// # Errors
    /// It has another length than 5 bytes.
    pub fn read(body: &[u8]) -> Result<PathId, Malformed> {
        let mut source = ByteReader::new(body);
        let path = source.byte()?;
        let connection = ConnectionId(source.u32()?);
        if source.is_empty() {
            Ok(PathId { path, connection })
        } else {
            Err(Malformed::new("a PATH_ID of more than 5 bytes"))
        }
    }
    /// Encodes the path and its connection ID.
    pub fn bytes(&self) -> [u8; 5] {
        let [a, b, c, d] = self.connection.0.to_be_bytes();
        [self.path, a, b, c, d]
    }
}

/// Extension: how a path may be used, as [`PathStatusFrame`] reads it.
pub const PATH_STATUS: u8 = 0x4b;

/// Extension: `| path (1) | leader (1) |`. The leader carries the data of the path; the path itself, if none does.
pub const PATH_LEADER: u8 = 0x4c;

/// The content of a PATH_STATUS: `| path (1) | status (1) | sequence (4) |`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStatusFrame {
    /// The path; 0 is the one of the handshake.
    pub path: u8,
    /// 0 available, 1 standby, 2 closed, 3 to 101 available with a weight of 1 to 99%.
    pub status: u8,
    /// Counts the changes of this path's status, from 1.
    pub sequence: u32,
}

impl PathStatusFrame {
    /// Reads the content of a PATH_STATUS.
    ///
    /// # Errors
    /// It has another length than 6 bytes.
    pub fn read(body: &[u8]) -> Result<PathStatusFrame, Malformed> {
        let mut source = ByteReader::new(body);
        let path = source.byte()?;
        let status = source.byte()?;
        let sequence = source.u32()?;
        if source.is_empty() {
            Ok(PathStatusFrame { path, status, sequence })
        } else {
            Err(Malformed::new("a PATH_STATUS of more than 6 bytes"))
        }
    }
    /// Encodes the status.
    pub fn bytes(&self) -> [u8; 6] {
        let [a, b, c, d] = self.sequence.to_be_bytes();
        [self.path, self.status, a, b, c, d]
    }
}

/// The longest reason of a CLOSE, in bytes.
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
    /// Bits of STREAM's first byte: end of the stream; a length follows; size of the offset; stream
    /// id, where 7 means that it follows.
    pub const FIN: u8 = 0x40;
    pub const LENGTH: u8 = 0x20;
    pub const OFFSET_SHIFT: u8 = 3;
    pub const ID: u8 = 7;
}

/// Bytes of an offset, by the two bits of STREAM's first byte.
pub(crate) const OFFSETS: [usize; 4] = [0, 3, 5, 8];

/// One frame. Data borrow from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// This many bytes of padding: a probe for the path's MTU.
    Padding(usize),
    /// Has no content but elicits an ACK.
    Ping,
    /// rrtp's acknowledgement.
    Report(Report<'a>),
    /// Feedback from the sender side of a controller to its receiver side: 1 to 16 bytes.
    Feedback(&'a [u8]),
    /// An unreliable message.
    Datagram(&'a [u8]),
    /// Data of a stream.
    Stream {
        /// Stream id: bit 0 is set if the server opened it, bit 1 if only its opener sends.
        id: u64,
        /// Position of the first byte of `data` in the stream.
        offset: u64,
        /// Whether the stream ends after `data`.
        fin: bool,
        /// May be empty.
        data: &'a [u8],
    },
    /// Connection flow control: the sum of the bytes that all streams may send, since the
    /// beginning.
    MaxData(u64),
    /// Stream flow control.
    MaxStream {
        /// Stream id.
        id: u64,
        /// Bytes that the stream may send, since its beginning.
        most: u64,
    },
    /// Limit on the streams that the peer may open, since the beginning.
    MaxStreams {
        /// Counts unidirectional streams if true, bidirectional ones otherwise.
        one_way: bool,
        /// The limit.
        most: u64,
    },
    /// MAX_DATA keeps the sender from sending more.
    Blocked {
        /// The limit.
        at: u64,
    },
    /// MAX_STREAM keeps the sender from sending more.
    StreamBlocked {
        /// Stream id.
        id: u64,
        /// The limit.
        at: u64,
    },
    /// MAX_STREAMS keeps the sender from opening more streams.
    StreamsBlocked {
        /// Counts unidirectional streams if true, bidirectional ones otherwise.
        one_way: bool,
        /// The limit.
        at: u64,
    },
    /// To be returned on the path on which it arrived.
    PathChallenge([u8; 8]),
    /// Returns a challenge.
    PathResponse([u8; 8]),
    /// The sender of a stream abandons it.
    ResetStream {
        /// Stream id.
        id: u64,
        /// The application's error code.
        code: u64,
        /// Number of bytes sent on the stream, for flow control.
        size: u64,
    },
    /// The receiver of a stream wants no more data.
    Stop {
        /// Stream id.
        id: u64,
        /// The application's error code.
        code: u64,
    },
    /// The connection ends.
    Close {
        /// Error code: `docs/rrtp.md` lists those below 256, the higher ones belong to the application.
        code: u64,
        /// A reason for people: UTF-8, at most 255 bytes. Untrusted, to be escaped before it is
        /// shown.
        reason: &'a [u8],
    },
    /// An extension unknown to this version, to be skipped.
    Extension {
        /// 0x40 to 0x7f.
        kind: u8,
        /// Its content.
        body: &'a [u8],
    },
}

/// Iterates over the frames of a payload; ends after an error.
#[derive(Clone, Debug)]
pub struct Frames<'a>(ByteReader<'a>);

impl<'a> Frames<'a> {
    /// Reads the prelude of an opened payload, and returns it with the frames behind it.
    ///
    /// # Errors
    /// The prelude is truncated.
    pub fn read(payload: &'a [u8]) -> Result<(Prelude, Frames<'a>), Malformed> {
        let mut source = ByteReader::new(payload);
        let prelude = Prelude::read(&mut source)?;
        Ok((prelude, Frames(source)))
    }

    /// The bytes of the frames that were not read yet.
    pub fn bytes(&self) -> &'a [u8] {
        self.0.rest()
    }

    /// Frames without a prelude, as in an EARLY-START.
    pub fn bare(bytes: &'a [u8]) -> Frames<'a> {
        Frames(ByteReader::new(bytes))
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
            self.0 = ByteReader::new(&[]);
        }
        Some(frame)
    }
}

impl std::iter::FusedIterator for Frames<'_> {}

fn read<'a>(source: &mut ByteReader<'a>) -> Result<Frame<'a>, Malformed> {
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
fn stream<'a>(first: u8, source: &mut ByteReader<'a>) -> Result<Frame<'a>, Malformed> {
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
