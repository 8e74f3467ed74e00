//! Sorts events by their times. A datagram that waited in the kernel has the time of its arrival there, so it is
//! reported after datagrams that were sent in the meantime. Both ends and the sampler are separate threads.

use super::tap::RecordEvent;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time for which an event waits for earlier ones. Under load a thread may be delayed by a second, with all its events.
const HOLD: Duration = Duration::from_secs(1);
/// Most bytes of waiting events.
const MAX_BYTES: usize = 16 << 20;

struct WaitingEvent {
    arrived_at: Instant,
    bytes: usize,
    event: RecordEvent,
}

/// Events that wait for earlier ones.
#[derive(Default)]
pub struct ReorderBuffer {
    /// By nanoseconds since 1970, and by the order of arrival.
    waiting: BTreeMap<(u64, u64), WaitingEvent>,
    bytes: usize,
    count: u64,
    latest: u64,
    /// Events that were too late for their place. They have the time of the event before them.
    pub late: u64,
}

impl ReorderBuffer {
    /// Adds an event of time `at`, nanoseconds since 1970, which arrived at `now`.
    pub fn add(&mut self, at: u64, event: RecordEvent, now: Instant) {
        let bytes = event.cost();
        self.bytes += bytes;
        self.count += 1;
        self.waiting.insert((at, self.count), WaitingEvent { arrived_at: now, bytes, event });
    }

    /// The earliest event with its time, if it has waited long enough.
    pub fn due(&mut self, now: Instant) -> Option<(u64, RecordEvent)> {
        let first = self.waiting.first_key_value()?.1;
        if self.bytes <= MAX_BYTES && now.saturating_duration_since(first.arrived_at) < HOLD {
            return None;
        }
        self.next()
    }

    /// The earliest event with its time.
    pub fn next(&mut self) -> Option<(u64, RecordEvent)> {
        let ((at, _), waiting) = self.waiting.pop_first()?;
        self.bytes -= waiting.bytes;
        self.late += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
        Some((self.latest, waiting.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::RecordedIpPacket;
    use narrows_base::Time;

    fn packet(bytes: usize) -> RecordEvent {
        RecordEvent::Packet(0, RecordedIpPacket { at: Time::ZERO, bytes: vec![0; bytes] })
    }

    #[test]
    fn waiting_events_leave_in_the_order_of_their_times() {
        let mut order = ReorderBuffer::default();
        let begun = Instant::now();
        for at in [30, 10, 20] {
            order.add(at, packet(1), begun);
        }
        assert!(order.due(begun).is_none());
        let later = begun + HOLD;
        let times: Vec<u64> = std::iter::from_fn(|| order.due(later)).map(|e| e.0).collect();
        assert_eq!((times, order.late), (vec![10, 20, 30], 0));
        // Earlier than the last event that was passed on: it keeps its place, and is counted.
        order.add(25, packet(1), later);
        assert!(order.due(later).is_none());
        assert_eq!((order.next().map(|e| e.0), order.late), (Some(30), 1));
    }

    #[test]
    fn waiting_events_are_bounded() {
        let mut order = ReorderBuffer::default();
        let now = Instant::now();
        let large = MAX_BYTES / 4;
        for at in 1..=100 {
            order.add(at, packet(large), now);
            while order.due(now).is_some() {}
            assert!(order.bytes <= MAX_BYTES && order.waiting.len() <= 4);
        }
    }
}
