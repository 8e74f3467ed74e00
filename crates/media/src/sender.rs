//! The sending end without a socket: keeps what a program sends for as long as it can be of use, and decides what leaves
//! next. What the receiver asks for again goes first, since it is due first.

use crate::frames::{Format, Frames};
use crate::packet::{Asked, Data, HEAD, MAX_PARTS, Message, extended, read};
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// What is kept at most: parts and their bytes.
const MAX_KEPT: usize = 1 << 15;
const MAX_BYTES: usize = 32 << 20;
/// Repeated bytes for each byte sent, in the long run, and at once: a receiver that asks for everything costs no more.
const REPEATS: f64 = 0.5;
const REPEATS_AT_ONCE: f64 = 512.0 * 1024.0;
const REPEATS_AT_FIRST: f64 = 64.0 * 1024.0;

/// What the connection knows of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Path {
    /// Smoothed round-trip time; zero if it is not known.
    pub srtt: Duration,
    /// The shortest.
    pub min_rtt: Duration,
}

/// Counters since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Datagrams that came from the program, and their bytes.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Parts that left for the first time.
    pub parts: u64,
    /// Parts that left again.
    pub repeats: u64,
    /// Parts that waited too long, so that they were dropped before they left.
    pub dropped: u64,
    /// Datagrams that were empty or too long.
    pub refused: u64,
}

/// A message that leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// The message.
    pub message: Vec<u8>,
    /// It is of no use if it has not left after so long; never zero.
    pub expiry: Duration,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    part: u8,
    last_part: u8,
    stamp: Time,
    frame: u32,
    begins_frame: bool,
    /// Empty once it is dropped.
    payload: Vec<u8>,
    has_left: bool,
    /// The attempt for which it was last repeated.
    attempt: u8,
    /// Whether it waits to be repeated.
    is_queued: bool,
}

/// The sending end.
#[derive(Debug)]
pub struct Sender {
    latency: Duration,
    frames: Frames,
    /// In order of their numbers, without gaps.
    kept: VecDeque<Kept>,
    bytes: usize,
    next_number: u64,
    /// The first number that has not left.
    unsent: u64,
    repeats: VecDeque<u64>,
    credit: f64,
    sent: Sent,
}

impl Sender {
    /// What a program sends is to arrive within this latency, beyond what the path takes at least.
    pub fn new(latency: Duration) -> Sender {
        Sender {
            latency,
            frames: Frames::default(),
            kept: VecDeque::new(),
            bytes: 0,
            next_number: 0,
            unsent: 0,
            repeats: VecDeque::new(),
            credit: REPEATS_AT_FIRST,
            sent: Sent::default(),
        }
    }

    /// Counters.
    pub fn sent(&self) -> Sent {
        self.sent
    }
    /// What the program sends, once something has come.
    pub fn format(&self) -> Option<Format> {
        self.frames.format()
    }
    /// Whether something waits to leave.
    pub fn is_waiting(&self) -> bool {
        self.unsent < self.next_number || !self.repeats.is_empty()
    }
    /// How long the oldest has waited that has not left.
    pub fn oldest_wait(&self, now: Time) -> Duration {
        self.at(self.unsent).map_or(Duration::ZERO, |kept| now.since(kept.stamp))
    }
    /// How long something may wait to leave: what remains suffices to repeat it once, if that is at most half.
    pub fn longest_wait(&self, path: Path) -> Duration {
        let repeat = path.srtt.mul_f64(1.25).min(self.latency.mul_f64(0.5));
        Duration::from_nanos(self.latency.as_nanos().saturating_sub(repeat.as_nanos()))
    }

