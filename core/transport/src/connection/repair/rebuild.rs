//! Received repair packets in a connection.

use super::incoming::RepairOutcome;
use crate::connection::Connection;
use crate::connection::receive::PeerAnnouncements;
use narrows_base::Time;
use narrows_wire::{Frame, Frames, RepairFields};
use std::net::SocketAddr;

/// Whether a frame of a rebuilt packet is valid: it concerns streams or messages, not the packet, its number, time or
/// address.
fn is_for_streams_or_messages(frame: &Frame<'_>) -> bool {
    match frame {
        Frame::Datagram(_)
        | Frame::Stream { .. }
        | Frame::MaxData(_)
        | Frame::MaxStream { .. }
        | Frame::MaxStreams { .. }
        | Frame::Blocked { .. }
        | Frame::StreamBlocked { .. }
        | Frame::StreamsBlocked { .. }
        | Frame::ResetStream { .. }
        | Frame::Stop { .. } => true,
        Frame::Padding(_)
        | Frame::Ping
        | Frame::Report(_)
        | Frame::Feedback(_)
        | Frame::PathChallenge(_)
        | Frame::PathResponse(_)
        | Frame::Close { .. }
        | Frame::Extension { .. } => false,
    }
}

impl Connection {
    /// Handles a REPAIR in packet `number`. It is skipped like an unknown extension if repair was not negotiated.
    pub(in super::super) fn on_repair(
        &mut self,
        now: Time,
        from: SocketAddr,
        number: u64,
        body: &[u8],
    ) {
        let Some(repairs) = &mut self.repairs else { return };
        let repair = match RepairFields::read(body) {
            Ok(repair) => repair,
            Err(malformed) => return self.fault(now, 1, malformed.what),
        };
        let opener = &self.path.opener;
        let frames = match repairs.incoming.rebuild(number, &repair, |n| opener.is_new(n)) {
            RepairOutcome::Nothing => return,
            RepairOutcome::Wrong => {
                return self.fault(now, 1, "a repair that is not of what it names");
            }
            RepairOutcome::Rebuilt(frames) => frames,
        };
        let mut said = PeerAnnouncements::default();
        for frame in Frames::bare(&frames) {
            match frame {
                Ok(frame) => {
                    said.note(&frame, frames.len());
                    if is_for_streams_or_messages(&frame) {
                        // The ECN field of the lost packet is unknown.
                        self.on_frame(now, from, 0, &frame);
                    }
                }
                Err(malformed) => self.fault(now, 1, malformed.what),
            }
        }
        self.on_said(now, &said);
    }
}
