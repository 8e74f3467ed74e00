//! The 24 bytes of a simulated packet that a datagram endpoint fills: reports and data.
//!
//! A report: the feedback's words, then the ACK vector as run lengths of 16 bits from the highest
//! number downwards (arrived, missing, arrived, …) until the space or the vector ends. The top bit
//! of a missing run's length says that the receiver believes that the radio link lost it. The number that a report
//! ends at shares its 64 bits with how long the packet that it echoes was on its way.

use crate::packet_sender::ForwardTime;
use narrows_base::{Duration, Packet};
use narrows_congestion::Feedback;

/// Most run lengths in a report without feedback.
pub const MAX_RUNS: usize = 12;

/// The cause in a missing run's length, which has the bits below.
const RADIO: u16 = 1 << 15;

/// The ACK vector of one report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Runs {
    lengths: [u16; MAX_RUNS],
    used: u8,
}

impl Runs {
    /// The vector over `[floor, head]` of which exactly `arrived` (ranges `[from, to)` in falling
    /// order, the first ending above `head`) came; `radio` says of a missing number what is believed of
    /// its run; at most `send_buffer` run lengths.
    pub fn over(
        floor: u64,
        head: u64,
        arrived: impl Iterator<Item = (u64, u64)>,
        radio: impl Fn(u64) -> bool,
        room: usize,
    ) -> Runs {
        let mut runs = Runs::default();
        let room = room.min(MAX_RUNS);
        let mut at = head + 1;
        for (from, to) in arrived {
            let (from, to) = (from.max(floor), to.min(head + 1));
            if to <= floor {
                break;
            }
            if at > to && !runs.push(at - to, false, radio(at - 1), room) {
                return runs;
            }
            if to > from && !runs.push(to - from, true, false, room) {
                return runs;
            }
            at = from;
        }
        if at > floor {
            runs.push(at - floor, false, radio(at - 1), room);
        }
        runs
    }

    /// Appends a run of what arrived or of what is missing; false if the space is used up.
    fn push(&mut self, mut length: u64, arrived: bool, radio: bool, room: usize) -> bool {
        if (usize::from(self.used) % 2 == 0) != arrived && !self.word(0, room) {
            return false;
        }
        let (most, bit) = match (arrived, radio) {
            (true, _) => (u16::MAX, 0),
            (false, false) => (!RADIO, 0),
            (false, true) => (!RADIO, RADIO),
        };
        while length > u64::from(most) {
            if !self.word(most | bit, room) || !self.word(0, room) {
                return false;
            }
            length -= u64::from(most);
        }
        self.word(length as u16 | bit, room)
    }

    fn word(&mut self, length: u16, room: usize) -> bool {
        if usize::from(self.used) >= room {
            return false;
        }
        self.lengths[usize::from(self.used)] = length;
        self.used += 1;
        true
    }

    /// Runs from the highest number `head` downwards: `[from, to)`, whether they arrived, and
    /// whether the radio link lost them.
    fn each(&self, head: u64) -> impl Iterator<Item = (u64, u64, bool, bool)> + '_ {
        let mut to = head.saturating_add(1);
        let used = &self.lengths[..usize::from(self.used)];
        used.iter().enumerate().filter_map(move |(i, word)| {
            let arrived = i % 2 == 0;
            let length = if arrived { *word } else { word & !RADIO };
            let from = to.saturating_sub(u64::from(length));
            let run = (from, to, arrived, !arrived && word & RADIO != 0);
            to = from;
            (run.0 < run.1).then_some(run)
        })
    }

    /// What arrived, as ranges `[from, to)` in falling order, of a vector whose top is `head`.
    pub fn arrived(&self, head: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.each(head).filter(|r| r.2).map(|r| (r.0, r.1))
    }

    /// What the radio link lost, likewise.
    pub fn radio(&self, head: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.each(head).filter(|r| r.3).map(|r| (r.0, r.1))
    }
}

