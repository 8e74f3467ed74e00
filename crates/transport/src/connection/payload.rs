//! The payload of a connection's packets, as seen by the packet sender.

use super::messages::Outbox;
use super::mtu::FullPackets;
use super::outgoing_token::OutgoingToken;
use crate::packet_sender::PayloadSource;
use crate::streams::{SentFrame, Streams};

/// What one packet carries of what must be known to have arrived. Nearly always one piece of a
/// stream: nothing is allocated then.
#[derive(Debug, Default)]
pub(super) struct SentFrames {
    first: Option<SentFrame>,
    more: Vec<SentFrame>,
    /// UDP payload.
    pub size: u16,
    /// Bytes of messages.
    pub messages: u16,
    /// It has the token for the client's next handshake.
    pub has_token: bool,
    /// Whether it is only a probe of the path MTU.
    pub is_probe: bool,
}

impl SentFrames {
    /// A packet of `size` bytes whose content needs no acknowledgement.
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
    /// What was pushed last.
    pub fn last(&self) -> Option<SentFrame> {
        self.more.last().or(self.first.as_ref()).copied()
    }
    /// Bytes of streams.
    pub fn bytes(&self) -> u64 {
        let length = |p: &SentFrame| match p {
            SentFrame::Stream { length, .. } => u64::from(*length),
            _ => 0,
        };
        self.sent_frames().map(length).sum()
    }
}

/// Streams, messages, and the wish for a sign of life.
#[derive(Debug)]
pub(super) struct ConnectionPayload {
    pub streams: Streams,
    pub messages: Outbox,
    /// A PING must leave.
    pub ping: bool,
    /// The token for the client's next handshake, until it has arrived.
    pub token: Option<Box<OutgoingToken>>,
    /// The outcome of the last MTU probe.
    pub probed: Option<(u16, bool)>,
    /// Bytes of streams and messages in packets that arrived.
    pub bytes_arrived: u64,
    /// Packets larger than this are *large*.
    pub small: u16,
    /// Large packets lost since one arrived.
    pub large_lost: u32,
    /// What became of packets of that size and larger ones.
    pub full_packets: FullPackets,
    /// Bytes of streams that were lost and did not leave again: what leaves next repeats them.
    owed: u64,
}

impl ConnectionPayload {
    pub fn new(streams: Streams, messages: Outbox, small: u16) -> ConnectionPayload {
        ConnectionPayload {
            streams,
            messages,
            ping: true,
            token: None,
            probed: None,
            bytes_arrived: 0,
            small,
            large_lost: 0,
            full_packets: FullPackets::default(),
            owed: 0,
        }
    }
    /// Whether this packet repeats lost data. Judged by byte counts, because lost bytes that
    /// arrived late are not sent again.
    pub fn repays(&mut self, frames: &SentFrames) -> bool {
        let bytes = frames.bytes();
        let repays = self.owed > 0 && bytes > 0;
        self.owed = self.owed.saturating_sub(bytes);
        repays
    }
}

impl PayloadSource for ConnectionPayload {
    type Payload = SentFrames;

    #[inline]
    fn is_empty(&mut self) -> bool {
        !self.ping
            && self.token.as_ref().is_none_or(|token| !token.must_leave())
            && self.messages.is_empty()
            && !self.streams.has_something()
    }
    #[inline]
    fn all_arrived(&self, in_flight: u64) -> bool {
        in_flight == 0
    }
    #[inline]
    fn arrived(&mut self, frames: &SentFrames) {
        if frames.size >= self.small {
            self.full_packets.on_arrived();
        }
        if frames.is_probe {
            self.probed = Some((frames.size, true));
            return;
        }
        if frames.has_token {
            self.token = self.token.take().filter(|token| !token.has_arrived());
        }
        self.bytes_arrived += frames.bytes() + u64::from(frames.messages);
        if frames.size > self.small {
            self.large_lost = 0;
        }
        for piece in frames.sent_frames() {
            self.streams.arrived(piece);
        }
        if self.owed > 0 && self.streams.all_arrived() {
            self.owed = 0;
        }
    }
    fn lost(&mut self, frames: &SentFrames) -> bool {
        if frames.is_probe {
            self.probed = Some((frames.size, false));
            return false;
        }
        if frames.size > self.small {
            self.large_lost = self.large_lost.saturating_add(1);
        }
        if frames.size >= self.small {
            self.full_packets.on_lost();
        }
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
