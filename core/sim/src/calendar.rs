//! The event queue: a calendar queue.
//!
//! Events are 16 bytes and `Copy`. Buckets are linked lists in one recycled slab, so a push touches
//! only the list's head and the slab's most recent slot; the current bucket is a small sorted
//! vector. Events beyond the calendar's year wait in a heap. As long as there are `FEW` events, that
//! vector has all of them and there are no buckets: thousands of small simulations side by side then
//! touch little memory. Events are ordered by time, then kind, then number, so the bucket width, which
//! adapts to the traffic, affects only the speed.

use narrows_base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event: its time, and the entity that handles it. Ordered by time, then kind, then number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SimEvent {
    /// When it is handled.
    pub time: Time,
    key: u32,
}

/// Kinds of events, in the order in which simultaneous ones are handled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum EventKind {
    /// A scheduled change of a link.
    Change = 0,
    /// The measured span begins.
    Measure = 1,
    /// A packet arrives at the link's far end, or a transmission ends.
    Link = 2,
    /// An application may write.
    Source = 3,
    /// A sender's timer.
    Sender = 4,
    /// A receiver's timer.
    Receiver = 5,
    /// A sample for the series.
    Sample = 6,
}

/// Largest number that an event can carry.
pub const MAX_NUMBER: u32 = (1 << 28) - 1;

impl SimEvent {
    /// An event of `kind` for entity `number`.
    #[inline]
    pub fn new(time: Time, kind: EventKind, number: u32) -> SimEvent {
        debug_assert!(number <= MAX_NUMBER);
        SimEvent { time, key: (kind as u32) << 28 | number }
    }
    /// Its position in the order of events, as one number.
    #[inline]
    fn order(self) -> u128 {
        u128::from(self.time.as_nanos()) << 32 | u128::from(self.key)
    }
    /// The kind that it was made with.
    #[inline]
    pub fn kind(self) -> EventKind {
        match self.key >> 28 {
            0 => EventKind::Change,
            1 => EventKind::Measure,
            2 => EventKind::Link,
            3 => EventKind::Source,
            4 => EventKind::Sender,
            5 => EventKind::Receiver,
            _ => EventKind::Sample,
        }
    }
    /// The entity's number.
    #[inline]
    pub fn number(self) -> u32 {
        self.key & MAX_NUMBER
    }
}

const BUCKETS: u64 = 8192;
const MASK: u64 = BUCKETS - 1;
const WORDS: usize = BUCKETS as usize / 64;
const NIL: u32 = u32::MAX;
/// Positions that a late event may move in the current bucket before it goes to the heap.
const CROWD: usize = 48;
/// Most events that are kept without buckets.
const FEW: usize = 16;
/// The current bucket's number while there are no buckets: no event is after it.
const ALL: u64 = 1 << 62;
/// Pops between two reviews of the bucket width.
const REVIEW: u32 = 8192;

#[derive(Clone, Copy)]
struct CalendarNode {
    event: SimEvent,
    next: u32,
}

/// The event queue.
pub struct Calendar {
    nodes: Vec<CalendarNode>,
    free: u32,
    /// Empty as long as there are no buckets.
    heads: Box<[u32]>,
    /// A bit per non-empty bucket, and a bit per non-zero word.
    occupied: [u64; WORDS],
    summary: [u64; WORDS / 64],
    /// Events in buckets, without the current one.
    stored: usize,
    /// The current bucket, latest event first.
    current: Vec<SimEvent>,
    /// Late events of a current bucket that is crowded (a million flows that start at once).
    crowd: BinaryHeap<Reverse<SimEvent>>,
    /// Absolute number of the current bucket.
    bucket: u64,
    /// A bucket is 2^shift nanoseconds.
    shift: u32,
    far: BinaryHeap<Reverse<SimEvent>>,
    pops: u32,
    opened: u32,
    far_pushes: u32,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar {
            nodes: Vec::new(),
            free: NIL,
            heads: Box::default(),
            occupied: [0; WORDS],
            summary: [0; WORDS / 64],
            stored: 0,
            current: Vec::new(),
            crowd: BinaryHeap::new(),
            bucket: ALL,
            shift: 14,
            far: BinaryHeap::new(),
            pops: 0,
            opened: 0,
            far_pushes: 0,
        }
    }
}

impl Calendar {
    /// An empty calendar.
    pub fn new() -> Calendar {
        Calendar::default()
    }

    /// Adds an event; its time must not be before that of the last one popped.
    #[inline]
    pub fn push(&mut self, event: SimEvent) {
        let bucket = event.time.as_nanos() >> self.shift;
        // One comparison for "after the current bucket and within the year".
        if bucket.wrapping_sub(self.bucket + 1) < BUCKETS - 1 {
            self.store(bucket, event);
        } else if bucket <= self.bucket {
            self.push_current(event);
        } else {
            self.push_far(event);
        }
    }

    #[inline(never)]
    fn push_far(&mut self, event: SimEvent) {
        self.far_pushes += 1;
        self.far.push(Reverse(event));
    }

