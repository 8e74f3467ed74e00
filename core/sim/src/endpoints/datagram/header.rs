//! The 24 bytes of a simulated packet that a datagram endpoint fills: reports and data.
//!
//! A report has the feedback's words, then one word for each [`PacketRun`]: arrived packets (16 bits), missing packets (15
//! bits), and a bit that attributes the missing ones to the radio link. A longer run takes several words. The highest
//! number of a report shares 64 bits with the one-way time of the echoed packet.

use narrows_base::{Duration, Packet, PacketRun};
use narrows_congestion::Feedback;
use narrows_recovery::packet_sender::ForwardTime;

/// Words of a report, for feedback and runs.
const MAX_WORDS: usize = 6;
/// Most arrived and most missing packets in one word.
const MAX_ARRIVED: u64 = (1 << 16) - 1;
const MAX_MISSING: u64 = (1 << 15) - 1;
/// Set if the missing packets were lost by the radio link.
const RADIO: u32 = 1 << 31;

/// The ACK vector of one report: its runs, as words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckVector {
    words: [u32; MAX_WORDS],
    used: u8,
}

impl AckVector {
    /// Encodes as many of these runs as fit into `room` words.
    #[inline]
    pub fn of(runs: impl Iterator<Item = PacketRun>, room: usize) -> AckVector {
        let mut vector = AckVector::default();
        let mut free = vector.words.iter_mut().take(room);
        for PacketRun { mut arrived, mut missing, radio } in runs {
            let cause = if radio { RADIO } else { 0 };
            while arrived > 0 || missing > 0 {
                let Some(word) = free.next() else { return vector };
                let a = arrived.min(MAX_ARRIVED);
                arrived -= a;
                let m = if arrived > 0 { 0 } else { missing.min(MAX_MISSING) };
                missing -= m;
                *word = a as u32 | (m as u32) << 16 | cause;
                vector.used += 1;
            }
        }
        vector
    }

    /// Its runs, from the highest number downwards.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = PacketRun> + '_ {
        self.words[..usize::from(self.used)].iter().map(|word| PacketRun {
            arrived: u64::from(word & 0xFFFF),
            missing: u64::from((word & !RADIO) >> 16),
            radio: word & RADIO != 0,
        })
    }
}

const WORDS: u32 = 29;
/// Modulus of the count of CE marks.
pub const MARKS: u32 = 1 << WORDS;

/// Bits of a report's end number.
const END_BITS: u32 = 40;

/// Writes the highest reported number plus one, and the one-way time of the echoed packet.
pub fn write_end(packet: &mut Packet, end: u64, way: Duration) {
    let end = end.min((1 << END_BITS) - 1);
    packet.seq = u64::from(ForwardTime::of(way).as_micros()) << END_BITS | end;
}
/// The highest reported number plus one.
#[inline]
pub fn report_end(packet: &Packet) -> u64 {
    packet.seq & ((1 << END_BITS) - 1)
}
/// The one-way time of the echoed packet.
#[inline]
pub fn forward_time(packet: &Packet) -> ForwardTime {
    ForwardTime::from_micros((packet.seq >> END_BITS) as u32)
}

/// Number of words for runs beside this feedback.
#[inline]
pub fn room(feedback: &Feedback) -> usize {
    MAX_WORDS - feedback.words().len()
}

/// Writes a report's vector, feedback and count of marks into a packet.
pub fn write_report(packet: &mut Packet, vector: &AckVector, feedback: &Feedback, marks: u32) {
    let words = feedback.words();
    let mut body = [0u32; MAX_WORDS];
    body[..words.len()].copy_from_slice(words);
    for (word, run) in body[words.len()..].iter_mut().zip(&vector.words) {
        *word = *run;
    }
    packet.sack = [(body[0], body[1]), (body[2], body[3]), (body[4], body[5])];
    packet.number = ((words.len() as u32) << WORDS) | (marks % MARKS);
}

