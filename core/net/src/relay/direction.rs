//! One direction of an emulated link: the link, the packets on it, and its counters.

use super::datagrams::{DatagramRef, Slab};
use super::stats::DirectionStats;
use narrows_base::random::mix;
use narrows_base::{RandomKey, SpecError, Time};
use narrows_link::{Link, LinkChange, LinkConfig, Meter};

/// Most bytes that one direction stores, regardless of the link's queue limit.
pub(super) const MAX_HELD: usize = 256 << 20;
/// Most undelivered packets that are kept for the observer.
const MAX_MISSED: usize = 4096;

/// A link in virtual time, with the bytes of the packets on it.
#[derive(Debug)]
pub struct RelayDirection {
    link: Link<DatagramRef>,
    slab: Slab,
    /// Counters of this direction.
    pub stats: DirectionStats,
    /// The latest time passed to the link.
    latest: Time,
    /// Longest queue since the last query, in packets.
    max: usize,
    /// Undelivered packets, for an observer: time, flow, whether the queue dropped it.
    missed: Option<Vec<(Time, u32, bool)>>,
}

/// Counts the link's events, and frees the slots of dropped or lost packets.
struct Tally<'a> {
    slab: &'a mut Slab,
    stats: &'a mut DirectionStats,
    max: &'a mut usize,
    missed: &'a mut Option<Vec<(Time, u32, bool)>>,
}

impl Tally<'_> {
    fn miss(&mut self, at: Time, packet: &DatagramRef, dropped: bool) {
        if let Some(missed) = self.missed.as_mut().filter(|m| m.len() < MAX_MISSED) {
            missed.push((at, packet.flow, dropped));
        }
    }
}

impl Meter<DatagramRef> for Tally<'_> {
    fn offered(&mut self, _now: Time, packet: &DatagramRef) {
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += u64::from(packet.size);
    }
    fn dropped(&mut self, now: Time, packet: &DatagramRef) {
        self.stats.dropped += 1;
        self.miss(now, packet, true);
        self.slab.free(packet.slot);
    }
    fn too_large(&mut self, now: Time, packet: &DatagramRef) {
        self.stats.too_large += 1;
        self.dropped(now, packet);
    }
    fn queued(&mut self, _now: Time, waiting: usize) {
        *self.max = (*self.max).max(waiting);
    }
    fn marked(&mut self, _now: Time, _packet: &DatagramRef) {
        self.stats.marked += 1;
    }
    fn served(&mut self, packet: &DatagramRef, arrived: Time, start: Time, end: Time) {
        self.stats.served(packet.size, arrived, start, end);
    }
    fn lost(&mut self, at: Time, packet: &DatagramRef) {
        self.stats.lost += 1;
        self.miss(at, packet, false);
        self.slab.free(packet.slot);
    }
}

/// A packet that arrives at the link.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// Arrival time. An earlier time than the link's latest counts as that one.
    pub at: Time,
    /// Flow number, for queues that distinguish flows.
    pub flow: u32,
    /// Random bits for this packet's losses.
    pub random_key: u32,
    /// Bytes on the link, headers included.
    pub size: u32,
    /// The two ECN bits.
    pub ecn: u8,
    /// Payload that is delivered at the far end.
    pub bytes: &'a [u8],
}

/// A packet at the far end.
#[derive(Debug)]
pub struct Out<'a> {
    /// Flow number.
    pub flow: u32,
    /// Payload, unchanged.
    pub bytes: &'a mut [u8],
    /// The two ECN bits after the queue.
    pub ecn: u8,
    /// Exact departure time.
    pub due: Time,
    /// For a corrupted packet, the argument of [`damage`]. The second copy of a duplicate shares the bytes, which are
    /// damaged already.
    pub corrupt: Option<u32>,
}

impl RelayDirection {
    /// `name` is the link's in a simulation with the same seed.
    ///
    /// # Errors
    /// As [`LinkConfig::check`].
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<RelayDirection, SpecError> {
        let mut link = Link::new(config, RandomKey::from_seed(seed).named("link").named(name))?;
        link.count_waiting();
        let slab = Slab::default();
        let stats = DirectionStats::default();
        Ok(RelayDirection { link, slab, stats, latest: Time::ZERO, max: 0, missed: None })
    }

