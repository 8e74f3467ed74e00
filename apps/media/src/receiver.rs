//! The receiving end without a socket: a jitter buffer that releases each datagram at its stamp plus the latency, and
//! requests missing packets until then.

use crate::clock::{PathClock, Stamped};
use crate::meter::{PlayoutMeter, ReleasedPart};
use crate::missing::{MAX_MISSING, MissingPackets, Was};
use crate::packet::{DataPart, MediaMessage, ask, extended, read};
use crate::repair::{self, Restorer};
use narrows_base::{Duration, Time};
use std::collections::BTreeMap;

/// Maximum number of buffered parts; below, of their bytes.
const MAX_HELD: usize = 1 << 15;
const MAX_BYTES: usize = 32 << 20;
/// A part is released at most this long after its arrival plus the latency, whatever its stamp is.
const LONGEST: Duration = Duration::from_secs(1);

/// Counters since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverCounters {
    /// Parts released.
    pub parts: u64,
    /// Parts that did not arrive in time.
    pub missed: u64,
    /// Missed parts that arrived afterwards.
    pub came_late: u64,
    /// Parts that were released after their time, because all parts before them came equally late.
    pub delayed: u64,
    /// Parts that were requested and arrived in time.
    pub repaired: u64,
    /// Parts restored from repair packets.
    pub restored: u64,
    /// Parts received more than once.
    pub duplicates: u64,
    /// Invalid messages, parts with invalid stamps, and parts that did not fit into the buffer.
    pub refused: u64,
    /// Datagrams released.
    pub datagrams: u64,
    /// Bytes released.
    pub bytes: u64,
}

impl ReceiverCounters {
    /// Sum of two sets of counters.
    pub fn and(self, other: &ReceiverCounters) -> ReceiverCounters {
        ReceiverCounters {
            parts: self.parts + other.parts,
            missed: self.missed + other.missed,
            came_late: self.came_late + other.came_late,
            delayed: self.delayed + other.delayed,
            repaired: self.repaired + other.repaired,
            restored: self.restored + other.restored,
            duplicates: self.duplicates + other.duplicates,
            refused: self.refused + other.refused,
            datagrams: self.datagrams + other.datagrams,
            bytes: self.bytes + other.bytes,
        }
    }
}

#[derive(Debug)]
struct BufferedPart {
    arrival: Time,
    took: Duration,
    stamp: Time,
    part: u8,
    last_part: u8,
    frame: u32,
    begins_frame: bool,
    payload: Vec<u8>,
}

/// The released parts of an incomplete datagram.
#[derive(Debug)]
struct Whole {
    next_part: u8,
    bytes: Vec<u8>,
}

/// The receiving end of one layer.
#[derive(Debug)]
pub struct MediaLayerReceiver {
    latency: Duration,
    /// Number of layers of the stream, which share the limits of buffered data.
    layers: usize,
    clock: PathClock,
    held: BTreeMap<u64, BufferedPart>,
    bytes: usize,
    missing: MissingPackets,
    restorer: Restorer,
    /// The highest received number plus one.
    ahead: Option<u64>,
    /// The last released number plus one.
    released: Option<u64>,
    whole: Option<Whole>,
    meter: PlayoutMeter,
    received: ReceiverCounters,
}

impl MediaLayerReceiver {
    /// A receiver that releases datagrams at the path's shortest delay plus `latency`.
    pub fn new(latency: Duration) -> MediaLayerReceiver {
        MediaLayerReceiver::one_of(1, latency)
    }
    /// A receiver of one of `layers` layers.
    pub fn one_of(layers: usize, latency: Duration) -> MediaLayerReceiver {
        MediaLayerReceiver {
            latency,
            layers: layers.max(1),
            clock: PathClock::default(),
            held: BTreeMap::new(),
            bytes: 0,
            missing: MissingPackets::default(),
            restorer: Restorer::default(),
            ahead: None,
            released: None,
            whole: None,
            meter: PlayoutMeter::default(),
            received: ReceiverCounters::default(),
        }
    }

