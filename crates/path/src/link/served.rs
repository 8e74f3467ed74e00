//! Links that serve their packets one by one: those with a trace, changes or a managed queue.

use super::Link;
use crate::queue::{Discipline, Fate};
use crate::trace::{Cursor, Trace};
use crate::{Meter, Parcel};
use narrows_base::Time;
use std::sync::Arc;

/// A link that serves its packets one by one.
pub(super) struct Served<P> {
    pub(super) queue: Box<dyn Discipline<P>>,
    pub(super) trace: Option<(Arc<Trace>, Cursor)>,
    /// The packet in transmission: when it came, started, ends.
    pub(super) current: Option<(Time, Time, Time, P)>,
    /// Whether the queue keeps an average.
    pub(super) averages: bool,
}

/// Passes on to a meter what a queue does to packets.
struct Tell<'a, M> {
    now: Time,
    meter: &'a mut M,
}

impl<P, M: Meter<P>> Fate<P> for Tell<'_, M> {
    fn dropped(&mut self, packet: &P) {
        self.meter.dropped(self.now, packet);
    }
    fn marked(&mut self, packet: &P) {
        self.meter.marked(self.now, packet);
    }
}

impl<P: Parcel + Send + 'static> Link<P> {
    pub(super) fn serve_arrival<M: Meter<P>>(&mut self, now: Time, packet: P, meter: &mut M) {
        // Services that ended by now make room first: departures come before arrivals.
        self.finish_service(now, meter);
        let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
        let idle = served.current.is_none();
        // An idle transmitter takes it at once, even where the waiting room is zero.
        let (waits, sent) = if idle {
            (false, served.queue.pass(now, packet, &mut Tell { now, meter }))
        } else {
            (served.queue.enqueue(now, packet, false, &mut Tell { now, meter }), None)
        };
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
            None => start + self.pacer.next(packet.size()),
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
            let next = served.queue.dequeue(end, &mut Tell { now: end, meter });
            meter.waiting(end, served.queue.waiting());
            meter.served(&packet, arrived, start, end);
            self.launch(end, packet, meter);
            if let Some((came, packet)) = next {
                self.begin(came, end, packet);
            }
        }
    }
}