    /// The latest time passed to the link.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// A packet arrives at the link. Returns the link's MTU if the packet exceeds it, so that it was dropped.
    pub fn accept(&mut self, packet: Arriving<'_>) -> Option<u32> {
        let Some(slot) = self.slab.put(packet.bytes, MAX_HELD) else {
            self.stats.overflowed += 1;
            return None;
        };
        self.latest = self.latest.max(packet.at);
        let Arriving { flow, random_key, size, ecn, .. } = packet;
        let datagram = DatagramRef { slot, flow, random_key, size, ecn: ecn & 3, corrupt: false };
        let RelayDirection { link, slab, stats, max, missed, .. } = self;
        let mut tally = Tally { slab, stats, max, missed };
        link.accept(self.latest, datagram, &mut tally);
        self.link.mtu().filter(|mtu| size > *mtu)
    }

    /// Applies a scheduled change. Packets that are due before must have been delivered. The link must be configured
    /// with `changes`.
    pub fn change(&mut self, at: Time, change: &LinkChange) {
        self.latest = self.latest.max(at);
        self.link.change(self.latest, change);
    }

    /// Records undelivered packets from now on, for [`missed`](RelayDirection::missed).
    pub fn keep_missed(&mut self) {
        self.missed = Some(Vec::new());
    }

    /// Packets that the link dropped or lost since the last call: time, flow, whether the queue dropped it.
    pub fn missed(&mut self) -> impl Iterator<Item = (Time, u32, bool)> + '_ {
        self.missed.iter_mut().flat_map(|missed| missed.drain(..))
    }

    /// Time of the link's next event.
    pub fn next_timeout(&self) -> Time {
        self.link.next_timeout()
    }

    /// Packets in the queue at `now`, and the most since the last call.
    pub fn waiting(&mut self, now: Time) -> (usize, usize) {
        let waiting = self.link.waiting(now);
        (waiting, std::mem::replace(&mut self.max, waiting).max(waiting))
    }

    /// Delivers the packets that are due by `until`. The link advances from one event to the next, so that each
    /// transmission begins at its exact time, regardless of the time of the call.
    pub fn deliver(&mut self, until: Time, mut out: impl FnMut(Out<'_>)) {
        let mut last: Option<u32> = None;
        loop {
            let due = self.link.next_timeout();
            if due > until {
                break;
            }
            self.latest = self.latest.max(due);
            let RelayDirection { link, slab, stats, max, missed, .. } = &mut *self;
            let mut tally = Tally { slab, stats, max, missed };
            let Some(datagram) = link.poll(due, &mut tally) else { continue };
            // A duplicate shares its datagram's slot and due time: it follows at once.
            let again = last == Some(datagram.slot);
            if let Some(slot) = last.filter(|_| !again) {
                self.slab.free(slot);
            }
            last = Some(datagram.slot);
            let corrupt = (datagram.corrupt && !again).then_some(datagram.random_key);
            self.stats.delivered_packets += 1;
            self.stats.delivered_bytes += u64::from(datagram.size);
            let flow = datagram.flow;
            let ecn = datagram.ecn;
            out(Out { flow, bytes: self.slab.get(datagram.slot), ecn, due, corrupt });
        }
        if let Some(slot) = last {
            self.slab.free(slot);
        }
    }

    /// Number of stored datagrams.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.slab.held()
    }
}

/// Inverts one bit, which the packet's random bits select.
pub fn damage(bytes: &mut [u8], random_key: u32) {
    let draw = mix(u64::from(random_key) ^ 0xBAD);
    let place = draw % (bytes.len() as u64).max(1);
    if let Some(byte) = bytes.get_mut(usize::try_from(place).unwrap_or(0)) {
        *byte ^= 1 << (draw >> 61);
    }
}

#[cfg(test)]
#[path = "direction_tests.rs"]
mod tests;
