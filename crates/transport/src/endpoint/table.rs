//! A slab of slots that are found by connection id or by handle in one step: both have the slot's
//! number in their low bits. The other bits of an id are random, those of a handle are a counter.

use super::{Entropy, Handle};
use narrows_base::Time;
use narrows_wire::ConnectionId;

/// Bits of a handle that are the slot's number.
const SLOT_BITS: u32 = 24;
/// Slots at most.
const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// What a slot holds beside its content.
#[derive(Debug)]
pub(super) struct Slot<T> {
    /// The id on the wire.
    pub(super) id: ConnectionId,
    /// The name for the application.
    pub(super) handle: Handle,
    /// What is set in the endpoint's alarms for it.
    pub(super) armed: Time,
    /// Whether it stands in the queue of those to be looked at.
    pub(super) is_ready: bool,
    /// Whether it stands in the queue of those that may have events.
    pub(super) is_eventful: bool,
    /// Whether it stands in the queue of those with a handshake packet to send.
    pub(super) is_urgent: bool,
    /// None: free.
    pub(super) content: Option<T>,
}

/// All slots. They are made as needed and used again.
#[derive(Debug)]
pub(super) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    most: usize,
    /// Low bits of an id that are the slot's number.
    bits: u32,
    made: u64,
}

impl<T> Table<T> {
    /// For at most so many.
    pub(super) fn new(most: usize) -> Table<T> {
        let most = most.min(MAX_SLOTS);
        let bits = most.next_power_of_two().trailing_zeros().max(1);
        Table { slots: Vec::new(), free: Vec::new(), most, bits, made: 0 }
    }

    /// How many are in use.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.len() < self.most
    }
    /// Slots ever made: what the table's memory is in proportion to.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Takes a slot, with a new id and handle, for what `make` makes. None if there is no room or
    /// nothing was made.
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
        // Late packets of the slot's last connection are not this one's.
        if before == Some(id) {
            id = ConnectionId(id.0 ^ (1 << 31));
        }
        self.made += 1;
        let handle = Handle(self.made << SLOT_BITS | u64::from(index));
        let slot = Slot {
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
                // Queues may still name the slot: once is enough.
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
    pub(super) fn get(&mut self, index: u32) -> Option<&mut Slot<T>> {
        self.slots.get_mut(index as usize)
    }
    /// The slot that a packet is for.
    #[inline]
    pub(super) fn by_id(&self, id: ConnectionId) -> Option<u32> {
        let index = id.0 & ((1 << self.bits) - 1);
        let slot = self.slots.get(index as usize)?;
        (slot.id == id && slot.content.is_some()).then_some(index)
    }
    /// The slot that the application means.
    pub(super) fn by_handle(&self, handle: Handle) -> Option<u32> {
        let index = (handle.0 & (MAX_SLOTS as u64 - 1)) as u32;
        let slot = self.slots.get(index as usize)?;
        (slot.handle == handle && slot.content.is_some()).then_some(index)
    }
}