const WORDS: u32 = 29;
/// Marks are counted modulo this.
pub const MARKS: u32 = 1 << WORDS;

/// Bits of the number that a report ends at.
const END_BITS: u32 = 40;

/// Writes one above the highest number that a report names, and how long the packet that it echoes was on its way.
pub fn write_end(packet: &mut Packet, end: u64, way: Duration) {
    let end = end.min((1 << END_BITS) - 1);
    packet.seq = u64::from(ForwardTime::of(way).as_micros()) << END_BITS | end;
}
/// One above the highest number that a report names.
#[inline]
pub fn report_end(packet: &Packet) -> u64 {
    packet.seq & ((1 << END_BITS) - 1)
}
/// How long the packet that it echoes was on its way.
#[inline]
pub fn forward_time(packet: &Packet) -> ForwardTime {
    ForwardTime::from_micros((packet.seq >> END_BITS) as u32)
}

/// Run lengths that fit beside this feedback.
pub fn room(feedback: &Feedback) -> usize {
    MAX_RUNS - 2 * feedback.words().len()
}

/// Writes a report's vector, feedback and count of marks into a packet.
pub fn write_report(packet: &mut Packet, runs: &Runs, feedback: &Feedback, marks: u32) {
    let words = feedback.words();
    let mut body = [0u32; 6];
    body[..words.len()].copy_from_slice(words);
    for (word, pair) in body[words.len()..].iter_mut().zip(runs.lengths.chunks(2)) {
        *word = u32::from(pair[0]) | u32::from(pair[1]) << 16;
    }
    packet.sack = [(body[0], body[1]), (body[2], body[3]), (body[4], body[5])];
    packet.number = ((words.len() as u32) << WORDS) | (marks % MARKS);
}

/// Reads what [`write_report`] wrote; nonsense reads as something harmless.
pub fn read_report(packet: &Packet) -> (Runs, Feedback, u32) {
    let [a, b, c] = packet.sack;
    let body = [a.0, a.1, b.0, b.1, c.0, c.1];
    let words = (packet.number >> WORDS).min(4) as usize;
    let feedback = Feedback::from_words(&body[..words]);
    let mut runs = Runs { lengths: [0; MAX_RUNS], used: room(&feedback) as u8 };
    for (pair, word) in runs.lengths.chunks_mut(2).zip(&body[words..]) {
        pair[0] = *word as u16;
        pair[1] = (*word >> 16) as u16;
    }
    (runs, feedback, packet.number % MARKS)
}

/// What a data packet says beside its number and send time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Data {
    /// Application bytes.
    pub payload: u16,
    /// Ack of ack, as the distance of the lowest number whose outcome the sender does not know.
    pub least_unacked: u16,
    /// Where in the stream the bytes belong; 0 where there is no stream.
    pub offset: u64,
    /// What the sender side says.
    pub feedback: Feedback,
}

/// Writes what a data packet says: in the 24 bytes, and in the place of TCP's packet count.
pub fn write_data(packet: &mut Packet, data: &Data) {
    let mut words = [0u32; 4];
    for (word, x) in words.iter_mut().zip(data.feedback.words()) {
        *word = *x;
    }
    let lengths = u32::from(data.payload) | u32::from(data.least_unacked) << 16;
    packet.sack = [(lengths, data.offset as u32), (words[0], words[1]), (words[2], words[3])];
    packet.number = (data.offset >> 32) as u32;
}