    /// Takes the earliest event if it is not after `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<SimEvent> {
        if !self.crowd.is_empty() {
            return self.pop_crowded(until);
        }
        if self.current.is_empty() {
            self.open_next();
        }
        let event = *self.current.last()?;
        if event.time > until {
            return None;
        }
        self.current.pop();
        self.pops += 1;
        Some(event)
    }

    /// Pops the earlier event of the current bucket and its heap.
    #[cold]
    fn pop_crowded(&mut self, until: Time) -> Option<SimEvent> {
        let late = self.crowd.peek()?.0;
        let event = self.current.last().map_or(late, |e| late.min(*e));
        if event.time > until {
            return None;
        }
        if event == late {
            self.crowd.pop();
        } else {
            self.current.pop();
        }
        self.pops += 1;
        Some(event)
    }

    #[inline(never)]
    fn push_current(&mut self, event: SimEvent) {
        let mut at = self.current.len();
        if at == FEW && self.heads.is_empty() {
            return self.make_buckets(event);
        }
        let min = at.saturating_sub(CROWD);
        while at > min && self.current[at - 1].order() < event.order() {
            at -= 1;
        }
        if at == min && min > 0 {
            self.crowd.push(Reverse(event));
        } else {
            self.current.insert(at, event);
        }
    }

    /// There are too many events for one vector.
    #[cold]
    fn make_buckets(&mut self, event: SimEvent) {
        self.heads = vec![NIL; BUCKETS as usize].into();
        let events = std::mem::take(&mut self.current);
        self.bucket = events.last().map_or(0, |e| e.time.as_nanos() >> self.shift);
        for e in events {
            self.push(e);
        }
        self.push(event);
    }

    #[inline]
    fn store(&mut self, bucket: u64, event: SimEvent) {
        let slot = (bucket & MASK) as usize;
        let node = CalendarNode { event, next: self.heads[slot] };
        let index = if self.free == NIL {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.heads[slot] = index;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.summary[slot / 4096] |= 1 << (slot / 64 % 64);
        self.stored += 1;
    }

    /// Makes the next non-empty bucket the current one.
    fn open_next(&mut self) {
        if self.heads.is_empty() {
            return;
        }
        if self.pops >= REVIEW {
            self.review();
        }
        let near = if self.stored > 0 { self.next_occupied() } else { u64::MAX };
        let far = self.first_far();
        let bucket = near.min(far);
        if bucket == u64::MAX {
            return;
        }
        self.bucket = bucket;
        self.opened += 1;
        if near == bucket {
            self.take_bucket((bucket & MASK) as usize);
        }
        if far - bucket < BUCKETS {
            self.take_far();
        }
        if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The bucket of the first event beyond the year.
    #[inline]
    fn first_far(&self) -> u64 {
        self.far.peek().map_or(u64::MAX, |e| e.0.time.as_nanos() >> self.shift)
    }

    /// Moves events that are now within the year into their buckets.
    #[cold]
    fn take_far(&mut self) {
        while self.first_far() - self.bucket < BUCKETS {
            let Some(Reverse(event)) = self.far.pop() else { return };
            let bucket = event.time.as_nanos() >> self.shift;
            if bucket == self.bucket {
                self.current.push(event);
            } else {
                self.store(bucket, event);
            }
        }
    }

    #[inline]
    fn take_bucket(&mut self, slot: usize) {
        let mut index = self.heads[slot];
        self.heads[slot] = NIL;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.summary[slot / 4096] &= !(1 << (slot / 64 % 64));
        }
        while index != NIL {
            let node = &mut self.nodes[index as usize];
            self.current.push(node.event);
            let next = node.next;
            node.next = self.free;
            self.free = index;
            index = next;
            self.stored -= 1;
        }
    }

    /// Absolute number of the next non-empty bucket after the current one.
    #[inline]
    fn next_occupied(&self) -> u64 {
        let start = ((self.bucket + 1) & MASK) as usize;
        let slot = self.scan(start).or_else(|| self.scan(0)).unwrap_or(start);
        let ahead = (slot as u64).wrapping_sub(start as u64) & MASK;
        self.bucket + 1 + ahead
    }

    /// The first occupied slot at or after `from`.
    #[inline]
    fn scan(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let bits = self.occupied[word] & (!0 << (from % 64));
        if bits != 0 {
            return Some(word * 64 + bits.trailing_zeros() as usize);
        }
        let next = word + 1;
        for s in next / 64..WORDS / 64 {
            let mask = if s == next / 64 { !0 << (next % 64) } else { !0 };
            let words = self.summary[s] & mask;
            if words != 0 {
                let word = s * 64 + words.trailing_zeros() as usize;
                return Some(word * 64 + self.occupied[word].trailing_zeros() as usize);
            }
        }
        None
    }

    /// Adapts the bucket width so that a bucket has two to twelve events (measured optimum) and few
    /// events lie beyond the year.
    #[cold]
    fn review(&mut self) {
        let per_bucket = f64::from(self.pops) / f64::from(self.opened.max(1));
        let beyond = f64::from(self.far_pushes) / f64::from(self.pops);
        let shift = if beyond > 0.05 && per_bucket < 24.0 {
            self.shift + 1
        } else if per_bucket > 12.0 && beyond < 0.01 {
            self.shift.saturating_sub(1).max(4)
        } else if per_bucket < 2.4 {
            self.shift + 1
        } else {
            self.shift
        };
        self.pops = 0;
        self.opened = 0;
        self.far_pushes = 0;
        let shift = shift.min(40);
        if shift != self.shift {
            self.rebuild(shift);
        }
    }

    /// Moves everything into buckets of another width. The current bucket must be empty.
    fn rebuild(&mut self, shift: u32) {
        let start = self.bucket << self.shift;
        let mut events = Vec::with_capacity(self.stored);
        for slot in 0..BUCKETS as usize {
            let mut index = self.heads[slot];
            while index != NIL {
                events.push(self.nodes[index as usize].event);
                index = self.nodes[index as usize].next;
            }
        }
        self.heads.fill(NIL);
        self.occupied.fill(0);
        self.summary.fill(0);
        self.nodes.clear();
        self.free = NIL;
        self.stored = 0;
        self.bucket = start >> shift;
        self.shift = shift;
        // The first bucket is unsorted, so it cannot become the current one; its events go to the heap.
        for event in events {
            let bucket = event.time.as_nanos() >> shift;
            if bucket > self.bucket && bucket - self.bucket < BUCKETS {
                self.store(bucket, event);
            } else {
                self.far.push(Reverse(event));
            }
        }
    }
}