    /// Counters since the beginning.
    pub fn received(&self) -> ReceiverCounters {
        self.received
    }
    /// Statistics of delays and frames.
    pub fn meter(&self) -> &PlayoutMeter {
        &self.meter
    }

    /// As of [`PlayoutMeter::take_longest_frame`].
    pub fn take_longest_frame(&mut self) -> Option<Duration> {
        self.meter.take_longest_frame()
    }

    /// Handles a message.
    pub fn on_message(&mut self, arrival: Time, message: &[u8]) {
        let restored = match (read(message), repair::read(message), self.ahead) {
            (Some(MediaMessage::Data(data)), ..) => {
                let number = self.number(&data);
                self.on_data(arrival, number, &data, false);
                self.restorer.on_part(number, message)
            }
            // Before the first part, a repair packet's number cannot be extended, and no part can be restored.
            (None, Some(repair), Some(ahead)) => {
                self.restorer.on_repair(extended(repair.first, ahead), &repair)
            }
            _ => {
                self.received.refused += 1;
                return;
            }
        };
        for (number, message) in restored {
            match read(&message) {
                Some(MediaMessage::Data(data)) if data.number == number as u32 => {
                    self.on_data(arrival, number, &data, true);
                }
                _ => self.received.refused += 1,
            }
        }
    }

    fn number(&self, data: &DataPart<'_>) -> u64 {
        match self.ahead {
            None => u64::from(data.number) + (1 << 32),
            Some(ahead) => extended(data.number, ahead),
        }
    }

    fn on_data(&mut self, arrival: Time, number: u64, data: &DataPart<'_>, is_restored: bool) {
        let took = match self.clock.on_packet(arrival, data.stamp) {
            Stamped::After(took) => took,
            Stamped::Strange => {
                self.received.refused += 1;
                return;
            }
            Stamped::Reset => {
                self.begin_anew();
                Duration::ZERO
            }
        };
        let ahead = self.ahead.unwrap_or(number);
        if is_restored {
            // If the part is not missing any more, it has arrived or was given up.
            if !self.missing.on_restored(number) && number < ahead {
                return;
            }
            self.received.restored += 1;
        }
        if self.released.is_some_and(|released| number < released) {
            match self.missing.on_arrival(arrival, number) {
                Was::GivenUp => self.received.came_late += 1,
                _ => self.received.duplicates += 1,
            }
            return;
        }
        if number >= ahead {
            if number - ahead > MAX_MISSING {
                // The gap is too long for requests: release the buffered parts and give up the rest.
                self.missing.clear();
                self.received.missed += 1;
            } else if number > ahead {
                self.missing.on_gap(arrival, ahead..number, data.stamp);
            }
            self.ahead = Some(number + 1);
        } else if !is_restored {
            match self.missing.on_arrival(arrival, number) {
                // Before the first release, packets may arrive in any order.
                Was::There if self.released.is_none() && !self.held.contains_key(&number) => {}
                Was::There | Was::GivenUp => {
                    self.received.duplicates += 1;
                    return;
                }
                Was::Asked => self.received.repaired += 1,
                Was::Overtaken => {}
            }
        }
        let max = MAX_HELD / self.layers;
        let most_bytes = MAX_BYTES / self.layers;
        if self.held.len() >= max || self.bytes + data.payload.len() > most_bytes {
            self.received.refused += 1;
            return;
        }
        self.bytes += data.payload.len();
        self.held.insert(
            number,
            BufferedPart {
                arrival,
                took,
                stamp: data.stamp,
                part: data.part,
                last_part: data.last_part,
                frame: data.frame,
                begins_frame: data.begins_frame,
                payload: data.payload.to_vec(),
            },
        );
    }

