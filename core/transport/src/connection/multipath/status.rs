//! Status of paths: available, on standby, or closed for good.
//!
//! The client sets a path's status, for both directions, and announces it by PATH_STATUS until the server's echo comes.
//! It knows which line is metered, and which interface is gone. It repeats PATH_STATUS while the connection lives: a
//! server that missed it would go on sending over a line that is paid by the byte.

use super::super::path::Path;
use super::super::{Connection, Transmit};
use crate::streams::Side;
use narrows_base::Time;
use narrows_multipath::PathStatus;
use narrows_wire::Frame;
use narrows_wire::frame::{PATH_STATUS, PathStatusFrame};

fn code(status: PathStatus) -> u8 {
    match status {
        PathStatus::Available => 0,
        PathStatus::Standby => 1,
        PathStatus::Unusable => 2,
    }
}
fn of_code(code: u8) -> Option<PathStatus> {
    [PathStatus::Available, PathStatus::Standby, PathStatus::Unusable]
        .get(usize::from(code))
        .copied()
}

impl Path {
    /// Whether the client has closed it: neither data nor path frames leave there.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.scheduled.permitted == PathStatus::Unusable
    }
}

impl Connection {
    /// Sets the status of a path at a client, for both directions; [`PathStatus::Unusable`] closes it for good. A path
    /// that is not open yet begins with the status. Returns whether the path is within the agreed number and not closed.
    pub fn set_path_status(&mut self, now: Time, number: u8, status: PathStatus) -> bool {
        let is_open = self.is_open();
        let Some(multipath) = self.multipath.as_mut().filter(|m| is_open && m.side == Side::Client)
        else {
            return false;
        };
        let Some(known) = multipath.statuses.get_mut(usize::from(number)) else { return false };
        if known.status == PathStatus::Unusable {
            return false;
        }
        if known.status != status {
            known.status = status;
            known.sequence += 1;
            known.announcement.begin(now);
            self.apply_status(number);
        }
        true
    }

    /// Handles the peer's PATH_STATUS: at a server the client's wish, at a client the server's echo.
    pub(in crate::connection) fn on_path_status(&mut self, now: Time, body: &[u8]) {
        let Some(multipath) = &mut self.multipath else { return };
        let side = multipath.side;
        let frame = match PathStatusFrame::read(body) {
            Ok(frame) => frame,
            Err(malformed) => return self.fault(now, 1, malformed.what),
        };
        let Some(known) = multipath.statuses.get_mut(usize::from(frame.path)) else {
            return self.fault(now, 1, "the status of a path beyond the agreed number");
        };
        let Some(status) = of_code(frame.status) else {
            return self.fault(now, 1, "an unknown status of a path");
        };
        if side == Side::Client {
            if frame.sequence > known.sequence {
                return self.fault(now, 1, "a status that this end did not set");
            }
            if frame.sequence == known.sequence {
                known.announcement.end();
            }
            return;
        }
        known.announcement.begin(now);
        if frame.sequence > known.sequence && known.status != PathStatus::Unusable {
            known.sequence = frame.sequence;
            known.status = status;
            self.apply_status(frame.path);
        }
    }

    /// Applies the status to a path that has begun.
    fn apply_status(&mut self, number: u8) {
        let Some(index) = self.paths().position(|path| path.number == number) else { return };
        let Some(status) = self.multipath.as_ref().and_then(|m| m.status(number)) else { return };
        self.on_path(index, |connection| {
            let Connection { path, payload, .. } = connection;
            path.scheduled.permitted = status;
            path.scheduled.is_stale = true;
            if path.is_closed() {
                // What is in flight on it leaves again on the others.
                for (_, _, frames) in path.sender.in_flight_from(0) {
                    payload.lost(frames);
                }
            }
        });
        self.share_rate_limit();
    }

    /// Sends PATH_STATUS or PATH_LEADER, if it is due.
    pub(super) fn transmit_path_status(
        &mut self,
        now: Time,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let index = self.latest_path();
        let pto = self.path_at(index).sender.pto();
        let multipath = self.multipath.as_mut()?;
        let due = multipath.statuses.iter().position(|known| known.announcement.due <= now);
        let Some(number) = due else { return self.transmit_path_leader(now, buffer) };
        let known = multipath.statuses.get_mut(number)?;
        let repetitions = if multipath.side == Side::Client { u32::MAX } else { 0 };
        known.announcement.on_sent(now, pto, repetitions);
        let frame = PathStatusFrame {
            path: number as u8,
            status: code(known.status),
            sequence: known.sequence,
        };
        let body = frame.bytes();
        let frame = Frame::Extension { kind: PATH_STATUS, body: &body };
        self.transmit_extension(now, index, buffer, &frame)
    }
}
