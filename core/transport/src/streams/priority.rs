//! Streams that wait to send: highest priority first, in turns within a priority.

use std::collections::VecDeque;

/// Above this number of lists, empty ones are dropped.
const KEPT_LEVELS: usize = 8;

/// Stream IDs by priority, the highest first. Usually there is one priority.
#[derive(Debug, Default)]
pub(super) struct PriorityQueue {
    /// In descending order of priorities; a list may be empty.
    levels: Vec<(i32, VecDeque<u64>)>,
    /// Bytes of a turn, which is at least a packet.
    turn_bytes: u64,
    /// The stream that sent last, and the bytes of its turn.
    last: (u64, u64),
}

impl PriorityQueue {
    /// Adds a stream after those of the same priority.
    #[inline]
    pub fn push_back(&mut self, priority: i32, id: u64) {
        let place = self.levels.iter().position(|level| level.0 <= priority);
        match place.and_then(|place| self.levels.get_mut(place)) {
            Some(level) if level.0 == priority => level.1.push_back(id),
            _ => {
                self.levels.insert(place.unwrap_or(self.levels.len()), (priority, [id].into()));
            }
        }
    }

    #[inline]
    fn first(&self) -> Option<&(i32, VecDeque<u64>)> {
        self.levels.iter().find(|level| !level.1.is_empty())
    }
    #[inline]
    fn first_mut(&mut self) -> Option<&mut VecDeque<u64>> {
        self.levels.iter_mut().map(|level| &mut level.1).find(|ids| !ids.is_empty())
    }
    /// The highest priority of a waiting stream.
    #[inline]
    pub fn highest(&self) -> Option<i32> {
        self.first().map(|level| level.0)
    }
    /// The stream that has its turn.
    #[inline]
    pub fn front(&self) -> Option<u64> {
        self.first().and_then(|level| level.1.front().copied())
    }
    #[inline]
    pub fn pop_front(&mut self) {
        if let Some(ids) = self.first_mut() {
            ids.pop_front();
        }
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }
    /// The streams of this priority, in the order of their turns.
    pub fn ids_of(&self, priority: Option<i32>) -> impl Iterator<Item = u64> {
        let level = self.levels.iter().find(move |level| Some(level.0) == priority);
        level.into_iter().flat_map(|level| level.1.iter().copied())
    }
    /// See [`ConnectionConfig::turn_bytes`](crate::connection::ConnectionConfig::turn_bytes).
    pub fn set_turn(&mut self, bytes: u64) {
        self.turn_bytes = bytes;
    }
    /// Records that the first stream sent `bytes` bytes and has more. If its turn is over, the next stream of the same
    /// priority follows.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        let turn_bytes = self.turn_bytes;
        let last = self.last;
        let Some(ids) = self.first_mut().filter(|ids| ids.len() > 1) else { return };
        let Some(&id) = ids.front() else { return };
        let sent = bytes + if last.0 == id { last.1 } else { 0 };
        if sent >= turn_bytes {
            ids.rotate_left(1);
        }
        self.last = (id, if sent >= turn_bytes { 0 } else { sent });
    }
    /// Removes a stream that waits with this priority.
    pub fn remove(&mut self, priority: i32, id: u64) {
        if let Some(level) = self.levels.iter_mut().find(|level| level.0 == priority) {
            level.1.retain(|other| *other != id);
        }
        if self.levels.len() > KEPT_LEVELS {
            self.levels.retain(|level| !level.1.is_empty());
        }
    }

    /// Bytes of its lists.
    pub fn memory(&self) -> usize {
        let ids: usize =
            self.levels.iter().map(|level| level.1.capacity() * size_of::<u64>()).sum();
        ids + self.levels.capacity() * size_of::<(i32, VecDeque<u64>)>()
    }
    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.levels.retain(|level| !level.1.is_empty());
        self.levels.shrink_to_fit();
    }
    /// Releases the lists if they are empty and large.
    pub fn release(&mut self) {
        if self.is_empty() && (self.levels.len() > 1 || self.memory() > 1024) {
            self.levels = Vec::new();
        }
    }
}