/// Flag of a receiver's packet that is a NACK and no report. In data, only TCP uses CWR.
pub const NACK: u8 = Packet::CWR;
/// Ranges of bytes in one NACK.
pub const NACK_RANGES: usize = 3;

/// Writes ranges of missing bytes `[from, to)` in ascending order. Those 4 GiB or further above the first do not fit.
pub fn write_nack(packet: &mut Packet, ranges: &[(u64, u64)]) {
    packet.seq = ranges.first().map_or(0, |r| r.0);
    let near = |n: u64| u32::try_from(n.saturating_sub(packet.seq)).unwrap_or(u32::MAX);
    let mut fields = [(0, 0); NACK_RANGES];
    for (field, (from, to)) in fields.iter_mut().zip(ranges) {
        *field = (near(*from), near(*to));
    }
    packet.sack = fields;
}
/// The ranges that [`write_nack`] wrote.
pub fn read_nack(packet: &Packet) -> impl Iterator<Item = (u64, u64)> {
    let base = packet.seq;
    let far = move |n: u32| base.saturating_add(u64::from(n));
    packet.sack.into_iter().filter(|r| r.0 < r.1).map(move |(from, to)| (far(from), far(to)))
}

/// Reads the output of [`write_report`]; invalid data are read as harmless values.
pub fn read_report(packet: &Packet) -> (AckVector, Feedback, u32) {
    let [a, b, c] = packet.sack;
    let body = [a.0, a.1, b.0, b.1, c.0, c.1];
    let words = (packet.number >> WORDS).min(4) as usize;
    let feedback = Feedback::from_words(&body[..words]);
    let mut vector = AckVector { words: [0; MAX_WORDS], used: room(&feedback) as u8 };
    for (word, run) in vector.words.iter_mut().zip(&body[words..]) {
        *word = *run;
    }
    (vector, feedback, packet.number % MARKS)
}

/// The fields of a data packet besides its number and send time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DataHeader {
    /// Application bytes.
    pub payload: u16,
    /// The least unacked number, as its distance below this packet's number.
    pub least_unacked: u16,
    /// Position of the bytes in the stream; 0 if there is no stream.
    pub offset: u64,
    /// Feedback of the sender side.
    pub feedback: Feedback,
    /// Requested spacing of reports; zero without a request.
    pub spacing: Duration,
}

/// Offsets have `OFFSET_BITS` bits beyond 32; above them is the square root of the spacing in these units.
const OFFSET_BITS: u32 = 24;
const SPACING_UNIT_US: u64 = 16;

fn spacing_code(spacing: Duration) -> u32 {
    let us = spacing.as_nanos().div_ceil(1000);
    // A float's cast saturates.
    u32::from((us as f64 / SPACING_UNIT_US as f64).sqrt().ceil() as u8)
}

/// Writes the fields of a data packet into the 24 bytes, and into the field of TCP's packet count.
#[inline]
pub fn write_data(packet: &mut Packet, data: &DataHeader) {
    let mut words = [0u32; 4];
    for (word, x) in words.iter_mut().zip(data.feedback.words()) {
        *word = *x;
    }
    let lengths = u32::from(data.payload) | u32::from(data.least_unacked) << 16;
    packet.sack = [(lengths, data.offset as u32), (words[0], words[1]), (words[2], words[3])];
    let high = (data.offset >> 32) as u32 & ((1 << OFFSET_BITS) - 1);
    packet.number = high | spacing_code(data.spacing) << OFFSET_BITS;
}

