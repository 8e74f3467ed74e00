//! Early data at both ends, and the confirmation of a server's connection by the first packet that opens.

use super::Connection;
use super::early::{MAX_UNCONFIRMED, STREAM, is_too_early};
use crate::streams::Side;
use narrows_base::Time;
use narrows_wire::{Frame, Frames};

impl Connection {
    /// At a server: reads the frames of EARLY-START, which must be the beginning of the first stream. False if they are
    /// not; the caller must then drop the connection.
    pub fn take_early(&mut self, frames: &[u8]) -> bool {
        let streams = &mut self.payload.streams;
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

    /// At a server: whether this stream has data received before the handshake completed. Such data may arrive again in
    /// another connection.
    pub fn is_early(&self, id: u64) -> bool {
        let is_server = self.agreement.side == Side::Server;
        is_server && id == STREAM && self.early.is_some_and(|early| early.is_taken)
    }
    /// At a server: false until a packet of the client opens, after EARLY-START alone.
    pub fn is_confirmed(&self) -> bool {
        self.early.is_none_or(|early| !early.is_unconfirmed)
    }
    /// At a client: the stream of its early data, whether or not the server accepted them early.
    pub fn early_stream(&self) -> Option<u64> {
        self.early.filter(|early| early.has_stream).map(|_| STREAM)
    }
    /// At a client: whether the server accepted the early data.
    pub fn is_early_taken(&self) -> bool {
        self.early.is_some_and(|early| early.is_taken)
    }

    /// Confirms the connection: a packet of the peer opened.
    #[inline]
    pub(super) fn confirm(&mut self) {
        let Some(early) = self.early.as_mut().filter(|early| early.is_unconfirmed) else { return };
        early.is_unconfirmed = false;
        if let Some(token) = &mut self.payload.token {
            token.hurry();
        }
    }
    /// Whether this total of bytes exceeds the limit for an address that is not yet validated.
    pub(super) fn is_too_early(&self, bytes: u64) -> bool {
        is_too_early(self.early, bytes)
    }
    /// When an unconfirmed connection is dropped.
    pub(super) fn unconfirmed_until(&self) -> Time {
        if self.is_confirmed() { Time::NEVER } else { self.timeouts.received + MAX_UNCONFIRMED }
    }
}
