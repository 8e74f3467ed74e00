//! One direction of an emulated link: the link, the packets on it, and what is counted.

use super::datagrams::{DatagramRef, Slab};
use super::stats::DirectionStats;
use narrows_base::random::mix;
use narrows_base::{RandomKey, SpecError, Time};
use narrows_link::{Change, Link, LinkConfig, Meter};

/// Bytes of packets that one direction keeps at most, whatever the link's queue would hold.
pub(super) const MAX_HELD: usize = 256 << 20;
/// Packets that were not delivered and that nobody has taken yet.
const MAX_MISSED: usize = 4096;

/// A link in virtual time with the bytes of what it carries.
#[derive(Debug)]
pub struct Direction {
    link: Link<DatagramRef>,
    slab: Slab,
    /// What is counted.
    pub stats: DirectionStats,
    /// The latest time that the link was told.
    latest: Time,
    /// The most that waited since that was asked.
    most: usize,
    /// What the link did not deliver, for those who watch: when, whose, whether the queue dropped it.
    missed: Option<Vec<(Time, u32, bool)>>,
}

/// What the link tells: counted, and the places of what was dropped or lost are freed.
struct Tally<'a> {
    slab: &'a mut Slab,
    stats: &'a mut DirectionStats,
    most: &'a mut usize,
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
    fn queued(&mut self, _now: Time, waiting: usize) {
        *self.most = (*self.most).max(waiting);
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

/// A packet that comes to the link.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// When; the link is told of times in order only.
    pub at: Time,
    /// Whose it is, for queues that tell flows apart.
    pub flow: u32,
    /// Its random bits, for losses drawn per packet.
    pub random_key: u32,
    /// Bytes on the link, headers included.
    pub size: u32,
    /// The two bits of its IP header.
    pub ecn: u8,
    /// What is handed over at the far end.
    pub bytes: &'a [u8],
}

/// A packet at the far end.
#[derive(Debug)]
pub struct Out<'a> {
    /// Whose it is.
    pub flow: u32,
    /// As it came.
    pub bytes: &'a mut [u8],
    /// The two bits of its IP header, as they are now.
    pub ecn: u8,
    /// When it should have left.
    pub due: Time,
    /// Corrupted: what [`damage`] is given. The second copy of a duplicate shares the bytes, damaged already.
    pub corrupt: Option<u32>,
}

impl Direction {
    /// `name` is the link's in a simulation with the same seed.
    ///
    /// # Errors
    /// As [`LinkConfig::check`].
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Direction, SpecError> {
        let mut link = Link::new(config, RandomKey::from_seed(seed).named("link").named(name))?;
        link.count_waiting();
        let (slab, stats) = (Slab::default(), DirectionStats::default());
        Ok(Direction { link, slab, stats, latest: Time::ZERO, most: 0, missed: None })
    }

    /// The latest time that the link was told.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// A packet came to the link.
    pub fn accept(&mut self, packet: Arriving<'_>) {
        let Some(slot) = self.slab.put(packet.bytes, MAX_HELD) else {
            self.stats.overflowed += 1;
            return;
        };
        self.latest = self.latest.max(packet.at);
        let Arriving { flow, random_key, size, ecn, .. } = packet;
        let datagram = DatagramRef { slot, flow, random_key, size, ecn: ecn & 3, corrupt: false };
        let Direction { link, slab, stats, most, missed, .. } = self;
        let mut tally = Tally { slab, stats, most, missed };
        link.accept(self.latest, datagram, &mut tally);
    }

    /// Applies a scheduled change; what was due before must have been handed over. Only links configured
    /// with `changes` have one.
    pub fn change(&mut self, at: Time, change: &Change) {
        self.latest = self.latest.max(at);
        self.link.change(self.latest, change);
    }

    /// From now on keeps what is not delivered, for [`missed`](Direction::missed).
    pub fn keep_missed(&mut self) {
        self.missed = Some(Vec::new());
    }

    /// Packets that the link dropped or lost since the last call: when, whose, whether the queue dropped it.
    pub fn missed(&mut self) -> impl Iterator<Item = (Time, u32, bool)> + '_ {
        self.missed.iter_mut().flat_map(|missed| missed.drain(..))
    }

    /// When something leaves the link.
    pub fn next_timeout(&self) -> Time {
        self.link.next_timeout()
    }

    /// Packets that wait at `now`, and the most since this was asked.
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
            let Direction { link, slab, stats, most, missed, .. } = &mut *self;
            let mut tally = Tally { slab, stats, most, missed };
            let Some(datagram) = link.poll(due, &mut tally) else { continue };
            // A duplicate shares its datagram's place and due time: it follows at once.
            let again = last == Some(datagram.slot);
            if let Some(slot) = last.filter(|_| !again) {
                self.slab.free(slot);
            }
            last = Some(datagram.slot);
            let corrupt = (datagram.corrupt && !again).then_some(datagram.random_key);
            self.stats.delivered_packets += 1;
            self.stats.delivered_bytes += u64::from(datagram.size);
            let (flow, ecn) = (datagram.flow, datagram.ecn);
            out(Out { flow, bytes: self.slab.get(datagram.slot), ecn, due, corrupt });
        }
        if let Some(slot) = last {
            self.slab.free(slot);
        }
    }

    /// Datagrams that the link holds.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.slab.held()
    }
}

/// Turns one bit round, which one is the packet's random draws.
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
