//! The sending end without a socket: keeps what a program sends for as long as it can be of use, and decides what leaves
//! next. What the receiver asks for again goes first, since it is due first.

use crate::frames::{Format, Frames};
use crate::packet::{Asked, Data, HEAD, MAX_PARTS, Message, extended, read};
use crate::repair::{self, Protector};
use crate::waiting::{Cause, Dropped, Waits};
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// What is kept at most: parts and their bytes.
const MAX_KEPT: usize = 1 << 15;
const MAX_BYTES: usize = 32 << 20;
/// Repeated bytes for each byte sent, in the long run, and at once: a receiver that asks for everything costs no more.
const REPEATS: f64 = 0.5;
const REPEATS_AT_ONCE: f64 = 512.0 * 1024.0;
const REPEATS_AT_FIRST: f64 = 64.0 * 1024.0;
/// A repeat that is lost is asked for again after about so many round trips: one that leaves less time is the last.
const ANOTHER_ATTEMPT: f64 = 1.25;
/// The last repeat leaves twice, so far apart, since losses come in rows.
const LAST_APART: Duration = Duration::from_millis(6);
/// What waited because nothing was heard of the other end still leaves so long after its time, and no longer than the latency.
const GRACE: Duration = Duration::from_millis(500);

/// What the connection knows of the path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// Smoothed round-trip time; zero if it is not known.
    pub srtt: Duration,
    /// The shortest.
    pub min_rtt: Duration,
    /// The share of packets that are lost, lately.
    pub loss: f64,
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
    /// Packets of repair.
    pub repairs: u64,
    /// Parts that waited too long, so that they were dropped before they left.
    pub dropped: Dropped,
    /// Datagrams that were empty or too long.
    pub refused: u64,
}

