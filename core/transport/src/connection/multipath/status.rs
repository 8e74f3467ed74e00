//! Status of paths: available, perhaps with a weight, on standby, or closed for good.
//!
//! The client sets a path's status, for both directions, and announces it by PATH_STATUS until the server's echo comes.
//! It knows which line is metered, and which interface is gone. It repeats PATH_STATUS while the connection lives: a
//! server that missed it would go on sending over a line that is paid by the byte.

use super::super::path::Path;
use super::super::{Connection, Transmit};
use super::announcement::AnnouncedStatus;
use crate::streams::Side;
use narrows_base::Time;
use narrows_multipath::{PathStatus, PathWeight};
use narrows_wire::Frame;
use narrows_wire::frame::{PATH_STATUS, PathStatusFrame};

/// A weight below 100% has a status of its own, above those: 3 is 1%, 101 is 99%.
const FIRST_WEIGHT: u8 = 3;

fn code(known: &AnnouncedStatus) -> u8 {
    match known.status {
        PathStatus::Available if known.weight < PathWeight::default() => {
            known.weight.percent() - 1 + FIRST_WEIGHT
        }
        PathStatus::Available => 0,
        PathStatus::Standby => 1,
        PathStatus::Unusable => 2,
    }
}
fn of_code(code: u8) -> Option<(PathStatus, PathWeight)> {
    let status = match code {
        0 => PathStatus::Available,
        1 => PathStatus::Standby,
        2 => PathStatus::Unusable,
        _ => {
            let weight = PathWeight::from_percent(code - FIRST_WEIGHT + 1)?;
            return (weight < PathWeight::default()).then_some((PathStatus::Available, weight));
        }
    };
    Some((status, PathWeight::default()))
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
        self.change_status(now, number, |known| {
            std::mem::replace(&mut known.status, status) != status
        })
    }
    /// Sets the weight of an available path at a client, as [`set_path_status`](Connection::set_path_status) its status.
    pub fn set_path_weight(&mut self, now: Time, number: u8, weight: PathWeight) -> bool {
        self.change_status(now, number, |known| {
            std::mem::replace(&mut known.weight, weight) != weight
        })
    }
    /// `change` returns whether it changed anything.
    fn change_status(
        &mut self,
        now: Time,
        number: u8,
        change: impl FnOnce(&mut AnnouncedStatus) -> bool,
    ) -> bool {
        let is_open = self.is_open();
        let Some(multipath) = self.multipath.as_mut().filter(|m| is_open && m.side == Side::Client)
        else {
            return false;
        };
        let Some(known) = multipath.statuses.get_mut(usize::from(number)) else { return false };
        if known.status == PathStatus::Unusable {
            return false;
        }
        if change(known) {
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
        let Some((status, weight)) = of_code(frame.status) else {
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
            known.weight = weight;
            self.apply_status(frame.path);
        }
    }

    /// Applies the status to a path that has begun.
    fn apply_status(&mut self, number: u8) {
        let Some(index) = self.paths().position(|path| path.number == number) else { return };
        let known = self.multipath.as_ref().and_then(|m| m.statuses.get(usize::from(number)));
        let Some(AnnouncedStatus { status, weight, .. }) = known else { return };
        let status = *status;
        let weight = *weight;
        self.on_path(index, |connection| {
            let Connection { path, payload, .. } = connection;
            path.scheduled.permitted = status;
            path.scheduled.weight = weight;
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
        let frame =
            PathStatusFrame { path: number as u8, status: code(known), sequence: known.sequence };
        let body = frame.bytes();
        let frame = Frame::Extension { kind: PATH_STATUS, body: &body };
        self.transmit_extension(now, index, buffer, &frame)
    }
}
