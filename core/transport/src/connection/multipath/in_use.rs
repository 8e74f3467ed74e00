//! The paths in use together: their statistics, and the length of packets that passes on each of them.

use super::super::Connection;
use super::super::messages::MESSAGE_OVERHEAD;
use super::super::path::Path;
use narrows_base::{Duration, Rate, Time};
use narrows_multipath::{PathState, PathStatus};

impl Connection {
    /// The places in [`paths`](Connection::paths) of the usable paths that are available, else of those on standby;
    /// without a usable path, the first place.
    pub(super) fn places_in_use(&self) -> impl Iterator<Item = usize> {
        let is_in_use =
            |path: &Path, status| path.is_usable() && path.scheduled.permitted == status;
        let statuses = [PathStatus::Available, PathStatus::Standby];
        let status = statuses.into_iter().find(|s| self.paths().any(|path| is_in_use(path, *s)));
        let places = self.paths().enumerate();
        let is_wanted = move |place: usize, path: &Path| match status {
            Some(status) => is_in_use(path, status),
            None => place == 0,
        };
        places.filter(move |(place, path)| is_wanted(*place, path)).map(|(place, _)| place)
    }
    /// The paths at [`places_in_use`](Connection::places_in_use).
    pub(in crate::connection) fn paths_in_use(&self) -> impl Iterator<Item = &Path> {
        self.places_in_use().map(|place| self.path_at(place))
    }
    /// The rate that the controllers permit on the paths in use together, of a path with a lower weight at most its part
    /// of the heaviest one's.
    pub(in crate::connection) fn permitted_rate(&self) -> Option<Rate> {
        let weight = |path: &Path| path.scheduled.weight.fraction();
        let most = self.paths_in_use().map(weight).fold(0.0, f64::max);
        let heaviest = self.paths_in_use().filter(|path| weight(path) >= most);
        let limit = heaviest.filter_map(Path::permitted_rate).max()?.as_bps() as f64 / most;
        let rate = |path: &Path| match path.permitted_rate()? {
            rate if weight(path) >= most => Some(rate),
            rate => Some(rate.min(Rate::from_bps_f64(limit * weight(path)))),
        };
        self.paths_in_use().filter_map(rate).reduce(Rate::saturating_add)
    }
    /// By how much the slowest path in use takes longer than the fastest one to deliver a packet.
    pub(in crate::connection) fn delay_difference(&self) -> Duration {
        let states = self.multipath.as_ref().map(|multipath| multipath.states.as_slice());
        narrows_multipath::delay_difference(states.unwrap_or_default())
    }

    /// UDP payload in bytes that passes on all paths in use. A path whose search for a larger datagram goes on does not
    /// count, unless it is the only one: longer messages take the others meanwhile.
    pub(in crate::connection) fn common_datagram(&self) -> u16 {
        let settled = self.paths_in_use().filter(|path| path.mtu.is_settled());
        let sizes = settled.map(|path| path.mtu.size()).min();
        let size = sizes.or_else(|| self.paths_in_use().map(|path| path.mtu.size()).min());
        size.unwrap_or_else(|| self.path.mtu.size())
    }
    /// UDP payload in bytes of the largest datagram that passes on any path in use.
    pub(in crate::connection) fn largest_datagram(&self) -> u16 {
        let sizes = self.paths_in_use().map(|path| path.mtu.size());
        sizes.max().unwrap_or_else(|| self.path.mtu.size())
    }
    /// Searches for larger datagrams on the paths in use whose datagrams are shorter than `bytes`.
    pub(in crate::connection) fn seek_larger_datagrams(&mut self, now: Time, bytes: usize) {
        for place in 0..self.path_count() {
            let is_short = usize::from(self.path_at(place).mtu.size()) < bytes;
            if is_short && self.places_in_use().any(|used| used == place) {
                self.on_path(place, |connection| {
                    connection.path.mtu.want_larger();
                    connection.path.seek_larger(now, &mut connection.payload);
                });
            }
        }
    }
    /// Searches for larger datagrams on the paths in use that are too small for the next message.
    pub(super) fn seek_room(&mut self, now: Time) {
        if let Some(message) = self.payload.messages.peek() {
            self.seek_larger_datagrams(now, message.len() + MESSAGE_OVERHEAD);
        }
    }
    /// The states of the paths for the next message: a path on which it does not fit is unusable, if it fits on another
    /// one in use. `None` if it fits on all of them, or on none.
    pub(super) fn states_with_room(&self) -> Option<Vec<PathState>> {
        let bytes = self.payload.messages.peek()?.len() + MESSAGE_OVERHEAD;
        let has_room = |path: &Path| usize::from(path.mtu.size()) >= bytes;
        let is_short_of_room = self.paths_in_use().any(|path| !has_room(path));
        if !is_short_of_room || !self.paths_in_use().any(has_room) {
            return None;
        }
        let states = self.multipath.as_ref()?.states.iter().enumerate();
        let with_room = states.map(|(index, state)| match self.path_at(self.place_of(index)) {
            path if has_room(path) => *state,
            _ => PathState { status: PathStatus::Unusable, ..*state },
        });
        Some(with_room.collect())
    }

    /// The application keeps this many bytes of messages, which it will send as earlier ones leave. The choice of path
    /// counts them with the waiting ones: the more data wait, the more a slower path is worth.
    pub fn hold_back(&mut self, bytes: u64) {
        if let Some(multipath) = &mut self.multipath {
            multipath.held_back = bytes;
        }
    }
}
