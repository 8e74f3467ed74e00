//! Opening and finding streams, and their priorities.

use super::stream::{MAX_STREAMS, StreamDirection, direction_index, is_ours};
use super::{Side, StreamError, StreamEvent, Streams, Violation};

impl Streams {
    /// Opens a stream. `None` if the peer's limit is reached; [`StreamEvent::MayOpen`] follows when it permits another
    /// one.
    pub fn open(&mut self, one_way: bool) -> Option<u64> {
        let direction_index = usize::from(one_way);
        let ours = &mut self.ours[direction_index];
        if ours.room() == 0 {
            self.wants_open[direction_index] = true;
            return None;
        }
        let side = u64::from(self.side == Side::Server);
        let id = ours.used() << 2 | (direction_index as u64) << 1 | side;
        ours.spend(1);
        self.insert(id);
        Some(id)
    }
    /// The next stream opened by the peer, if any.
    pub fn accept(&mut self) -> Option<u64> {
        let peer = u64::from(self.side == Side::Client);
        for direction_index in 0..2 {
            while self.accepted[direction_index] < self.theirs[direction_index].came() {
                let id = self.accepted[direction_index] << 2 | (direction_index as u64) << 1 | peer;
                self.accepted[direction_index] += 1;
                // It may be over already, with or without events.
                if self.map.get(id).is_some_and(|stream| !stream.is_unseen) {
                    return Some(id);
                }
            }
        }
        None
    }

    fn insert(&mut self, id: u64) {
        let ours = is_ours(self.side, id);
        let one_way = direction_index(id) == 1;
        let credit = (ours || !one_way).then_some(self.stream_credit);
        let window = (!ours || !one_way).then_some(self.stream_window);
        self.map.insert(id, self.spare.make(id, credit, window));
    }

    /// Checks that a frame may concern this stream, and opens the stream if the peer is to open it.
    pub(super) fn admit(&mut self, id: u64, direction: StreamDirection) -> Result<(), Violation> {
        let ours = is_ours(self.side, id);
        if direction_index(id) == 1 && ours == (direction == StreamDirection::In) {
            return Err(Violation { code: 3, why: "a frame about a direction that is not there" });
        }
        let n = id >> 2;
        let direction_index = direction_index(id);
        if ours {
            if n >= self.ours[direction_index].used() {
                return Err(Violation { code: 3, why: "a frame about a stream not opened yet" });
            }
            return Ok(());
        }
        let theirs = &mut self.theirs[direction_index];
        if n >= theirs.granted() {
            return Err(Violation { code: 2, why: "more streams than the limits permit" });
        }
        let first = theirs.came();
        if n >= first {
            // IDs are used in order, so lower ones are open, too.
            theirs.come(n + 1 - first);
            self.queues.opened = true;
            for k in first..=n {
                self.insert(k << 2 | id & 3);
            }
        }
        Ok(())
    }

    /// Handles the peer's limit on the number of streams.
    pub(super) fn on_max_streams(&mut self, one_way: bool, most: u64) {
        let direction_index = usize::from(one_way);
        let more = self.ours[direction_index].raise(most.min(MAX_STREAMS));
        if more && self.wants_open[direction_index] {
            self.wants_open[direction_index] = false;
            if !self.queues.events.contains(&StreamEvent::MayOpen) {
                self.queues.events.push_back(StreamEvent::MayOpen);
            }
        }
    }

    /// Sets a stream's priority. Among streams with data to send, including lost data, those of the highest priority go
    /// first. Within a priority they take turns, packet by packet unless the connection is configured otherwise. New
    /// streams have priority 0. The peer does not see priorities.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction.
    pub fn set_priority(&mut self, id: u64, priority: i32) -> Result<(), StreamError> {
        let stream = self.map.get_mut(id).ok_or(StreamError::Unknown)?;
        if stream.send.is_none() {
            return Err(StreamError::Unknown);
        }
        if priority != stream.priority {
            self.queues.change_priority(stream, priority);
        }
        Ok(())
    }

    /// The priority of a stream on which this end sends.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction.
    pub fn priority(&self, id: u64) -> Result<i32, StreamError> {
        let stream = self.map.get(id).filter(|stream| stream.send.is_some());
        stream.map(|stream| stream.priority).ok_or(StreamError::Unknown)
    }
}
