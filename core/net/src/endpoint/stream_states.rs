//! The streams of a connection as its application sees them: which tasks wait, which streams are read, and which were
//! finished and have not arrived.

use narrows_transport::streams::StreamMap;
use std::task::Waker;

/// One stream. Each half has one owner, so at most one task waits for it: the last that polled.
#[derive(Debug, Default)]
struct StreamState {
    /// Whether the application may read it.
    is_read: bool,
    /// Whether it was finished by this end and not all data is acknowledged.
    is_under_way: bool,
    /// Waits for data.
    reader: Option<Waker>,
    /// Waits for space in the send buffer, or until all data has arrived.
    writer: Option<Waker>,
}

/// Streams that the application reads, waits for or has finished.
#[derive(Debug, Default)]
pub(super) struct StreamStates {
    map: StreamMap<StreamState>,
    under_way: usize,
}

fn wait(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) => known.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}

impl StreamStates {
    /// Removes a stream that no task needs.
    fn settle(&mut self, id: u64) {
        let is_over = |s: &StreamState| !s.is_read && !s.is_under_way && s.writer.is_none();
        if self.map.get(id).is_some_and(is_over) {
            self.map.remove(id);
        }
    }

    /// The application may read the stream from now on.
    pub fn begin_reading(&mut self, id: u64) {
        if let Some(stream) = self.map.get_or_insert_default(id) {
            stream.is_read = true;
        }
    }
    /// The reader waits for data.
    pub fn wait_for_data(&mut self, id: u64, waker: &Waker) {
        if let Some(stream) = self.map.get_mut(id) {
            wait(&mut stream.reader, waker);
        }
    }
    /// Data or the end has arrived.
    pub fn on_readable(&mut self, id: u64, woken: &mut Vec<Waker>) {
        woken.extend(self.map.get_mut(id).and_then(|stream| stream.reader.take()));
    }
    /// The reader was dropped.
    pub fn end_reading(&mut self, id: u64) {
        if let Some(stream) = self.map.get_mut(id) {
            stream.is_read = false;
            stream.reader = None;
            self.settle(id);
        }
    }
    /// The streams that the application may read.
    pub fn read(&self) -> impl Iterator<Item = u64> {
        self.map.ids().filter(|id| self.map.get(*id).is_some_and(|stream| stream.is_read))
    }

    /// The writer waits for space, or until all data has arrived.
    pub fn wait_to_write(&mut self, id: u64, waker: &Waker) {
        if let Some(stream) = self.map.get_or_insert_default(id) {
            wait(&mut stream.writer, waker);
        }
    }
    /// There is space, or the peer stopped the stream.
    pub fn on_writable(&mut self, id: u64, woken: &mut Vec<Waker>) {
        let Some(stream) = self.map.get_mut(id) else { return };
        if let Some(writer) = stream.writer.take() {
            woken.push(writer);
            self.settle(id);
        }
    }
    /// The writer was dropped.
    pub fn end_writing(&mut self, id: u64) {
        if let Some(stream) = self.map.get_mut(id) {
            stream.writer = None;
            self.settle(id);
        }
    }

    /// The stream was finished.
    pub fn on_finished(&mut self, id: u64) {
        if let Some(stream) = self.map.get_or_insert_default(id) {
            self.under_way += usize::from(!stream.is_under_way);
            stream.is_under_way = true;
        }
    }
    /// All data has arrived, or the stream was reset.
    pub fn on_arrived(&mut self, id: u64, woken: &mut Vec<Waker>) {
        let Some(stream) = self.map.get_mut(id) else { return };
        woken.extend(stream.writer.take());
        if std::mem::take(&mut stream.is_under_way) {
            self.under_way -= 1;
        }
        self.settle(id);
    }
    /// Whether the stream was finished and not all of it is acknowledged.
    pub fn is_under_way(&self, id: u64) -> bool {
        self.map.get(id).is_some_and(|stream| stream.is_under_way)
    }
    /// Whether all finished streams have arrived.
    pub fn have_all_arrived(&self) -> bool {
        self.under_way == 0
    }

    /// Wakes all waiting tasks: their events have occurred, or never will.
    pub fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        for stream in self.map.values_mut() {
            woken.extend(stream.reader.take());
            woken.extend(stream.writer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's connection serves requests for days: ended streams must use no memory.
    #[test]
    fn finished_streams_leave_no_state() {
        let mut streams = StreamStates::default();
        let mut woken = Vec::new();
        for id in (0..400).step_by(4) {
            streams.begin_reading(id);
            streams.wait_for_data(id, Waker::noop());
            streams.wait_to_write(id, Waker::noop());
            streams.on_readable(id, &mut woken);
            streams.on_writable(id, &mut woken);
            streams.on_finished(id);
            streams.wait_to_write(id, Waker::noop());
            assert!(streams.is_under_way(id) && !streams.have_all_arrived());
        }
        assert_eq!((woken.len(), streams.read().count()), (200, 100));
        for id in (0..400).step_by(4) {
            // In half of them the reader ends first, in half the arrival.
            if id % 8 == 0 {
                streams.end_reading(id);
                streams.on_arrived(id, &mut woken);
            } else {
                streams.on_arrived(id, &mut woken);
                streams.end_reading(id);
            }
            streams.end_writing(id);
        }
        assert_eq!(woken.len(), 300, "who waits until all has arrived is woken");
        assert!(streams.map.is_empty() && streams.have_all_arrived());
    }
}
