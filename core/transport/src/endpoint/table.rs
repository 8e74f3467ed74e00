//! A slab of slots, found by connection ID or by handle in constant time: both have the slot's
//! number in their low bits. The remaining bits of an ID are random, those of a handle are a
//! counter.

use super::{Entropy, Handle};
use narrows_base::Time;
use narrows_wire::ConnectionId;

/// Bits of a handle for the slot's number.
const SLOT_BITS: u32 = 24;
/// Limit on slots.
const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// A slot: its names, alarm, queue flags and content.
#[derive(Debug)]
pub(super) struct ConnectionSlot<T> {
    /// The ID in packets.
    pub(super) id: ConnectionId,
    /// The application's name for the connection.
    pub(super) handle: Handle,
    /// Time of its alarm, as set in the endpoint's `alarms`.
    pub(super) armed: Time,
    /// Whether it is in the queue `ready`.
    pub(super) is_ready: bool,
    /// Whether it is in the queue `eventful`.
    pub(super) is_eventful: bool,
    /// Whether it is in the queue `urgent`.
    pub(super) is_urgent: bool,
    /// Absent in a free slot.
    pub(super) content: Option<T>,
}

/// All slots. They are created on demand and reused.
#[derive(Debug)]
pub(super) struct SlotTable<T> {
    slots: Vec<ConnectionSlot<T>>,
    free: Vec<u32>,
    most: usize,
    /// Low bits of an ID for the slot's number.
    bits: u32,
    made: u64,
}

impl<T> SlotTable<T> {
    /// A table of at most `most` slots.
    pub(super) fn new(most: usize) -> SlotTable<T> {
        let most = most.min(MAX_SLOTS);
        let bits = most.next_power_of_two().trailing_zeros().max(1);
        SlotTable { slots: Vec::new(), free: Vec::new(), most, bits, made: 0 }
    }

    /// Number of slots in use.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// Whether one more slot is available.
    pub(super) fn has_room(&self) -> bool {
        self.len() < self.most
    }
    /// Slots ever created, to which the table's memory is proportional.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Fills a slot, with a new ID and handle, by calling `make`. `None` if all slots are in use or
    /// `make` returns `None`.
    pub(super) fn add(
        &mut self,
        entropy: &mut dyn Entropy,
        make: impl FnOnce(ConnectionId) -> Option<T>,
    ) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        let before = self.slots.get(index as usize).map(|slot| slot.id);
        let mut random = [0; 4];
        entropy.fill(&mut random);
        let low = (1u32 << self.bits) - 1;
        let mut id = ConnectionId(u32::from_be_bytes(random) & !low | index);
        // Late packets of the slot's last connection must not match.
        if before == Some(id) {
            id = ConnectionId(id.0 ^ (1 << 31));
        }
        self.made += 1;
        let handle = Handle(self.made << SLOT_BITS | u64::from(index));
        let slot = ConnectionSlot {
            id,
            handle,
            armed: Time::NEVER,
            is_ready: false,
            is_eventful: false,
            is_urgent: false,
            content: None,
        };
        match self.slots.get_mut(index as usize) {
            Some(old) => {
                // Queues may still contain the slot, and must not contain it twice.
                let flags = (old.is_ready, old.is_eventful, old.is_urgent);
                *old = slot;
                (old.is_ready, old.is_eventful, old.is_urgent) = flags;
            }
            None => self.slots.push(slot),
        }
        let content = make(id);
        let is_made = content.is_some();
        match self.slots.get_mut(index as usize) {
            Some(slot) if is_made => slot.content = content,
            _ => self.free.push(index),
        }
        is_made.then_some(index)
    }

    /// Empties a slot.
    pub(super) fn remove(&mut self, index: u32) -> Option<T> {
        let content = self.slots.get_mut(index as usize)?.content.take()?;
        self.free.push(index);
        Some(content)
    }

    /// All slots in use.
    pub(super) fn iter(&self) -> impl Iterator<Item = ((u32, Handle), &T)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(index, slot)| Some(((index, slot.handle), slot.content.as_ref()?)))
    }
    /// A slot in use or not.
    pub(super) fn get(&mut self, index: u32) -> Option<&mut ConnectionSlot<T>> {
        self.slots.get_mut(index as usize)
    }
    /// The slot for a packet with this ID.
    #[inline]
    pub(super) fn by_id(&self, id: ConnectionId) -> Option<u32> {
        let index = id.0 & ((1 << self.bits) - 1);
        let slot = self.slots.get(index as usize)?;
        (slot.id == id && slot.content.is_some()).then_some(index)
    }
    /// The slot for the application's handle.
    pub(super) fn by_handle(&self, handle: Handle) -> Option<u32> {
        let index = (handle.0 & (MAX_SLOTS as u64 - 1)) as u32;
        let slot = self.slots.get(index as usize)?;
        (slot.handle == handle && slot.content.is_some()).then_some(index)
    }
}
