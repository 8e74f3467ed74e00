//! The payload of a connection's packets, as the packet sender sees it.

use super::messages::MessageOutbox;
use super::outgoing_token::OutgoingToken;
use crate::streams::{SentFrame, Streams};
use narrows_recovery::packet_sender::SHORT_PROBE_BYTES;

/// Bytes of UDP and IPv4 headers.
pub(super) const UDP_OVERHEAD: u32 = 28;
/// Datagram size for a peer that sets no limit.
pub(super) const USUAL_DATAGRAM: u64 = 1200;
/// Bytes of IPv6 and UDP headers.
const LONGEST_HEADERS: u32 = 48;
/// UDP payload in bytes of a PTO probe that leaves earlier than RFC 9002 specifies: a PING.
pub(super) const SHORT_PROBE_DATAGRAM: usize = (SHORT_PROBE_BYTES - LONGEST_HEADERS) as usize;

/// The contents of a tracked packet. Usually this is one range of a stream, which needs no allocation.
#[derive(Debug, Default)]
pub(super) struct SentFrames {
    first: Option<SentFrame>,
    more: Vec<SentFrame>,
    /// UDP payload in bytes.
    pub size: u16,
    /// Bytes of messages in the packet.
    pub messages: u16,
    /// Whether it has the token for the client's next handshake.
    pub has_token: bool,
    /// Whether it is only a probe of the path MTU.
    pub is_probe: bool,
}

impl SentFrames {
    /// A packet of `size` bytes without tracked contents.
    pub fn bare(size: u16, is_probe: bool) -> SentFrames {
        SentFrames { size, is_probe, ..SentFrames::default() }
    }
    pub fn push(&mut self, piece: SentFrame) {
        if self.first.is_none() {
            self.first = Some(piece);
        } else {
            self.more.push(piece);
        }
    }
    fn sent_frames(&self) -> impl Iterator<Item = &SentFrame> {
        self.first.iter().chain(&self.more)
    }
    /// The last pushed frame.
    pub fn last(&self) -> Option<SentFrame> {
        self.more.last().or(self.first.as_ref()).copied()
    }
    /// Stream bytes in the packet.
    pub fn bytes(&self) -> u64 {
        let length = |p: &SentFrame| match p {
            SentFrame::Stream { length, .. } => u64::from(*length),
            _ => 0,
        };
        self.sent_frames().map(length).sum()
    }
}

/// Streams, messages, and a pending PING or token.
#[derive(Debug)]
pub(super) struct ConnectionPayload {
    pub streams: Streams,
    pub messages: MessageOutbox,
    /// Whether a PING must be sent.
    pub ping: bool,
    /// The token for the client's next handshake, until it is acknowledged.
    pub token: Option<Box<OutgoingToken>>,
    /// Bytes of streams and messages in acknowledged packets.
    pub bytes_arrived: u64,
    /// Whether a packet with this end's announcements arrived: MTU probes and short probes have no space for them.
    pub announced: bool,
    /// Lost stream bytes not yet sent again. The next stream bytes count as their retransmission.
    owed: u64,
}

impl ConnectionPayload {
    pub fn new(streams: Streams) -> ConnectionPayload {
        ConnectionPayload {
            streams,
            messages: MessageOutbox::default(),
            ping: true,
            token: None,
            bytes_arrived: 0,
            announced: false,
            owed: 0,
        }
    }
    /// Whether this packet repeats lost data. The decision uses byte counts, because lost bytes
    /// that arrive late are not sent again.
    pub fn repays(&mut self, frames: &SentFrames) -> bool {
        let bytes = frames.bytes();
        let repays = self.owed > 0 && bytes > 0;
        self.owed = self.owed.saturating_sub(bytes);
        repays
    }

    /// Whether no data waits, neither new data nor retransmissions.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        !self.ping
            && self.token.as_ref().is_none_or(|token| !token.must_leave())
            && self.messages.is_empty()
            && !self.streams.has_something()
    }
    /// A packet with these frames arrived.
    #[inline]
    pub fn arrived(&mut self, frames: &SentFrames) {
        self.announced |= usize::from(frames.size) > SHORT_PROBE_DATAGRAM;
        if frames.has_token {
            self.token = self.token.take().filter(|token| !token.has_arrived());
        }
        self.bytes_arrived += frames.bytes() + u64::from(frames.messages);
        for piece in frames.sent_frames() {
            self.streams.arrived(piece);
        }
        if self.owed > 0 && self.streams.all_arrived() {
            self.owed = 0;
        }
    }
    /// A packet with these frames was declared lost, or a probe repeats it. Returns whether any of its data must be sent
    /// again.
    pub fn lost(&mut self, frames: &SentFrames) -> bool {
        if let Some(token) = self.token.as_mut().filter(|_| frames.has_token) {
            token.on_lost();
        }
        let mut again = false;
        for piece in frames.sent_frames() {
            if self.streams.lost(piece) {
                again = true;
                if let SentFrame::Stream { length, .. } = piece {
                    self.owed += u64::from(*length);
                }
            }
        }
        again
    }
}