impl Sent {
    /// Both.
    pub fn and(self, other: &Sent) -> Sent {
        Sent {
            datagrams: self.datagrams + other.datagrams,
            bytes: self.bytes + other.bytes,
            parts: self.parts + other.parts,
            repeats: self.repeats + other.repeats,
            repairs: self.repairs + other.repairs,
            dropped: self.dropped.and(&other.dropped),
            refused: self.refused + other.refused,
        }
    }
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
    /// Whether its last repeat has been said again.
    is_doubled: bool,
    /// How long parts had waited before it came.
    before: Waits,
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
    /// What is repeated once more then.
    again: VecDeque<(Time, u64)>,
    credit: f64,
    protector: Protector,
    /// Packets of repair that wait to leave, and when they became complete.
    repairs: VecDeque<(Time, Vec<u8>)>,
    /// Messages may be so long.
    max_message: usize,
    waits: Waits,
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
            again: VecDeque::new(),
            credit: REPEATS_AT_FIRST,
            protector: Protector::default(),
            repairs: VecDeque::new(),
            max_message: 0,
            waits: Waits::default(),
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
        self.unsent < self.next_number
            || !self.repeats.is_empty()
            || !self.again.is_empty()
            || !self.repairs.is_empty()
    }
    /// When a block of parts that are repaired together is to end, if one has begun.
    pub fn block_ends(&self) -> Time {
        self.protector.closes()
    }
    /// That time has come, perhaps.
    pub fn end_block(&mut self, now: Time, path: Path) {
        if self.protector.closes() <= now {
            let repairs = self.protector.close(path.loss);
            self.queue_repairs(now, repairs);
        }
    }
    fn queue_repairs(&mut self, now: Time, repairs: Vec<Vec<u8>>) {
        self.repairs.extend(repairs.into_iter().map(|repair| (now, repair)));
    }
    /// What waits has waited so long for this cause.
    pub fn on_waited(&mut self, cause: Cause, lasted: Duration) {
        self.waits.add(cause, lasted);
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
        self.max_message = max_message;
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
                is_doubled: false,
                before: self.waits,
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
        let longest = self.latency + GRACE.min(self.latency);
        while self.kept.front().is_some_and(|kept| now.since(kept.stamp) > longest) {
            self.drop_first();
        }
    }
    fn drop_first(&mut self) {
        let Some(kept) = self.kept.pop_front() else { return };
        self.bytes -= kept.payload.len();
        if kept.number >= self.unsent {
            self.unsent = kept.number + 1;
            self.sent.dropped.add(self.waits.main_cause(&kept.before));
        }
    }

    /// What has not left is not to be sent; as if it had never come.
    pub fn discard_waiting(&mut self) {
        while let Some(kept) = self.kept.pop_back() {
            if kept.number < self.unsent {
                self.kept.push_back(kept);
                return;
            }
            self.bytes -= kept.payload.len();
            self.next_number = kept.number;
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
                self.queue_repeat(number);
            }
        }
    }

    /// What leaves next, if anything waits.
    pub fn next(&mut self, now: Time, path: Path) -> Option<Leaving> {
        self.forget(now);
        let queueing =
            Duration::from_nanos(path.srtt.as_nanos().saturating_sub(path.min_rtt.as_nanos()));
        while let Some((_, number)) = self.again.front().copied().filter(|(at, _)| *at <= now) {
            self.again.pop_front();
            self.queue_repeat(number);
        }
        while let Some(number) = self.repeats.pop_front() {
            let (latency, credit) = (self.latency, self.credit);
            let Some(kept) = self.at_mut(number) else { continue };
            kept.is_queued = false;
            let age = now.since(kept.stamp) + queueing;
            let cost = kept.payload.len() as f64;
            if age < latency && cost <= credit {
                let is_last = age + path.srtt.mul_f64(ANOTHER_ATTEMPT) > latency;
                let is_again = is_last && !std::mem::replace(&mut kept.is_doubled, is_last);
                let leaving = kept.leaving(left(latency, now.since(kept.stamp)));
                if is_again {
                    self.again.push_back((now + LAST_APART, number));
                }
                self.credit -= cost;
                self.sent.repeats += 1;
                return Some(leaving);
            }
        }
        while let Some((complete, message)) = self.repairs.pop_front() {
            let age = now.since(complete);
            if age < self.latency {
                self.sent.repairs += 1;
                return Some(Leaving { message, expiry: left(self.latency, age) });
            }
        }
        let (longest, most_grace) = (self.longest_wait(path), GRACE.min(self.latency));
        let stood_still = self.waits.stood_still();
        while self.unsent < self.next_number {
            let (waits, kept) = (self.waits, self.at_mut(self.unsent)?);
            let age = now.since(kept.stamp);
            let bytes = kept.payload.len();
            let before = kept.before.stood_still();
            let grace = stood_still.as_nanos().saturating_sub(before.as_nanos());
            let longest = longest + Duration::from_nanos(grace).min(most_grace);
            if age > longest {
                let cause = waits.main_cause(&kept.before);
                kept.payload = Vec::new();
                self.bytes -= bytes;
                self.unsent += 1;
                self.sent.dropped.add(cause);
                continue;
            }
            kept.has_left = true;
            let leaving = kept.leaving(left(longest, age));
            let (number, stamp) = (kept.number, kept.stamp);
            self.protect(now, number, &leaving.message, stamp, path);
            self.unsent += 1;
            self.sent.parts += 1;
            self.credit = (self.credit + REPEATS * bytes as f64).min(REPEATS_AT_ONCE);
            return Some(leaving);
        }
        None
    }

    /// Where a repeat would come too late, packets of repair follow.
    fn protect(&mut self, now: Time, number: u64, message: &[u8], stamp: Time, path: Path) {
        let fits = message.len() + repair::OVERHEAD <= self.max_message;
        if !fits || !repair::pays(self.latency, path.srtt, path.loss) {
            return;
        }
        let repairs = self.protector.on_part(number, message, stamp, self.latency, path.loss);
        self.queue_repairs(now, repairs);
    }

    fn queue_repeat(&mut self, number: u64) {
        let Some(kept) = self.at_mut(number) else { return };
        if !std::mem::replace(&mut kept.is_queued, true) {
            self.repeats.push_back(number);
        }
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
#[path = "sender_tests.rs"]
mod tests;
