//! The paths of a connection: the current one, and all of them.

use super::super::Connection;
use super::super::path::Path;
use super::PathStats;

impl Connection {
    /// Number of paths that both ends support.
    pub fn max_paths(&self) -> u8 {
        1 + self.multipath.as_ref().map_or(0, |multipath| multipath.opening.len() as u8)
    }
    /// Number of paths that have begun.
    pub fn path_count(&self) -> usize {
        1 + self.further_paths().count()
    }
    /// Statistics of the paths that have begun, path 0 first.
    pub fn path_stats(&self) -> Vec<PathStats> {
        let stats = |(place, path): (usize, &Path)| PathStats {
            number: path.number,
            leader: self.leader(self.place_of(place)).map(|leader| self.path_at(leader).number),
            peer_leader: self.peer_leader(path.number),
            remote: path.address.remote(),
            status: path.scheduled.permitted,
            is_usable: path.is_usable(),
            bytes_sent: path.bytes_sent,
            bytes_received: path.bytes_received,
            srtt: path.sender.rtt().srtt(),
        };
        self.paths().enumerate().map(stats).collect()
    }

    /// The paths that have begun, without path 0.
    pub(in crate::connection) fn further_paths(&self) -> impl Iterator<Item = &Path> + Clone {
        self.multipath.iter().flat_map(|multipath| multipath.others.iter().map(|path| &**path))
    }
    /// All paths that have begun, path 0 first.
    pub(in crate::connection) fn paths(&self) -> impl Iterator<Item = &Path> + Clone {
        std::iter::once(&*self.path).chain(self.further_paths())
    }
    /// The path with this index, in the order of [`paths`](Connection::paths).
    pub(super) fn path_at(&self, index: usize) -> &Path {
        self.paths().nth(index).unwrap_or(&self.path)
    }
    /// Whether another path than the one with this index may carry data.
    pub(super) fn is_usable_elsewhere(&self, index: usize) -> bool {
        self.paths().enumerate().any(|(n, path)| n != index && path.is_usable())
    }
    /// The index of the usable path from which a packet came last; without a usable one, of the validated ones.
    pub(super) fn latest_path(&self) -> usize {
        let validated = self.paths().enumerate().filter(|(_, path)| path.address.is_validated());
        let latest = validated
            .max_by_key(|(index, path)| (path.is_usable(), path.received, usize::MAX - index));
        latest.map_or(0, |(index, _)| index)
    }

    /// The index of the current path.
    pub(super) fn current_index(&self) -> usize {
        if self.path.number == 0 {
            return 0;
        }
        // The other path's place holds path 0 meanwhile.
        let place = self.further_paths().position(|path| path.number == 0);
        place.map_or(0, |place| place + 1)
    }

    /// The place in [`paths`](Connection::paths) of the path with this index, and the reverse: the current path has
    /// changed places with path 0.
    pub(super) fn place_of(&self, index: usize) -> usize {
        let current = self.current_index();
        if index == 0 {
            current
        } else if index == current {
            0
        } else {
            index
        }
    }

    /// Calls `act` while the path with this index is the current one.
    pub(in crate::connection) fn on_path<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> R {
        self.swap_path(index);
        let result = act(self);
        self.swap_path(index);
        result
    }
    fn swap_path(&mut self, index: usize) {
        let others = self.multipath.as_mut().map(|multipath| &mut multipath.others);
        if let (Some(place), Some(others)) = (index.checked_sub(1), others)
            && let Some(other) = others.get_mut(place)
        {
            std::mem::swap(&mut self.path, other);
        }
    }
}