    /// The sender's clock has been set anew: discard the buffered parts, whose stamps are by the old clock.
    fn begin_anew(&mut self) {
        self.held.clear();
        self.missing.clear();
        self.bytes = 0;
        self.ahead = None;
        self.released = None;
        self.whole = None;
    }

    /// Pauses reception: the next number received does not count as preceded by a gap.
    pub fn pause(&mut self) {
        self.missing.clear();
        self.ahead = None;
    }

    /// Time at which the next part is due; `Time::NEVER` if no part is buffered.
    pub fn due(&self) -> Time {
        self.held.first_key_value().map_or(Time::NEVER, |(_, first)| {
            let by_stamp = self.clock.release(first.stamp, self.latency);
            by_stamp.min(first.arrival + self.latency + LONGEST)
        })
    }

    /// The next due datagram. Call it until it returns `None`.
    pub fn release(&mut self, now: Time) -> Option<Vec<u8>> {
        while self.due() <= now {
            let (number, held) = self.held.pop_first()?;
            self.bytes -= held.payload.len();
            self.clock.use_it();
            let missed = self.missing.give_up(number);
            self.received.missed += missed;
            self.received.parts += 1;
            self.received.delayed += u64::from(held.took > self.latency);
            let is_behind_gap = self.released.is_some_and(|expected| number != expected);
            self.released = Some(number + 1);
            self.meter.on_part(&ReleasedPart {
                is_behind_gap,
                frame: held.frame,
                begins_frame: held.begins_frame,
                stamp: held.stamp,
                took: held.took,
            });
            if let Some(datagram) = self.join(held, is_behind_gap) {
                self.received.datagrams += 1;
                self.received.bytes += datagram.len() as u64;
                return Some(datagram);
            }
        }
        None
    }

    /// The datagram, if this part completes it.
    fn join(&mut self, held: BufferedPart, is_behind_gap: bool) -> Option<Vec<u8>> {
        let begun = self.whole.take();
        let bytes = match begun {
            _ if held.part == 0 => held.payload,
            Some(mut whole) if !is_behind_gap && whole.next_part == held.part => {
                whole.bytes.extend(held.payload);
                whole.bytes
            }
            _ => return None,
        };
        if held.part == held.last_part {
            return Some(bytes);
        }
        self.whole = Some(Whole { next_part: held.part + 1, bytes });
        None
    }

    /// A request for missing packets, if one is due; `rtt` is zero if it is not known.
    pub fn ask(&mut self, now: Time, rtt: Duration) -> Option<Vec<u8>> {
        let clock = &self.clock;
        let latency = self.latency;
        let runs = self.missing.ask(now, rtt, |stamp| clock.release(stamp, latency));
        (!runs.is_empty()).then(|| ask(&runs))
    }

