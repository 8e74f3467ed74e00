//! The values that streams take and return.

/// An empty buffer of a stream keeps up to this many bytes of capacity.
pub(super) const KEPT: usize = 1024;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted the connection.
    Server,
}

/// Initial flow-control limits for the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowControlLimits {
    /// Bytes of all streams together. Also the size of the window as the application reads.
    pub data: u64,
    /// Bytes of one stream. Also the size of the window as the application reads.
    pub stream: u64,
    /// Number of open bidirectional streams.
    pub both: u64,
    /// Number of open unidirectional streams.
    pub one_way: u64,
}

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// The number of bytes read, at least one.
    Bytes(usize),
    /// No data are available now; [`StreamEvent::Readable`] follows.
    Blocked,
    /// The end of the stream: all data were read.
    End,
}

/// Reason for the failure of an operation on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// The stream does not exist (any more), or not in this direction.
    Unknown,
    /// The peer reset the stream with this code.
    Reset(u64),
    /// The peer stopped reading the stream, with this code.
    Stopped(u64),
    /// This end finished, reset or stopped it before.
    Finished,
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StreamError::Unknown => f.write_str("there is no such stream"),
            StreamError::Reset(code) => {
                write!(f, "the peer reset this stream (code {code})")
            }
            StreamError::Stopped(code) => {
                write!(f, "the peer stopped reading this stream (code {code})")
            }
            StreamError::Finished => f.write_str("this stream is already finished"),
        }
    }
}

impl std::error::Error for StreamError {}

/// A change in a stream's state that the application may react to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// The peer opened one or more streams: `accept` returns them.
    Opened,
    /// Data, the stream's end, or a reset can be read.
    Readable(u64),
    /// After a write that took only part of its data: the buffer has space again, or the peer stopped reading.
    Writable(u64),
    /// The peer has acknowledged all data and the end of the stream.
    Arrived(u64),
    /// After a failed `open`: the peer permits another stream.
    MayOpen,
}

/// A frame in a sent packet, kept until its outcome is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentFrame {
    /// Bytes of a stream.
    Stream {
        /// The stream's ID.
        id: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes; may be 0 if `fin`.
        length: u32,
        /// Whether the frame marks the end of the stream.
        fin: bool,
    },
    /// The limit on the bytes of all streams.
    MaxData,
    /// The limit on the bytes of this stream.
    MaxStream(u64),
    /// The limit on the number of streams: unidirectional if true.
    MaxStreams(bool),
    /// RESET_STREAM for this stream.
    Reset(u64),
    /// The request to stop sending on this stream.
    Stop(u64),
    /// BLOCKED, STREAM_BLOCKED or STREAMS_BLOCKED. After a loss it is repeated only if still true.
    Blocked,
}

/// A protocol violation by the peer, which ends the connection: code and reason of CLOSE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Violation {
    /// Error code as in `docs/rrtp.md`: 2 flow control, 3 stream state.
    pub code: u64,
    /// A description for people.
    pub why: &'static str,
}
