//! One direction of a relay: the link, the datagrams on it, and what is counted.

use super::datagrams::{DatagramRef, HEADERS, Slab};
use super::stats::DirectionStats;
use narrows_base::random::mix;
use narrows_base::{RandomKey, SpecError, Time};
use narrows_link::{Link, LinkConfig, Meter};

/// Bytes of datagrams that one direction keeps at most, whatever the link's queue would hold.
pub(super) const MAX_HELD: usize = 256 << 20;

pub(super) struct Direction {
    link: Link<DatagramRef>,
    slab: Slab,
    pub stats: DirectionStats,
    /// The latest time that the link was told.
    latest: Time,
    /// The most that waited since that was asked.
    most: usize,
}

/// What the link tells: counted, and the places of what was dropped or lost are freed.
struct Tally<'a> {
    slab: &'a mut Slab,
    stats: &'a mut DirectionStats,
    most: &'a mut usize,
}

impl Meter<DatagramRef> for Tally<'_> {
    fn offered(&mut self, _now: Time, packet: &DatagramRef) {
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += u64::from(packet.size);
    }
    fn dropped(&mut self, _now: Time, packet: &DatagramRef) {
        self.stats.dropped += 1;
        self.slab.free(packet.slot);
    }
    fn queued(&mut self, _now: Time, waiting: usize) {
        *self.most = (*self.most).max(waiting);
    }
    fn marked(&mut self, _now: Time, _packet: &DatagramRef) {
        self.stats.marked += 1;
    }
    fn served(&mut self, packet: &DatagramRef, arrived: Time, start: Time, end: Time) {
        self.stats.served(packet.size, arrived, start, end);
    }
    fn lost(&mut self, _at: Time, packet: &DatagramRef) {
        self.stats.lost += 1;
        self.slab.free(packet.slot);
    }
}

/// A datagram at the far end.
pub(super) struct Out<'a> {
    pub client: u32,
    pub bytes: &'a [u8],
    pub ecn: u8,
    /// When it should have left.
    pub due: Time,
}

impl Direction {
    /// `name` is the link's in a simulation with the same seed.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Direction, SpecError> {
        let mut link = Link::new(config, RandomKey::from_seed(seed).named("link").named(name))?;
        link.count_waiting();
        let (slab, stats) = (Slab::default(), DirectionStats::default());
        Ok(Direction { link, slab, stats, latest: Time::ZERO, most: 0 })
    }

    /// The latest time that the link was told.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// A datagram came to the link at `at`, of which the link hears in order only.
    pub fn accept(&mut self, at: Time, client: u32, random_key: u32, bytes: &[u8], ecn: u8) {
        let Some(slot) = self.slab.put(bytes, MAX_HELD) else {
            self.stats.overflowed += 1;
            return;
        };
        self.latest = self.latest.max(at);
        // A datagram's length fits: UDP's does.
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX - HEADERS) + HEADERS;
        let datagram = DatagramRef { slot, client, random_key, size, ecn: ecn & 3, corrupt: false };
        let mut tally =
            Tally { slab: &mut self.slab, stats: &mut self.stats, most: &mut self.most };
        self.link.accept(self.latest, datagram, &mut tally);
    }

    /// When something leaves the link.
    pub fn next_timeout(&self) -> Time {
        self.link.next_timeout()
    }

    /// Datagrams that wait at `now`, and the most since this was asked.
    pub fn waiting(&mut self, now: Time) -> (usize, usize) {
        let waiting = self.link.waiting(now);
        (waiting, std::mem::replace(&mut self.most, waiting).max(waiting))
    }

    /// Hands over what is due by `until`. The link is taken from one due time to the next, so that
    /// what it serves begins when it can and not when somebody woke up.
    pub fn deliver(&mut self, until: Time, mut out: impl FnMut(Out<'_>)) {
        let mut last: Option<u32> = None;
        loop {
            let due = self.link.next_timeout();
            if due > until {
                break;
            }
            self.latest = self.latest.max(due);
            let mut tally =
                Tally { slab: &mut self.slab, stats: &mut self.stats, most: &mut self.most };
            let Some(datagram) = self.link.poll(due, &mut tally) else { continue };
            // A duplicate shares its datagram's place and due time: it follows at once.
            let again = last == Some(datagram.slot);
            if let Some(slot) = last.filter(|_| !again) {
                self.slab.free(slot);
            }
            last = Some(datagram.slot);
            let bytes = self.slab.get(datagram.slot);
            if datagram.corrupt && !again {
                damage(bytes, datagram.random_key);
            }
            self.stats.delivered_packets += 1;
            self.stats.delivered_bytes += u64::from(datagram.size);
            out(Out { client: datagram.client, bytes, ecn: datagram.ecn, due });
        }
        if let Some(slot) = last {
            self.slab.free(slot);
        }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.slab.held()
    }
}

/// Turns one bit round, which one is the packet's random draws.
fn damage(bytes: &mut [u8], random_key: u32) {
    let draw = mix(u64::from(random_key) ^ 0xBAD);
    let place = draw % (bytes.len() as u64).max(1);
    if let Some(byte) = bytes.get_mut(usize::try_from(place).unwrap_or(0)) {
        *byte ^= 1 << (draw >> 61);
    }
}

#[cfg(test)]
#[path = "direction_tests.rs"]
mod tests;
