//! Links that serve packets one by one: those with a trace, changes or a managed queue.

use super::Link;
use crate::queue::{Discipline, QueueObserver, QueuedPacket};
use crate::trace::{Trace, TraceCursor};
use crate::{LinkPacket, Meter};
use narrows_base::Time;
use std::sync::Arc;

/// A link that serves its packets one by one.
pub(super) struct Served<P> {
    pub(super) queue: Box<dyn Discipline>,
    pub(super) trace: Option<(Arc<Trace>, TraceCursor)>,
    /// The packet in transmission: its arrival, start and end.
    pub(super) current: Option<(Time, Time, Time, P)>,
    /// Whether the queue keeps an average.
    averages: bool,
    held: QueuedPackets<P>,
}

impl<P: LinkPacket + Copy> Served<P> {
    pub(super) fn new(
        queue: Box<dyn Discipline>,
        trace: Option<(Arc<Trace>, TraceCursor)>,
    ) -> Served<P> {
        let held = QueuedPackets { places: Vec::new(), free: Vec::new() };
        Served { averages: queue.average().is_some(), queue, trace, current: None, held }
    }
}

/// Storage of the packets that the queue orders; slots are reused.
struct QueuedPackets<P> {
    places: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P: LinkPacket + Copy> QueuedPackets<P> {
    #[inline]
    fn put(&mut self, packet: P) -> QueuedPacket {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        let queued = QueuedPacket {
            slot,
            size: packet.size(),
            flow: packet.flow(),
            ect: packet.is_ect(),
            l4s: packet.is_l4s(),
            marked: packet.is_marked(),
        };
        if let Some(place) = self.places.get_mut(slot as usize) {
            *place = Some(packet);
        }
        queued
    }
    /// `None` if the slot was emptied before, which a discipline from another crate might do.
    #[inline]
    fn take(&mut self, queued: &QueuedPacket) -> Option<P> {
        let packet = self.places.get_mut(queued.slot as usize)?.take()?;
        self.free.push(queued.slot);
        Some(packet)
    }
}

/// Reports the queue's marks and drops to a meter.
struct Tell<'a, P, M> {
    now: Time,
    held: &'a mut QueuedPackets<P>,
    meter: &'a mut M,
}

impl<P: LinkPacket + Copy, M: Meter<P>> QueueObserver for Tell<'_, P, M> {
    fn dropped(&mut self, queued: &QueuedPacket) {
        if let Some(packet) = self.held.take(queued) {
            self.meter.dropped(self.now, &packet);
        }
    }
    fn marked(&mut self, queued: &QueuedPacket) {
        let place = self.held.places.get_mut(queued.slot as usize);
        if let Some(packet) = place.and_then(Option::as_mut) {
            packet.mark();
            self.meter.marked(self.now, packet);
        }
    }
}

impl<P: LinkPacket + Copy + Send + 'static> Link<P> {
    pub(super) fn serve_arrival<M: Meter<P>>(&mut self, now: Time, packet: P, meter: &mut M) {
        // Transmissions that ended by now free their queue space first: departures precede arrivals.
        self.finish_service(now, meter);
        let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
        let idle = served.current.is_none();
        // An idle transmitter takes the packet at once, even if the queue's limit is zero.
        let queued = served.held.put(packet);
        let queue = &mut served.queue;
        let held = &mut served.held;
        let mut observer = Tell { now, held, meter };
        let (waits, sent) = if idle {
            (false, queue.pass(now, queued, &mut observer))
        } else {
            (queue.enqueue(now, queued, false, &mut observer), None)
        };
        let sent = sent.and_then(|queued| served.held.take(&queued));
        if waits || sent.is_some() {
            meter.queued(now, served.queue.waiting());
        }
        meter.waiting(now, served.queue.waiting());
        if served.averages
            && let Some(average) = served.queue.average()
        {
            meter.averaged(now, average);
        }
        if let Some(packet) = sent {
            self.begin(now, now, packet);
        }
    }

    fn begin(&mut self, arrived: Time, start: Time, packet: P) {
        let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
        let end = match &mut served.trace {
            Some((trace, cursor)) => cursor.serve(trace, start, packet.size()),
            None => start + self.serializer.next(packet.size()),
        };
        served.current = Some((arrived, start, end, packet));
    }

    pub(super) fn finish_service<M: Meter<P>>(&mut self, now: Time, meter: &mut M) {
        loop {
            let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
            let Some((arrived, start, end, packet)) = served.current else { return };
            if end > now {
                return;
            }
            served.current = None;
            let held = &mut served.held;
            let next = served.queue.dequeue(end, &mut Tell { now: end, held, meter });
            let next = next
                .and_then(|(arrived_at, queued)| Some((arrived_at, served.held.take(&queued)?)));
            meter.waiting(end, served.queue.waiting());
            meter.served(&packet, arrived, start, end);
            self.launch(end, packet, meter);
            if let Some((arrived_at, packet)) = next {
                self.begin(arrived_at, end, packet);
            }
        }
    }
}