/// Reads the output of [`write_data`].
#[inline]
pub fn read_data(packet: &Packet) -> DataHeader {
    let [(lengths, low), (a, b), (c, d)] = packet.sack;
    let code = u64::from(packet.number >> OFFSET_BITS);
    DataHeader {
        payload: lengths as u16,
        least_unacked: (lengths >> 16) as u16,
        offset: u64::from(packet.number & ((1 << OFFSET_BITS) - 1)) << 32 | u64::from(low),
        feedback: Feedback::from_words(&[a, b, c, d]),
        spacing: Duration::from_micros(code * code * SPACING_UNIT_US),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::run;
    use narrows_recovery::packet_receiver::runs;
    use narrows_recovery::ranges::Ranges;
    use proptest::prelude::*;

    /// An [`AckVector`] of these received ranges, in descending order.
    fn said(floor: u64, head: u64, ranges: &[(u64, u64)], room: usize) -> AckVector {
        AckVector::of(runs(ranges.iter().copied(), floor, head, |n| n % 3 == 0), room)
    }

    /// Choi 2006 section 4.2.2: of 4 to 10, packet 4 is missing.
    #[test]
    fn a_vector_is_runs_from_the_top() {
        let vector = said(4, 10, &[(5, 11), (3, 4)], MAX_WORDS);
        assert_eq!((vector.used, vector.words[0]), (1, 1 << 16 | 6));
        assert_eq!(run::arrived(10, vector.runs()).collect::<Vec<_>>(), [(5, 11)]);
    }

    #[test]
    fn a_missing_run_carries_its_cause() {
        let vector = said(2, 90_000, &[(90_000, 90_001), (12, 21), (5, 6)], MAX_WORDS);
        let mut radio = Ranges::default();
        for (from, to, cause) in run::missing(90_000, vector.runs()) {
            if cause {
                radio.insert(from, to, |_, _| ());
            }
        }
        let all: Vec<_> = radio.iter().collect();
        assert_eq!(all, [(6, 12), (21, 90_000)], "longer than a word's bits");
        let arrived: Vec<_> = run::arrived(90_000, vector.runs()).collect();
        assert_eq!(arrived, [(90_000, 90_001), (12, 21), (5, 6)]);
    }

    proptest! {
        /// Packets that a report acknowledges did arrive, and all of them are covered if they fit.
        #[test]
        fn ack_vectors_list_the_arrivals(
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
            let ranges: Vec<_> = seen.iter().rev().collect();
            let vector = said(floor, head, &ranges, room(&feedback));
            let mut packet = Packet {
                seq: head + 1, stamp: narrows_base::Time::ZERO, number: 0, random_key: 0,
                sack: [(0, 0); 3], flow: 0, size: 40, hop: 0, flags: Packet::ACK,
            };
            write_report(&mut packet, &vector, &feedback, 77);
            let (read, back, marks) = read_report(&packet);
            prop_assert_eq!((back, marks), (feedback, 77));
            let mut read_back = Ranges::default();
            for (from, to) in run::arrived(head, read.runs()) {
                read_back.insert(from, to, |_, _| ());
            }
            // The floor may cut the last run, but never extend it.
            for (from, to) in read_back.iter() {
                let inside = seen.find(from);
                prop_assert!(inside.is_some_and(|(_, end)| end >= to), "{from}..{to}");
            }
            let mut expected = Ranges::default();
            for (from, to) in seen.iter() {
                if to > floor {
                    expected.insert(from.max(floor), to, |_, _| ());
                }
            }
            if !far && expected.len() <= room(&feedback) {
                prop_assert_eq!(read_back, expected);
            }
        }

        /// Any 28 bytes of a peer can be read.
        #[test]
        fn nonsense_reads_harmlessly(body in any::<[(u32, u32); 3]>(), number in any::<u32>(), seq in any::<u64>()) {
            let packet = Packet {
                seq, stamp: narrows_base::Time::ZERO, number, random_key: 0,
                sack: body, flow: 0, size: 40, hop: 0, flags: Packet::ACK,
            };
            let (vector, ..) = read_report(&packet);
            for (from, to) in run::arrived(seq, vector.runs()) {
                prop_assert!(from < to);
            }
            let mut copy = Packet { number: 0, sack: [(0, 0); 3], ..packet };
            write_data(&mut copy, &read_data(&packet));
            prop_assert_eq!((copy.sack, copy.number), (packet.sack, packet.number));
        }
    }
}
