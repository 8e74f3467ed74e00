//! The sending end without a socket. It keeps a program's datagrams as long as they can be in time, and chooses the
//! next packet to leave. Requested repeats go first, since they are due first.

use crate::frames::{Format, FrameCounter};
use crate::packet::{DataPart, HEAD, MAX_PARTS, MediaMessage, NackRange, extended, read};
use crate::repair::{self, Protector};
use crate::waiting::{Cause, DropsByCause, WaitingTimes};
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Maximum number of parts that are kept; below, of their bytes.
const MAX_KEPT: usize = 1 << 15;
const MAX_BYTES: usize = 32 << 20;
/// Bytes of repeats per byte sent in the long run; below, the maximum burst. This bounds the cost of a receiver that
/// requests all packets.
const REPEATS: f64 = 0.5;
const REPEATS_AT_ONCE: f64 = 512.0 * 1024.0;
const REPEATS_AT_FIRST: f64 = 64.0 * 1024.0;
/// Round trips until a lost repeat is requested again. If less time is left, this repeat is the last.
const ANOTHER_ATTEMPT: f64 = 1.25;
/// The last repeat is sent twice, with this pause between, since losses come in bursts.
const LAST_APART: Duration = Duration::from_millis(6);
/// Extra wait for packets that waited because the other end was silent; limited to the latency.
const GRACE: Duration = Duration::from_millis(500);

/// The connection's measurements of the path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathMeasurements {
    /// Smoothed round-trip time; zero if it is not known.
    pub srtt: Duration,
    /// Minimum round-trip time.
    pub min_rtt: Duration,
    /// Recent loss rate, as a share of packets.
    pub loss: f64,
}

/// Counters since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// Datagrams that came from the program.
    pub datagrams: u64,
    /// Bytes of these datagrams.
    pub bytes: u64,
    /// Parts sent, without repeats.
    pub parts: u64,
    /// Repeats sent.
    pub repeats: u64,
    /// Repair packets sent.
    pub repairs: u64,
    /// Parts that were dropped before they left because they waited too long.
    pub dropped: DropsByCause,
    /// Datagrams that were empty or too long.
    pub refused: u64,
}

