//! Links that serve packets one by one: those with a trace, changes or a managed queue.

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
    pub(super) averages: bool,
    pub(super) held: QueuedPackets<P>,
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
pub(super) struct QueuedPackets<P> {
    places: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P: LinkPacket + Copy> QueuedPackets<P> {
    #[inline]
    pub(super) fn put(&mut self, packet: P) -> QueuedPacket {
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
    pub(super) fn take(&mut self, queued: &QueuedPacket) -> Option<P> {
        let packet = self.places.get_mut(queued.slot as usize)?.take()?;
        self.free.push(queued.slot);
        Some(packet)
    }
}

/// Reports the queue's marks and drops to a meter.
pub(super) struct QueueReports<'a, P, M> {
    pub(super) now: Time,
    pub(super) held: &'a mut QueuedPackets<P>,
    pub(super) meter: &'a mut M,
}

impl<P: LinkPacket + Copy, M: Meter<P>> QueueObserver for QueueReports<'_, P, M> {
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