    fn at(&self, number: u64) -> Option<&Kept> {
        let first = self.kept.front()?.number;
        self.kept.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }
    fn at_mut(&mut self, number: u64) -> Option<&mut Kept> {
        let first = self.kept.front()?.number;
        self.kept.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// A datagram has come from the program; messages may be so long now.
    pub fn on_datagram(&mut self, now: Time, datagram: &[u8], max_message: usize) {
        self.forget(now);
        let room = max_message.saturating_sub(HEAD);
        let parts = datagram.len().div_ceil(room.max(1));
        if datagram.is_empty() || parts > MAX_PARTS || room == 0 {
            self.sent.refused += 1;
            return;
        }
        self.sent.datagrams += 1;
        self.sent.bytes += datagram.len() as u64;
        let (frame, begins_frame) = self.frames.on_datagram(datagram);
        let each = datagram.len().div_ceil(parts);
        let last_part = (datagram.len().div_ceil(each) - 1) as u8;
        for (part, payload) in datagram.chunks(each).enumerate() {
            self.kept.push_back(Kept {
                number: self.next_number,
                part: part as u8,
                last_part,
                stamp: now,
                frame,
                begins_frame,
                payload: payload.to_vec(),
                has_left: false,
                attempt: 0,
                is_queued: false,
            });
            self.next_number += 1;
            self.bytes += payload.len();
        }
        while self.kept.len() > MAX_KEPT || self.bytes > MAX_BYTES {
            self.drop_first();
        }
    }

    /// Whatever is beyond its deadline is of no use any more.
    fn forget(&mut self, now: Time) {
        while self.kept.front().is_some_and(|kept| now.since(kept.stamp) > self.latency) {
            self.drop_first();
        }
    }
    fn drop_first(&mut self) {
        let Some(kept) = self.kept.pop_front() else { return };
        self.bytes -= kept.payload.len();
        if kept.number >= self.unsent {
            self.unsent = kept.number + 1;
            self.sent.dropped += 1;
        }
    }

    /// A message of the receiver; anything else than a request is ignored.
    pub fn on_message(&mut self, message: &[u8]) {
        if let Some(Message::Ask(runs)) = read(message) {
            runs.iter().for_each(|run| self.on_asked(run));
        }
    }

    fn on_asked(&mut self, asked: &Asked) {
        let first = extended(asked.first, self.next_number);
        for number in first..=first.saturating_add(asked.more.into()) {
            let Some(kept) = self.at_mut(number) else { continue };
            if kept.has_left && asked.attempt > kept.attempt {
                kept.attempt = asked.attempt;
                if !std::mem::replace(&mut kept.is_queued, true) {
                    self.repeats.push_back(number);
                }
            }
        }
    }

    /// What leaves next, if anything waits.
    pub fn next(&mut self, now: Time, path: Path) -> Option<Leaving> {
        self.forget(now);
        let queueing =
            Duration::from_nanos(path.srtt.as_nanos().saturating_sub(path.min_rtt.as_nanos()));
        while let Some(number) = self.repeats.pop_front() {
            let (latency, credit) = (self.latency, self.credit);
            let Some(kept) = self.at_mut(number) else { continue };
            kept.is_queued = false;
            let age = now.since(kept.stamp) + queueing;
            let cost = kept.payload.len() as f64;
            if age < latency && cost <= credit {
                let leaving = kept.leaving(left(latency, now.since(kept.stamp)));
                self.credit -= cost;
                self.sent.repeats += 1;
                return Some(leaving);
            }
        }
        let longest = self.longest_wait(path);
        while self.unsent < self.next_number {
            let kept = self.at_mut(self.unsent)?;
            let age = now.since(kept.stamp);
            let bytes = kept.payload.len();
            if age > longest {
                kept.payload = Vec::new();
                self.bytes -= bytes;
                self.unsent += 1;
                self.sent.dropped += 1;
                continue;
            }
            kept.has_left = true;
            let leaving = kept.leaving(left(longest, age));
            self.unsent += 1;
            self.sent.parts += 1;
            self.credit = (self.credit + REPEATS * bytes as f64).min(REPEATS_AT_ONCE);
            return Some(leaving);
        }
        None
    }
}

/// What is left of a time; never zero, which would mean for ever.
fn left(of: Duration, gone: Duration) -> Duration {
    Duration::from_nanos(of.as_nanos().saturating_sub(gone.as_nanos()).max(1))
}

impl Kept {
    fn leaving(&self, expiry: Duration) -> Leaving {
        let data = Data {
            number: self.number as u32,
            part: self.part,
            last_part: self.last_part,
            stamp: self.stamp,
            frame: self.frame,
            begins_frame: self.begins_frame,
            payload: &self.payload,
        };
        Leaving { message: data.bytes(), expiry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ask;

    const LATENCY: Duration = Duration::from_millis(200);
    const PATH: Path = Path { srtt: Duration::from_millis(40), min_rtt: Duration::from_millis(40) };

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn asked(first: u32, attempt: u8) -> Vec<u8> {
        ask(&[Asked { first, more: 0, attempt }])
    }
    /// The numbers that leave now.
    fn leaving(sender: &mut Sender, now: Time) -> Vec<u32> {
        let all = std::iter::from_fn(|| sender.next(now, PATH));
        all.map(|leaving| match read(&leaving.message) {
            Some(Message::Data(data)) => data.number,
            other => panic!("{other:?}"),
        })
        .collect()
    }

    #[test]
    fn what_is_asked_for_goes_first_and_once_for_each_attempt() {
        let mut sender = Sender::new(LATENCY);
        (0..3).for_each(|_| sender.on_datagram(at(0), b"datagram", 100));
        assert_eq!(leaving(&mut sender, at(0)), [0, 1, 2]);
        sender.on_datagram(at(50), b"datagram", 100);
        sender.on_message(&asked(1, 1));
        sender.on_message(&asked(1, 1));
        // What has not left yet, and what never was, cannot be repeated.
        sender.on_message(&asked(3, 1));
        sender.on_message(&asked(4000, 1));
        assert_eq!(leaving(&mut sender, at(50)), [1, 3]);
        sender.on_message(&asked(1, 2));
        assert_eq!(leaving(&mut sender, at(100)), [1]);
        assert_eq!(sender.sent().repeats, 2);
    }

    #[test]
    fn nothing_is_repeated_that_would_come_too_late() {
        let mut sender = Sender::new(LATENCY);
        sender.on_datagram(at(0), b"datagram", 100);
        assert_eq!(leaving(&mut sender, at(0)), [0]);
        sender.on_message(&asked(0, 1));
        let queue = Path { srtt: Duration::from_millis(100), ..PATH };
        assert_eq!(sender.next(at(145), queue), None);
        sender.on_message(&asked(0, 2));
        assert_eq!(leaving(&mut sender, at(145)), [0]);
        sender.on_message(&asked(0, 3));
        assert!(leaving(&mut sender, at(201)).is_empty());
    }

    #[test]
    fn the_oldest_is_dropped_before_its_deadline_so_that_the_rest_can_be_repeated() {
        let mut sender = Sender::new(LATENCY);
        (0..10).for_each(|n| sender.on_datagram(at(20 * n), b"datagram", 100));
        // Of 200 ms, 50 are left for a repeat: what is older than 150 ms goes.
        assert_eq!(sender.longest_wait(PATH), Duration::from_millis(150));
        assert_eq!(leaving(&mut sender, at(200)), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(sender.sent().dropped, 3);
    }

    #[test]
    fn a_long_datagram_is_sent_in_parts_and_one_that_is_too_long_not_at_all() {
        let mut sender = Sender::new(LATENCY);
        sender.on_datagram(at(0), &[7; 200], HEAD + 90);
        sender.on_datagram(at(0), &[7; 90 * MAX_PARTS + 1], HEAD + 90);
        let parts: Vec<_> = std::iter::from_fn(|| sender.next(at(0), PATH)).collect();
        let found: Vec<_> = parts
            .iter()
            .map(|p| match read(&p.message) {
                Some(Message::Data(d)) => (d.part, d.last_part, d.payload.len()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((found, sender.sent().refused), (vec![(0, 2, 67), (1, 2, 67), (2, 2, 66)], 1));
    }

    /// A receiver that asks for everything, ever again, costs half as much again in the long run.
    #[test]
    fn repeats_are_bounded_whatever_is_asked_for() {
        let mut sender = Sender::new(Duration::from_secs(10));
        let (mut left, mut attempt) = (0, 0);
        for round in 0..200u64 {
            (0..20).for_each(|_| sender.on_datagram(at(round * 10), &[7; 1000], 1400));
            attempt = (attempt + 1) % 250;
            for first in (0..20 * round as u32).step_by(200) {
                sender.on_message(&ask(&[Asked { first, more: 199, attempt }]));
            }
            left += std::iter::from_fn(|| sender.next(at(round * 10), PATH)).count();
        }
        assert!(left <= 4000 + 2000 + 64, "{left}");
    }

    #[test]
    fn memory_is_bounded_if_nothing_leaves() {
        let mut sender = Sender::new(Duration::from_secs(1000));
        (0..100_000).for_each(|_| sender.on_datagram(at(1), &[7; 1400], 1400));
        assert!(sender.kept.len() <= MAX_KEPT && sender.bytes <= MAX_BYTES);
        assert!(sender.sent().dropped > 60_000);
    }
}
