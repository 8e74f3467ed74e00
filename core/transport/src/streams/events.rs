//! Events of streams for the application.

use super::{StreamEvent, Streams};

impl Streams {
    /// The next event, if any.
    pub fn event(&mut self) -> Option<StreamEvent> {
        if std::mem::take(&mut self.queues.opened) {
            return Some(StreamEvent::Opened);
        }
        let event = self.queues.events.pop_front()?;
        match event {
            StreamEvent::Readable(id) => {
                if let Some(stream) = self.map.get_mut(id) {
                    stream.readable_told = false;
                }
            }
            StreamEvent::Writable(id) => {
                if let Some(stream) = self.map.get_mut(id) {
                    stream.writable_told = false;
                }
            }
            _ => {}
        }
        if self.queues.events.is_empty() && self.queues.events.capacity() > 64 {
            self.queues.events = Default::default();
        }
        Some(event)
    }
}
