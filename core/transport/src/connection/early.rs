//! Early data: stream data in the client's first packet, and the limits on a server until it has ruled out a replay.
//!
//! An attacker can replay a captured EARLY-START, but cannot seal a packet with the keys derived from it. So a server's
//! connection is *unconfirmed* until a packet of the client opens. Until then it sends less than three times the bytes
//! received, and it is dropped after [`MAX_UNCONFIRMED`].

use crate::streams::Streams;
use narrows_base::Duration;
use narrows_wire::frame::MAX_REASON_BYTES;
use narrows_wire::noise::early::MAX_EARLY_FRAMES;
use narrows_wire::packet::{EARLY_START_BYTES, TAG_BYTES};
use narrows_wire::params::MAX_HELLO_BYTES;
use narrows_wire::{Frame, FrameWriter};

/// The stream of early data: the client's first.
pub(super) const STREAM: u64 = 0;
/// Bytes of STREAM's type and length.
const STREAM_HEAD: usize = 1 + 2;
/// Limit on early data in bytes.
const MAX_EARLY_DATA: usize = 512;
const _: () = assert!(MAX_EARLY_DATA + STREAM_HEAD <= MAX_EARLY_FRAMES);

/// Lifetime of an unconfirmed connection: two of the longest round trips at which early data are accepted.
pub(super) const MAX_UNCONFIRMED: Duration = Duration::from_secs(20);
/// Limit on the bytes of an unconfirmed connection. With EARLY-ECHO and CLOSE the total is at most three times
/// EARLY-START.
const MAX_UNCONFIRMED_BYTES: u64 = 2700;
const EARLY_ECHO_BYTES: usize = 5 + 16 + 32 + MAX_HELLO_BYTES + TAG_BYTES;
const CLOSE_BYTES: usize = 9 + 8 + 18 + MAX_REASON_BYTES + TAG_BYTES;
const _: () = assert!(
    MAX_UNCONFIRMED_BYTES as usize + EARLY_ECHO_BYTES + CLOSE_BYTES <= 3 * EARLY_START_BYTES
);

/// Data of a client's first bidirectional stream that may leave with the first packet. If the server does not accept
/// early data, they are sent after the handshake, invisibly to the application.
///
/// **Only for idempotent requests**, which change no state. The server never accepts a copy of the packet. But if no
/// reply arrives for seconds, the client sends the data again, although the server may have processed them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlyData {
    data: Vec<u8>,
    fin: bool,
}

impl EarlyData {
    /// Limit on the data in bytes.
    pub const MAX_BYTES: usize = MAX_EARLY_DATA;
    /// The stream that carries them.
    pub const STREAM: u64 = STREAM;

    /// The first bytes of the stream. `None` if they are longer than [`EarlyData::MAX_BYTES`].
    pub fn new(data: impl Into<Vec<u8>>) -> Option<EarlyData> {
        let data = data.into();
        (data.len() <= EarlyData::MAX_BYTES).then_some(EarlyData { data, fin: false })
    }
    /// The same data, followed by the end of the stream.
    #[must_use]
    pub fn finished(self) -> EarlyData {
        EarlyData { fin: true, ..self }
    }
    /// Whether the stream ends with these data.
    pub fn is_finished(&self) -> bool {
        self.fin
    }
    /// Encodes them as a STREAM frame.
    pub(crate) fn frames(&self) -> Vec<u8> {
        let mut buffer = [0; MAX_EARLY_FRAMES];
        let mut writer = FrameWriter::bare(&mut buffer);
        let frame = Frame::Stream { id: STREAM, offset: 0, fin: self.fin, data: &self.data };
        // It fits: see the assertion above.
        let length = writer.frame(&frame).map_or(0, |()| writer.len());
        buffer.get(..length).unwrap_or_default().to_vec()
    }
    pub(super) fn parts(&self) -> (&[u8], bool) {
        (&self.data, self.fin)
    }
}

/// Early data sent by a client, or received by a server.
#[derive(Clone, Copy, Debug)]
pub enum EarlyExchange<'a> {
    /// At a client.
    Sent {
        /// Data of the first stream.
        data: &'a EarlyData,
        /// Whether the server accepted them.
        is_taken: bool,
    },
    /// At a server: the frames are passed to [`Connection::take_early`](super::Connection::take_early).
    Received,
}

/// State of early data after the connection began. Small, because every connection stores one.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyState {
    /// Client: the server's limits permit the stream.
    pub has_stream: bool,
    pub is_taken: bool,
    pub is_unconfirmed: bool,
}

impl EarlyState {
    pub fn begin(early: EarlyExchange<'_>, streams: &mut Streams) -> EarlyState {
        match early {
            EarlyExchange::Sent { data, is_taken } => {
                let (data, fin) = data.parts();
                let has_stream = streams.open_early(data, fin, is_taken).is_some();
                EarlyState { has_stream, is_taken, is_unconfirmed: false }
            }
            EarlyExchange::Received => {
                EarlyState { has_stream: false, is_taken: true, is_unconfirmed: true }
            }
        }
    }
}

/// Whether this total of bytes exceeds the limit for an address that is not yet validated.
pub(super) fn is_too_early(early: Option<EarlyState>, bytes: u64) -> bool {
    early.is_some_and(|early| early.is_unconfirmed) && bytes > MAX_UNCONFIRMED_BYTES
}
