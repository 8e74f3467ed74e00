//! Copies of late data on another path, while no other data wait.

use super::super::Connection;
use super::{MAX_PATHS, Multipath};
use narrows_base::Time;
use narrows_multipath::{InFlightPiece, NumberedPiece, Offered};

impl Connection {
    /// Puts a packet's data in line again that are in flight on one path, if the scheduler wants a copy on another one
    /// that may send now.
    pub(super) fn repeat_late_data(&mut self, now: Time) {
        let count = self.path_count();
        if count < 2 || !self.payload.is_empty() || self.payload.streams.all_arrived() {
            return;
        }
        for on in 0..count {
            if !self.path_at(on).scheduled.is_permitted {
                continue;
            }
            if (0..count).any(|path| path != on && self.repeat_from(now, path, on)) {
                return;
            }
        }
    }

    /// Repeats a packet's data of the first path on the second one. Returns whether any of them wait now.
    fn repeat_from(&mut self, now: Time, path: usize, on: usize) -> bool {
        self.on_path(path, |connection| {
            let Connection { path: carrier, payload, multipath, .. } = connection;
            let Some(multipath) = multipath else { return false };
            let Multipath { scheduler, states, offered, .. } = &mut **multipath;
            let states = states.as_slice();
            let most = usize::from(MAX_PATHS);
            offered.resize(most * most, Offered::default());
            let Some(offered) = offered.get_mut(path * most + on) else { return false };
            let first = |from| {
                let mut packets = carrier.sender.in_flight_from(from);
                let (number, sent, frames) = packets.find(|(_, _, frames)| frames.bytes() > 0)?;
                let length = frames.bytes() as u32;
                Some(NumberedPiece { number, piece: InFlightPiece { path, sent, length } })
            };
            while let Some(number) = offered.next(first, |p| scheduler.repeats(now, states, on, p))
            {
                let packet = carrier.sender.in_flight_from(number).next();
                let Some((_, _, frames)) = packet else { return false };
                // A copy may have arrived already.
                if payload.lost(frames) {
                    scheduler.on_sent(on, frames.bytes() as u32, true);
                    return true;
                }
            }
            false
        })
    }
}
