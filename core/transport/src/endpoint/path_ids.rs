//! Connection IDs of further paths.
//!
//! All bits of such an ID are random, while the ID of path 0 contains the number of its slot: an observer of two paths
//! cannot tell that they belong to one connection.

use narrows_wire::ConnectionId;
use std::collections::BTreeMap;

/// A path, and the slot of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathOf {
    pub(super) slot: u32,
    pub(super) path: u8,
}

/// The IDs of further paths. There are at most [`MAX_PATHS`](crate::connection::MAX_PATHS) - 1 per connection.
#[derive(Debug, Default)]
pub(super) struct PathIds(BTreeMap<ConnectionId, PathOf>);

impl PathIds {
    /// The path with this ID.
    #[inline]
    pub(super) fn get(&self, id: ConnectionId) -> Option<PathOf> {
        self.0.get(&id).copied()
    }
    /// Adds an unused ID.
    pub(super) fn insert(&mut self, id: ConnectionId, path: PathOf) {
        self.0.insert(id, path);
    }
    /// Removes the IDs of a connection.
    pub(super) fn remove(&mut self, ids: &[ConnectionId]) {
        for id in ids {
            self.0.remove(id);
        }
    }
    /// Number of IDs.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