    /// Time of the next release or request.
    pub fn next_timeout(&self) -> Time {
        self.due().min(self.missing.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LATENCY: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn data(number: u32, stamp: Time, payload: &[u8]) -> Vec<u8> {
        let part = 0;
        let last_part = 0;
        let frame = number;
        let begins_frame = true;
        DataPart { number, part, last_part, stamp, frame, begins_frame, payload }.bytes()
    }

    #[test]
    fn datagram_leaves_at_stamp_plus_latency_whatever_its_delay() {
        let mut receiver = MediaLayerReceiver::new(LATENCY);
        // The path takes 30 ms; the second packet takes 50 ms more, and the third overtakes it.
        receiver.on_message(at(1030), &data(0, at(0), b"a"));
        receiver.on_message(at(1050), &data(2, at(20), b"c"));
        receiver.on_message(at(1090), &data(1, at(10), b"b"));
        let mut all = Vec::new();
        for ms in 1000..1300 {
            all.extend(std::iter::from_fn(|| receiver.release(at(ms))).map(|d| (ms, d)));
        }
        assert_eq!(all, [(1130, b"a".to_vec()), (1140, b"b".to_vec()), (1150, b"c".to_vec())]);
    }

    #[test]
    fn late_datagram_is_counted_and_dropped() {
        let mut receiver = MediaLayerReceiver::new(LATENCY);
        for number in [0, 2, 3] {
            receiver.on_message(at(30), &data(number, at(0), b"x"));
        }
        assert_eq!(std::iter::from_fn(|| receiver.release(at(130))).count(), 3);
        receiver.on_message(at(131), &data(1, at(0), b"x"));
        assert_eq!(receiver.release(at(500)), None);
        let ReceiverCounters { missed, came_late, parts, .. } = receiver.received();
        assert_eq!((missed, came_late, parts), (1, 1, 3));
    }

    #[test]
    fn parts_are_joined_and_incomplete_datagrams_dropped() {
        let mut receiver = MediaLayerReceiver::new(LATENCY);
        let part = |number, part, payload| {
            let last_part = 1;
            let frame = 1;
            let begins_frame = true;
            DataPart { number, part, last_part, stamp: at(0), frame, begins_frame, payload }.bytes()
        };
        receiver.on_message(at(30), &part(0, 0, b"ab"));
        receiver.on_message(at(30), &part(1, 1, b"c"));
        receiver.on_message(at(30), &part(2, 0, b"de"));
        receiver.on_message(at(30), &part(5, 1, b"f"));
        let all: Vec<_> = std::iter::from_fn(|| receiver.release(at(130))).collect();
        assert_eq!(all, [b"abc"]);
    }

    #[test]
    fn far_future_stamp_does_not_delay_other_datagrams() {
        let mut receiver = MediaLayerReceiver::new(LATENCY);
        receiver.on_message(at(30), &data(0, at(0), b"x"));
        receiver.on_message(at(31), &data(1, at(1 << 40), b"x"));
        // Nearer, but far beyond any path's delay.
        receiver.on_message(at(31), &data(1, at(9000), b"x"));
        receiver.on_message(at(32), &data(2, at(2), b"x"));
        let count = (0..1300).filter(|ms| receiver.release(at(*ms)).is_some()).count();
        assert_eq!((count, receiver.received().refused), (3, 1));
    }

    #[test]
    fn memory_is_bounded_whatever_the_numbers() {
        let mut receiver = MediaLayerReceiver::new(Duration::from_secs(10));
        for n in 0..200_000u32 {
            let number = n.wrapping_mul(if n % 2 == 0 { 1 } else { 0x9e37_79b9 });
            receiver.on_message(
                at(u64::from(n / 100)),
                &data(number, at(u64::from(n / 100)), &[7; 1000]),
            );
        }
        assert!(receiver.held.len() <= MAX_HELD && receiver.bytes <= MAX_BYTES);
    }

    proptest! {
        /// For arbitrary messages, each number is released at most once, and the loop ends.
        #[test]
        fn every_message_ends(all: Vec<(u32, u64, u8, u8, u16)>) {
            let mut receiver = MediaLayerReceiver::new(LATENCY);
            let mut now = at(0);
            for (number, stamp, part, last_part, pause) in &all {
                now += Duration::from_micros(u64::from(*pause) * 10);
                let stamp = Time::ZERO + Duration::from_micros(*stamp >> 16);
                let frame = *number;
                let begins_frame = true;
                let number = *number % 10_000;
                let part = *part % 4;
                let last_part = *last_part % 4;
                let message =
                    DataPart { number, part, last_part, stamp, frame, begins_frame, payload: b"x" };
                receiver.on_message(now, &message.bytes());
                receiver.ask(now, Duration::ZERO);
                while receiver.release(now).is_some() {}
            }
            while receiver.release(now + Duration::from_secs(30)).is_some() {}
            prop_assert!(receiver.held.is_empty() && receiver.bytes == 0);
            prop_assert!(receiver.received().parts <= all.len() as u64);
        }
    }
}
