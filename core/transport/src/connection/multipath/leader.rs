//! PATH_LEADER: a server tells its client which path carries the data of another one, for the user to know.

use super::super::{Connection, Transmit};
use crate::streams::Side;
use narrows_base::Time;
use narrows_wire::Frame;
use narrows_wire::frame::PATH_LEADER;

/// Repetitions without an answer: the frame is lost with all of them at a loss of 10% once in 100,000 times.
const REPETITIONS: u32 = 4;

impl Connection {
    /// Announces a server's leaders that have changed.
    pub(super) fn announce_leaders(&mut self, now: Time) {
        for stats in self.path_stats() {
            let Some(multipath) = &mut self.multipath else { return };
            let known = multipath.leaders.get_mut(usize::from(stats.number));
            if multipath.side == Side::Server
                && let Some(known) = known.filter(|known| known.leader != stats.leader)
            {
                known.leader = stats.leader;
                known.announcement.begin(now);
            }
        }
    }

    /// The path that carries the server's data in place of the one with this number, at a client.
    pub(super) fn peer_leader(&self, number: u8) -> Option<u8> {
        let multipath = self.multipath.as_ref().filter(|m| m.side == Side::Client)?;
        multipath.leaders.get(usize::from(number))?.leader
    }

    /// Handles the server's PATH_LEADER.
    pub(in crate::connection) fn on_path_leader(&mut self, now: Time, body: &[u8]) {
        let Some(multipath) = &mut self.multipath else { return };
        let [path, leader] = *body else {
            return self.fault(now, 1, "a PATH_LEADER of another length than 2 bytes");
        };
        let count = multipath.leaders.len();
        let known = multipath.leaders.get_mut(usize::from(path));
        match known.filter(|_| usize::from(leader) < count) {
            Some(known) if multipath.side == Side::Client => {
                known.leader = (leader != path).then_some(leader);
            }
            Some(_) => self.fault(now, 1, "a PATH_LEADER of a client"),
            None => self.fault(now, 1, "the leader of a path beyond the agreed number"),
        }
    }

    /// Sends PATH_LEADER, if it is due.
    pub(super) fn transmit_path_leader(
        &mut self,
        now: Time,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let index = self.latest_path();
        let pto = self.path_at(index).sender.pto();
        let leaders = &mut self.multipath.as_mut()?.leaders;
        let number = leaders.iter().position(|known| known.announcement.due <= now)?;
        let known = leaders.get_mut(number)?;
        known.announcement.on_sent(now, pto, REPETITIONS);
        let number = number as u8;
        let body = [number, known.leader.unwrap_or(number)];
        let frame = Frame::Extension { kind: PATH_LEADER, body: &body };
        self.transmit_extension(now, index, buffer, &frame)
    }
}
