//! The real datagrams of a relay, stored while the links carry references to them.

use narrows_base::RandomKey;
use narrows_base::random::mix;
use narrows_link::LinkPacket;

/// IP and UDP header bytes of each datagram on the link.
pub const HEADERS: u32 = 28;

/// A reference to a stored datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramRef {
    /// Index of its bytes.
    pub slot: u32,
    /// Number of the relay's client.
    pub flow: u32,
    pub random_key: u32,
    /// Bytes on the link, headers included.
    pub size: u32,
    /// The two ECN bits.
    pub ecn: u8,
    pub corrupt: bool,
}

impl LinkPacket for DatagramRef {
    fn size(&self) -> u32 {
        self.size
    }
    fn random_key(&self) -> u64 {
        u64::from(self.random_key)
    }
    // The relay cannot distinguish data from acknowledgements: listed and periodic losses count all datagrams.
    fn is_data(&self) -> bool {
        true
    }
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    fn flow(&self) -> u64 {
        u64::from(self.flow)
    }
    fn is_ect(&self) -> bool {
        self.ecn != 0
    }
    fn is_l4s(&self) -> bool {
        self.ecn & 1 != 0
    }
    fn mark(&mut self) {
        self.ecn = 3;
    }
    fn is_marked(&self) -> bool {
        self.ecn == 3
    }
}

/// Random numbers for the losses of one client's datagrams in one direction. They equal those of a flow of the group
/// `main` in a simulation with this seed, so that the two lose the same packets.
#[derive(Clone, Copy, Debug)]
pub struct LossNumbers {
    key: u64,
    count: u64,
}

impl LossNumbers {
    /// Towards B, the direction of data.
    pub fn forward(seed: u64, client: u32) -> LossNumbers {
        LossNumbers { key: LossNumbers::flow(seed, client).named("data").bits(), count: 0 }
    }
    /// From B, the direction of acknowledgements.
    pub fn reverse(seed: u64, client: u32) -> LossNumbers {
        LossNumbers {
            key: LossNumbers::flow(seed, client).named("acks").bits() ^ 0xAC0_AC0,
            count: 0,
        }
    }
    fn flow(seed: u64, client: u32) -> RandomKey {
        RandomKey::from_seed(seed).named("flow").named("main").numbered(u64::from(client))
    }
    /// The number of the next datagram.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u32 {
        let draw = mix(self.key.wrapping_add(self.count)) as u32;
        self.count += 1;
        draw
    }
}

/// Stored datagrams, in slots that are reused.
#[derive(Debug, Default)]
pub(super) struct Slab {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    held: usize,
}

impl Slab {
    /// Stores a datagram, unless more than `max` bytes would be stored.
    pub fn put(&mut self, bytes: &[u8], max: usize) -> Option<u32> {
        // Empty datagrams use memory too.
        let cost = bytes.len() + 64;
        if self.held.saturating_add(cost) > max {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.places.push(Vec::new());
                u32::try_from(self.places.len() - 1).ok()?
            }
        };
        let place = self.places.get_mut(slot as usize)?;
        place.clear();
        place.extend_from_slice(bytes);
        self.held += cost;
        Some(slot)
    }

    /// Bytes of the datagram in this slot.
    pub fn get(&mut self, slot: u32) -> &mut [u8] {
        self.places.get_mut(slot as usize).map_or(&mut [], |p| p.as_mut_slice())
    }

    /// Frees the slot.
    pub fn free(&mut self, slot: u32) {
        let Some(place) = self.places.get_mut(slot as usize) else { return };
        self.held = self.held.saturating_sub(place.len() + 64);
        // A slot that grew for a rare large datagram would keep its memory forever.
        if place.capacity() > 4096 {
            *place = Vec::new();
        }
        self.free.push(slot);
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_memory_is_bounded() {
        let mut slab = Slab::default();
        let a = slab.put(&[1; 1000], 3000).unwrap();
        let b = slab.put(&[2; 1000], 3000).unwrap();
        assert_eq!(slab.put(&[3; 1000], 3000), None);
        assert_eq!((slab.get(a)[0], slab.get(b)[999]), (1, 2));
        slab.free(a);
        assert_eq!(slab.put(&[4; 10], 3000), Some(a));
        assert_eq!(slab.get(a), [4; 10]);
        slab.free(a);
        slab.free(b);
        assert_eq!(slab.held(), 0);
        assert!(slab.get(77).is_empty());
    }

    #[test]
    fn datagrams_draw_the_numbers_of_a_simulated_flows_packets() {
        // Flow 2 of `main`, as defined in transport/src/datagram.
        let key = RandomKey::from_seed(9).named("flow").named("main").numbered(2);
        let mut forward = LossNumbers::forward(9, 2);
        let mut reverse = LossNumbers::reverse(9, 2);
        for n in 0..4 {
            assert_eq!(forward.next(), mix(key.named("data").bits().wrapping_add(n)) as u32);
            let acks = key.named("acks").bits() ^ 0xAC0_AC0;
            assert_eq!(reverse.next(), mix(acks.wrapping_add(n)) as u32);
        }
    }
}
