//! The streams of a connection as its application sees them: who waits for which, which are read, and which were finished
//! and have not arrived.

use narrows_transport::streams::StreamMap;
use std::task::Waker;

/// One stream. Each half has one owner, so one task at most waits for it: the last that asked.
#[derive(Debug, Default)]
struct StreamState {
    /// Somebody can read it.
    is_read: bool,
    /// Finished by this end and not known to have arrived.
    is_under_way: bool,
    /// Waits for data.
    reader: Option<Waker>,
    /// Waits for room, or until all has arrived.
    writer: Option<Waker>,
}

/// Those of a connection that somebody reads, waits for or has finished.
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
    /// Forgets a stream of which nothing is to be known.
    fn settle(&mut self, id: u64) {
        let is_over = |s: &StreamState| !s.is_read && !s.is_under_way && s.writer.is_none();
        if self.map.get(id).is_some_and(is_over) {
            self.map.remove(id);
        }
    }

    /// Somebody can read it from now on.
    pub fn begin_reading(&mut self, id: u64) {
        if let Some(stream) = self.map.get_or_insert_default(id) {
            stream.is_read = true;
        }
    }
    /// Its reader waits for data.
    pub fn wait_for_data(&mut self, id: u64, waker: &Waker) {
        if let Some(stream) = self.map.get_mut(id) {
            wait(&mut stream.reader, waker);
        }
    }
    /// There is something to read.
    pub fn on_readable(&mut self, id: u64, woken: &mut Vec<Waker>) {
        woken.extend(self.map.get_mut(id).and_then(|stream| stream.reader.take()));
    }
    /// Nobody reads it any more.
    pub fn end_reading(&mut self, id: u64) {
        if let Some(stream) = self.map.get_mut(id) {
            (stream.is_read, stream.reader) = (false, None);
            self.settle(id);
        }
    }
    /// The streams that somebody can read.
    pub fn read(&self) -> impl Iterator<Item = u64> {
        self.map.ids().filter(|id| self.map.get(*id).is_some_and(|stream| stream.is_read))
    }

    /// Its writer waits for room, or until all has arrived.
    pub fn wait_to_write(&mut self, id: u64, waker: &Waker) {
        if let Some(stream) = self.map.get_or_insert_default(id) {
            wait(&mut stream.writer, waker);
        }
    }
    /// There is room, or the peer wants no more.
    pub fn on_writable(&mut self, id: u64, woken: &mut Vec<Waker>) {
        let Some(stream) = self.map.get_mut(id) else { return };
        if let Some(writer) = stream.writer.take() {
            woken.push(writer);
            self.settle(id);
        }
    }
    /// Nobody writes on it any more.
    pub fn end_writing(&mut self, id: u64) {
        if let Some(stream) = self.map.get_mut(id) {
            stream.writer = None;
            self.settle(id);
        }
    }

    /// Its end was written.
    pub fn on_finished(&mut self, id: u64) {
        if let Some(stream) = self.map.get_or_insert_default(id) {
            self.under_way += usize::from(!stream.is_under_way);
            stream.is_under_way = true;
        }
    }
    /// All of it has arrived, or it was reset: nothing more is awaited.
    pub fn on_arrived(&mut self, id: u64, woken: &mut Vec<Waker>) {
        let Some(stream) = self.map.get_mut(id) else { return };
        woken.extend(stream.writer.take());
        if std::mem::take(&mut stream.is_under_way) {
            self.under_way -= 1;
        }
        self.settle(id);
    }
    /// Whether its end was written and is not known to have arrived.
    pub fn is_under_way(&self, id: u64) -> bool {
        self.map.get(id).is_some_and(|stream| stream.is_under_way)
    }
    /// Whether all finished streams have arrived.
    pub fn have_all_arrived(&self) -> bool {
        self.under_way == 0
    }

    /// Whatever is waited for has come, or never will.
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

    /// A server's connection serves requests for days: of a stream that is over nothing must stay.
    #[test]
    fn of_streams_that_are_over_nothing_stays() {
        let (mut streams, mut woken) = (StreamStates::default(), Vec::new());
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
            // Half of them are dropped by their reader first, half arrive first.
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