impl SenderCounters {
    /// Sum of two sets of counters.
    pub fn and(self, other: &SenderCounters) -> SenderCounters {
        SenderCounters {
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

/// A message that leaves now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// Encoded bytes, without a layer mark.
    pub message: Vec<u8>,
    /// Time after which the connection should drop the message; never zero.
    pub expiry: Duration,
}

#[derive(Debug)]
struct SentPart {
    number: u64,
    part: u8,
    last_part: u8,
    stamp: Time,
    frame: u32,
    begins_frame: bool,
    /// Empty after the part is dropped.
    payload: Vec<u8>,
    has_left: bool,
    /// The attempt of the request that caused the last repeat.
    attempt: u8,
    /// Whether a repeat of it is queued.
    is_queued: bool,
    /// Whether its last repeat has been scheduled a second time.
    is_doubled: bool,
    /// The accumulated waiting times at its arrival.
    before: WaitingTimes,
}

/// The sending end of one layer.
#[derive(Debug)]
pub struct MediaLayerSender {
    latency: Duration,
    frames: FrameCounter,
    /// Ordered by number, without gaps.
    kept: VecDeque<SentPart>,
    bytes: usize,
    next_number: u64,
    /// The lowest number that has not left.
    unsent: u64,
    repeats: VecDeque<u64>,
    /// Times of the second copies of last repeats.
    again: VecDeque<(Time, u64)>,
    credit: f64,
    protector: Protector,
    /// Repair packets that wait to leave, with the times at which they were computed.
    repairs: VecDeque<(Time, Vec<u8>)>,
    /// Current maximum message size in bytes.
    max_message: usize,
    waits: WaitingTimes,
    sent: SenderCounters,
}

impl MediaLayerSender {
    /// A sender for datagrams that should arrive within this latency, beyond the path's shortest delay.
    pub fn new(latency: Duration) -> MediaLayerSender {
        MediaLayerSender {
            latency,
            frames: FrameCounter::default(),
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
            waits: WaitingTimes::default(),
            sent: SenderCounters::default(),
        }
    }

    /// Counters since the beginning.
    pub fn sent(&self) -> SenderCounters {
        self.sent
    }
    /// Format of the program's datagrams; `None` before the first one.
    pub fn format(&self) -> Option<Format> {
        self.frames.format()
    }
    /// Whether any packet waits to leave.
    pub fn is_waiting(&self) -> bool {
        self.unsent < self.next_number
            || !self.repeats.is_empty()
            || !self.again.is_empty()
            || !self.repairs.is_empty()
    }
    /// Bytes of the datagrams that wait to leave for the first time.
    pub fn bytes_waiting(&self) -> usize {
        let unsent = self.kept.iter().rev().take_while(|kept| kept.number >= self.unsent);
        unsent.map(|kept| kept.payload.len()).sum()
    }
    /// Time at which the open block of parts must be closed; `Time::NEVER` if no block is open.
    pub fn block_ends(&self) -> Time {
        self.protector.closes()
    }
    /// Closes the block if its time has come.
    pub fn end_block(&mut self, now: Time, path: PathMeasurements) {
        if self.protector.closes() <= now {
            let repairs = self.protector.close(path.loss);
            self.queue_repairs(now, repairs);
        }
    }
    fn queue_repairs(&mut self, now: Time, repairs: Vec<Vec<u8>>) {
        self.repairs.extend(repairs.into_iter().map(|repair| (now, repair)));
    }
    /// Adds to the time that waiting parts have waited for this cause.
    pub fn on_waited(&mut self, cause: Cause, lasted: Duration) {
        self.waits.add(cause, lasted);
    }
    /// Time that the oldest unsent part has waited.
    pub fn oldest_wait(&self, now: Time) -> Duration {
        self.at(self.unsent).map_or(Duration::ZERO, |kept| now.since(kept.stamp))
    }
    /// Longest wait before a part is dropped. It leaves time for one repeat, but for no more than half of the latency.
    pub fn longest_wait(&self, path: PathMeasurements) -> Duration {
        let repeat = path.srtt.mul_f64(1.25).min(self.latency.mul_f64(0.5));
        Duration::from_nanos(self.latency.as_nanos().saturating_sub(repeat.as_nanos()))
    }

    fn at(&self, number: u64) -> Option<&SentPart> {
        let first = self.kept.front()?.number;
        self.kept.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }
    fn at_mut(&mut self, number: u64) -> Option<&mut SentPart> {
        let first = self.kept.front()?.number;
        self.kept.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// Handles a datagram of the program; `max_message` is the current maximum message size.
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
            self.kept.push_back(SentPart {
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

    /// Removes the parts that are beyond their deadline.
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

    /// Removes all unsent parts, as if they had never arrived.
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

    /// Handles a message of the receiver; messages other than requests are ignored.
    pub fn on_message(&mut self, message: &[u8]) {
        if let Some(MediaMessage::Ask(runs)) = read(message) {
            runs.iter().for_each(|run| self.on_asked(run));
        }
    }

    fn on_asked(&mut self, asked: &NackRange) {
        let first = extended(asked.first, self.next_number);
        for number in first..=first.saturating_add(asked.more.into()) {
            let Some(kept) = self.at_mut(number) else { continue };
            if kept.has_left && asked.attempt > kept.attempt {
                kept.attempt = asked.attempt;
                self.queue_repeat(number);
            }
        }
    }

    /// The next message to leave, if any.
    pub fn next(&mut self, now: Time, path: PathMeasurements) -> Option<Leaving> {
        self.forget(now);
        let queueing =
            Duration::from_nanos(path.srtt.as_nanos().saturating_sub(path.min_rtt.as_nanos()));
        while let Some((_, number)) = self.again.front().copied().filter(|(at, _)| *at <= now) {
            self.again.pop_front();
            self.queue_repeat(number);
        }
        while let Some(number) = self.repeats.pop_front() {
            let latency = self.latency;
            let credit = self.credit;
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
        let longest = self.longest_wait(path);
        let most_grace = GRACE.min(self.latency);
        let stood_still = self.waits.stood_still();
        while self.unsent < self.next_number {
            let waits = self.waits;
            let kept = self.at_mut(self.unsent)?;
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
            let number = kept.number;
            let stamp = kept.stamp;
            self.protect(now, number, &leaving.message, stamp, path);
            self.unsent += 1;
            self.sent.parts += 1;
            self.credit = (self.credit + REPEATS * bytes as f64).min(REPEATS_AT_ONCE);
            return Some(leaving);
        }
        None
    }

    /// Adds a part to a block of repair packets, if a repeat would be too late.
    fn protect(
        &mut self,
        now: Time,
        number: u64,
        message: &[u8],
        stamp: Time,
        path: PathMeasurements,
    ) {
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

/// The remaining time; at least 1 ns, since zero would mean no limit.
fn left(of: Duration, gone: Duration) -> Duration {
    Duration::from_nanos(of.as_nanos().saturating_sub(gone.as_nanos()).max(1))
}

impl SentPart {
    fn leaving(&self, expiry: Duration) -> Leaving {
        let data = DataPart {
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