/// Reads what [`write_data`] wrote.
pub fn read_data(packet: &Packet) -> Data {
    let [(lengths, low), (a, b), (c, d)] = packet.sack;
    Data {
        payload: lengths as u16,
        least_unacked: (lengths >> 16) as u16,
        offset: u64::from(packet.number) << 32 | u64::from(low),
        feedback: Feedback::from_words(&[a, b, c, d]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Ranges;
    use proptest::prelude::*;

    /// S1 section 5.1.3: of 4 to 10, packet 4 is missing.
    #[test]
    fn a_vector_is_run_lengths_from_the_top() {
        let ranges = [(5u64, 11u64), (3, 4)];
        let runs = Runs::over(4, 10, ranges.into_iter(), |_| false, MAX_RUNS);
        assert_eq!(&runs.lengths[..2], &[6, 1]);
        assert_eq!(runs.arrived(10).collect::<Vec<_>>(), [(5, 11)]);
    }

    #[test]
    fn a_missing_run_carries_its_cause() {
        let ranges = [(90_000u64, 90_001u64), (10, 20), (5, 6)];
        let runs = Runs::over(2, 90_000, ranges.into_iter(), |n| n > 10, MAX_RUNS);
        let mut radio = Ranges::default();
        for (from, to) in runs.radio(90_000) {
            radio.insert(from, to, |_, _| ());
        }
        assert_eq!(radio.iter().collect::<Vec<_>>(), [(20, 90_000)], "longer than a word's bits");
        let arrived: Vec<_> = runs.arrived(90_000).collect();
        assert_eq!(arrived, [(90_000, 90_001), (10, 20), (5, 6)]);
    }

    proptest! {
        /// What a report says to have arrived did arrive, and all of it is said where it fits.
        #[test]
        fn vectors_say_what_arrived(
            arrived in prop::collection::vec((0u64..400, 1u64..40), 1..14),
            floor in 0u64..300,
            words in 0usize..5,
            far in any::<bool>(),
        ) {
            let scale = if far { 40_000 } else { 1 };
            let mut seen = Ranges::default();
            for (from, length) in &arrived {
                seen.insert(from * scale, (from + length) * scale, |_, _| ());
            }
            let head = seen.iter().next_back().unwrap().1 - 1;
            let floor = floor.min(head);
            let feedback = Feedback::of(&[1.0, 2.0, 3.0, 4.0][..words]);
            let runs = Runs::over(floor, head, seen.iter().rev(), |n| n % 3 == 0, room(&feedback));
            let mut packet = Packet {
                seq: head + 1, stamp: narrows_base::Time::ZERO, number: 0, random_key: 0,
                sack: [(0, 0); 3], flow: 0, size: 40, hop: 0, flags: Packet::ACK,
            };
            write_report(&mut packet, &runs, &feedback, 77);
            let (read, said, marks) = read_report(&packet);
            prop_assert_eq!((said, marks), (feedback, 77));
            let mut told = Ranges::default();
            for (from, to) in read.arrived(head) {
                told.insert(from, to, |_, _| ());
            }
            // The run that ends the space may be cut by the floor but never invented.
            for (from, to) in told.iter() {
                let inside = seen.find(from);
                prop_assert!(inside.is_some_and(|(_, end)| end >= to), "{from}..{to}");
            }
            let mut expected = Ranges::default();
            for (from, to) in seen.iter() {
                if to > floor {
                    expected.insert(from.max(floor), to, |_, _| ());
                }
            }
            if !far && 2 * expected.len() <= room(&feedback) {
                prop_assert_eq!(told, expected);
            }
        }

        /// Whatever 28 bytes a peer writes, they read as something.
        #[test]
        fn nonsense_reads_harmlessly(body in any::<[(u32, u32); 3]>(), number in any::<u32>(), seq in any::<u64>()) {
            let packet = Packet {
                seq, stamp: narrows_base::Time::ZERO, number, random_key: 0,
                sack: body, flow: 0, size: 40, hop: 0, flags: Packet::ACK,
            };
            let (runs, ..) = read_report(&packet);
            for (from, to) in runs.arrived(seq) {
                prop_assert!(from < to);
            }
            let mut copy = Packet { number: 0, sack: [(0, 0); 3], ..packet };
            write_data(&mut copy, &read_data(&packet));
            prop_assert_eq!((copy.sack, copy.number), (packet.sack, packet.number));
        }
    }
}
