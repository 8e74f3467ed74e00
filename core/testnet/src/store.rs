//! Datagrams that are on their way, stored while links carry references to them.

use crate::datagram::{Datagram, Ecn};
use crate::ids::LinkId;
use crate::observe::{Fate, Observers, Place};
use narrows_base::Time;
use narrows_link::{LinkPacket, Meter};

/// A reference to a stored datagram, with the fields that a link reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) slot: u32,
    /// Bytes on the link, headers included.
    pub(crate) size: u32,
    /// Identifies the source and destination ports and addresses.
    pub(crate) flow: u64,
    pub(crate) random_key: u32,
    pub(crate) ecn: Ecn,
    pub(crate) is_damaged: bool,
}

impl LinkPacket for Carried {
    fn size(&self) -> u32 {
        self.size
    }
    fn random_key(&self) -> u64 {
        u64::from(self.random_key)
    }
    // A network cannot distinguish data from acknowledgements: listed and periodic losses count all datagrams.
    fn is_data(&self) -> bool {
        true
    }
    fn corrupt(&mut self) {
        self.is_damaged = true;
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn is_ect(&self) -> bool {
        self.ecn != Ecn::NotEct
    }
    fn is_l4s(&self) -> bool {
        matches!(self.ecn, Ecn::Ect1 | Ecn::Ce)
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn is_marked(&self) -> bool {
        self.ecn == Ecn::Ce
    }
}

/// Datagrams in slots that are reused.
#[derive(Debug, Default)]
pub(crate) struct Store {
    places: Vec<Option<Datagram>>,
    free: Vec<u32>,
}

impl Store {
    pub(crate) fn put(&mut self, datagram: Datagram) -> u32 {
        if let Some(slot) = self.free.pop() {
            if let Some(place) = self.places.get_mut(slot as usize) {
                *place = Some(datagram);
            }
            return slot;
        }
        self.places.push(Some(datagram));
        (self.places.len() - 1) as u32
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Datagram> {
        self.places.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn take(&mut self, slot: u32) -> Option<Datagram> {
        let datagram = self.places.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(datagram)
    }

    /// Number of datagrams in the network.
    pub(crate) fn held(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

/// Counts of the datagrams offered to one direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinkCounts {
    /// Datagrams that arrived at the queue.
    pub offered: u64,
    /// Dropped by the queue or the policer.
    pub dropped: u64,
    /// Larger than the link's MTU.
    pub too_large: u64,
    /// Lost behind the queue.
    pub lost: u64,
    /// Marked with CE by the queue.
    pub marked: u64,
    /// Arrived at the other end.
    pub delivered: u64,
    /// Bytes of those, headers included.
    pub delivered_bytes: u64,
    /// Time in the queue, in nanoseconds, of all transmitted datagrams together.
    pub queueing_nanos: u64,
    /// Transmitted datagrams.
    pub transmitted: u64,
}

impl LinkCounts {
    /// Mean time in the queue in seconds; 0 without a transmission.
    pub fn mean_queueing(&self) -> f64 {
        self.queueing_nanos as f64 / 1e9 / self.transmitted.max(1) as f64
    }
}

/// Counts, and remembers the slots of datagrams that leave the network.
pub(crate) struct Counting<'a> {
    pub(crate) counts: &'a mut LinkCounts,
    pub(crate) store: &'a mut Store,
    pub(crate) observers: &'a mut Observers,
    pub(crate) link: LinkId,
}

impl Counting<'_> {
    /// A datagram leaves the network.
    fn end(&mut self, at: Time, packet: &Carried, fate: Fate) {
        if let Some(datagram) = self.store.take(packet.slot) {
            self.observers.report(at, Place::Link(self.link), fate, &datagram);
        }
    }
}

impl Meter<Carried> for Counting<'_> {
    fn offered(&mut self, _now: Time, _packet: &Carried) {
        self.counts.offered += 1;
    }
    fn dropped(&mut self, now: Time, packet: &Carried) {
        self.counts.dropped += 1;
        self.end(now, packet, Fate::Dropped);
    }
    fn too_large(&mut self, now: Time, packet: &Carried) {
        self.counts.too_large += 1;
        self.end(now, packet, Fate::TooLarge);
    }
    fn marked(&mut self, now: Time, packet: &Carried) {
        self.counts.marked += 1;
        if let Some(datagram) = self.store.get_mut(packet.slot) {
            self.observers.report(now, Place::Link(self.link), Fate::Marked, datagram);
        }
    }
    fn served(&mut self, _packet: &Carried, arrived: Time, start: Time, _end: Time) {
        self.counts.transmitted += 1;
        self.counts.queueing_nanos += start.since(arrived).as_nanos();
    }
    fn lost(&mut self, at: Time, packet: &Carried) {
        self.counts.lost += 1;
        self.end(at, packet, Fate::Lost);
    }
}