impl std::fmt::Debug for Calendar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pending = self.stored + self.current.len() + self.crowd.len() + self.far.len();
        write!(f, "Calendar({pending} events, buckets of 2^{} ns)", self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::RandomKey;

    const KINDS: [EventKind; 7] = [
        EventKind::Change,
        EventKind::Measure,
        EventKind::Link,
        EventKind::Source,
        EventKind::Sender,
        EventKind::Receiver,
        EventKind::Sample,
    ];

    /// Random pushes and pops against a heap, over time scales from nanoseconds to minutes.
    #[test]
    fn events_come_in_the_written_order_whatever_their_spacing() {
        for scale in [1u64, 100, 10_000, 1_000_000, 1_000_000_000, 60_000_000_000] {
            let mut random = RandomKey::from_seed(scale).named("calendar").stream();
            let mut calendar = Calendar::new();
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for i in 0..60_000u32 {
                for _ in 0..random.bits() % 3 {
                    let mut at = now + random.bits() % scale.max(2);
                    if random.chance(0.02) {
                        at += scale * 5_000;
                    }
                    let event = SimEvent::new(Time::from_nanos(at), KINDS[i as usize % 7], i % 50);
                    calendar.push(event);
                    heap.push(Reverse(event));
                }
                let expected = heap.pop().map(|e| e.0);
                assert_eq!(calendar.pop(Time::NEVER), expected);
                if let Some(e) = expected {
                    now = e.time.as_nanos();
                }
            }
            while let Some(Reverse(e)) = heap.pop() {
                assert_eq!(calendar.pop(Time::NEVER), Some(e));
            }
            assert_eq!(calendar.pop(Time::NEVER), None);
        }
    }

    #[test]
    fn a_crowd_at_one_instant_keeps_its_order() {
        let mut c = Calendar::new();
        for i in (0..20_000).rev() {
            c.push(SimEvent::new(Time::from_nanos(7), KINDS[i as usize % 7], i));
        }
        let mut last = None;
        for _ in 0..20_000 {
            let e = c.pop(Time::NEVER);
            assert!(e > last);
            last = e;
        }
        assert_eq!(c.pop(Time::NEVER), None);
    }

    /// Up to the number that is kept without buckets, and over it, again and again from an empty calendar.
    #[test]
    fn few_events_come_in_order_with_and_without_buckets() {
        let mut random = RandomKey::from_seed(3).named("few").stream();
        for max in [1, FEW - 1, FEW, FEW + 1, 3 * FEW] {
            let mut calendar = Calendar::new();
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for i in 0..2_000u32 {
                while heap.len() < max && random.chance(0.6) {
                    let at = Time::from_nanos(now + random.bits() % 40_000_000);
                    let event = SimEvent::new(at, KINDS[i as usize % 7], i);
                    calendar.push(event);
                    heap.push(Reverse(event));
                }
                let expected = heap.pop().map(|e| e.0);
                assert_eq!(calendar.pop(Time::NEVER), expected, "at most {max}");
                now = expected.map_or(now, |e| e.time.as_nanos());
            }
            assert_eq!(calendar.heads.is_empty(), max <= FEW, "at most {max}");
        }
    }

    #[test]
    fn events_after_the_end_are_not_returned() {
        let mut c = Calendar::new();
        c.push(SimEvent::new(Time::from_nanos(50), EventKind::Link, 1));
        assert_eq!(c.pop(Time::from_nanos(49)), None);
        assert!(c.pop(Time::from_nanos(50)).is_some());
    }
}
