//! Early data: what a client's first packet carried, and what a server may do until it knows that this was no copy.
//!
//! Whoever captured an EARLY-START can send it again, but cannot seal a packet with the keys that follow from it. So a
//! server's connection is *unconfirmed* until a packet of the client opens. Until then it sends less than three times
//! what came, and is forgotten after [`MAX_UNCONFIRMED`].

use super::Connection;
use crate::streams::{Side, Streams};
use narrows_base::{Duration, Time};
use narrows_wire::frame::MAX_REASON_BYTES;
use narrows_wire::noise::early::MAX_EARLY_FRAMES;
use narrows_wire::packet::{EARLY_START_BYTES, TAG_BYTES};
use narrows_wire::params::MAX_HELLO_BYTES;
use narrows_wire::{Frame, FrameWriter, Frames};

/// The stream that early data are of: the client's first.
const STREAM: u64 = 0;
/// STREAM's type and length.
const STREAM_HEAD: usize = 1 + 2;
/// The longest early data.
const MAX_EARLY_DATA: usize = 512;
const _: () = assert!(MAX_EARLY_DATA + STREAM_HEAD <= MAX_EARLY_FRAMES);

/// A connection that no packet of its client has confirmed lasts so long, as any handshake.
const MAX_UNCONFIRMED: Duration = Duration::from_secs(10);
/// What it sends until then: with EARLY-ECHO, and a CLOSE if it is closed, no more than three times EARLY-START.
const MAX_UNCONFIRMED_BYTES: u64 = 2700;
const EARLY_ECHO_BYTES: usize = 5 + 16 + 32 + MAX_HELLO_BYTES + TAG_BYTES;
const CLOSE_BYTES: usize = 9 + 8 + 18 + MAX_REASON_BYTES + TAG_BYTES;
const _: () = assert!(
    MAX_UNCONFIRMED_BYTES as usize + EARLY_ECHO_BYTES + CLOSE_BYTES <= 3 * EARLY_START_BYTES
);

/// Data of a client's first bidirectional stream that may leave with the first packet. A server that does not take them
/// then gets them after the handshake; the application does not notice.
///
/// **Only for what may be done twice**, as a request that changes nothing. A copy of the packet is never taken again,
/// but the client itself sends the data again where no answer of the server came through for seconds, although the
/// data may have been taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlyData {
    data: Vec<u8>,
    fin: bool,
}

impl EarlyData {
    /// The longest, in bytes.
    pub const MAX_BYTES: usize = MAX_EARLY_DATA;
    /// The stream that they are of.
    pub const STREAM: u64 = STREAM;

    /// The first bytes of a stream. `None` if they are longer than [`EarlyData::MAX_BYTES`].
    pub fn new(data: impl Into<Vec<u8>>) -> Option<EarlyData> {
        let data = data.into();
        (data.len() <= EarlyData::MAX_BYTES).then_some(EarlyData { data, fin: false })
    }
    /// The same, after which the stream ends.
    #[must_use]
    pub fn finished(self) -> EarlyData {
        EarlyData { fin: true, ..self }
    }
    /// Whether the stream ends after them.
    pub fn is_finished(&self) -> bool {
        self.fin
    }
    /// As a frame.
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

/// What went or came before a connection.
#[derive(Clone, Copy, Debug)]
pub enum Early<'a> {
    /// At a client: data, and whether the server took them.
    Sent {
        /// For the first stream.
        data: &'a EarlyData,
        /// Whether they are at the server.
        is_taken: bool,
    },
    /// At a server: frames, to be read by [`Connection::take_early`].
    Received,
}

/// What remains of it. Small: every connection has room for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyState {
    /// Client: the server permits the stream.
    has_stream: bool,
    is_taken: bool,
    pub is_unconfirmed: bool,
}

impl EarlyState {
    pub fn begin(early: Early<'_>, streams: &mut Streams) -> EarlyState {
        match early {
            Early::Sent { data, is_taken } => {
                let (data, fin) = data.parts();
                let has_stream = streams.open_early(data, fin, is_taken).is_some();
                EarlyState { has_stream, is_taken, is_unconfirmed: false }
            }
            Early::Received => {
                EarlyState { has_stream: false, is_taken: true, is_unconfirmed: true }
            }
        }
    }
}

impl Connection {
    /// At a server: reads an EARLY-START's frames, which can only be the beginning of the first stream. False if they
    /// are something else; the connection is to be dropped then.
    pub fn take_early(&mut self, frames: &[u8]) -> bool {
        let streams = &mut self.sender.payload_source_mut().streams;
        let mut is_any = false;
        for frame in Frames::bare(frames) {
            match frame {
                Ok(Frame::Padding(_)) => {}
                Ok(frame @ Frame::Stream { id: STREAM, .. })
                    if streams.on_frame(&frame).is_ok() =>
                {
                    is_any = true;
                }
                _ => return false,
            }
        }
        is_any
    }

    /// At a server: whether data of this stream came before the handshake was complete, and so may come again, in
    /// another connection.
    pub fn is_early(&self, id: u64) -> bool {
        let is_server = self.agreement.side == Side::Server;
        is_server && id == STREAM && self.early.is_some_and(|early| early.is_taken)
    }
    /// At a server: whether the client is known to be there; false for one of which only early data have come.
    pub fn is_confirmed(&self) -> bool {
        self.early.is_none_or(|early| !early.is_unconfirmed)
    }
    /// At a client: the stream of its early data, whether they went early or not.
    pub fn early_stream(&self) -> Option<u64> {
        self.early.filter(|early| early.has_stream).map(|_| STREAM)
    }
    /// At a client: whether the server took the early data.
    pub fn is_early_taken(&self) -> bool {
        self.early.is_some_and(|early| early.is_taken)
    }

    /// A packet of the peer opened.
    #[inline]
    pub(super) fn confirm(&mut self) {
        let Some(early) = self.early.as_mut().filter(|early| early.is_unconfirmed) else { return };
        early.is_unconfirmed = false;
        if let Some(token) = &mut self.sender.payload_source_mut().token {
            token.hurry();
        }
    }
    /// Whether so many bytes in all are too much for an address at which the client may not be.
    pub(super) fn is_too_early(&self, bytes: u64) -> bool {
        !self.is_confirmed() && bytes > MAX_UNCONFIRMED_BYTES
    }
    /// When an unconfirmed connection is forgotten.
    pub(super) fn unconfirmed_until(&self) -> Time {
        if self.is_confirmed() { Time::NEVER } else { self.last_received + MAX_UNCONFIRMED }
    }
}
