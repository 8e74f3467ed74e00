//! The messages that the two ends exchange.
//!
//! ```text
//! data: | 1 (1) | flags (1) | part (1) | last part (1) | number (4) | stamp, µs (6) | frame (4) | payload |
//! ask:  | 2 (1) | count (1) | count × ( first number (4) | numbers beyond it (1) | attempt (1) ) |
//! ```
//!
//! In a layered stream, the upper four bits of the first byte contain the message's layer; each layer has numbers of
//! its own.
//!
//! A datagram that exceeds the maximum message size is sent as parts, which share a stamp. Numbers count parts and wrap
//! at 2^32. The stamp is the sender's clock when the datagram came from the program. Flag 1: a frame begins in this
//! datagram.

use narrows_base::{Duration, Time};
use narrows_congestion::layers::MAX_LAYERS;

/// Bytes before the payload.
pub const HEAD: usize = 18;
/// Maximum number of parts of a datagram.
pub const MAX_PARTS: usize = 64;
/// Maximum number of runs in a request.
pub const MAX_RUNS: usize = 40;
const DATA: u8 = 1;
const ASK: u8 = 2;
const RUN: usize = 6;
/// Position of the layer in the first byte.
const LAYER_SHIFT: u32 = 4;
const BEGINS_FRAME: u8 = 1;
/// Stamps have 48 bits.
const MAX_STAMP: u64 = (1 << 48) - 1;

/// A part of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPart<'m> {
    /// The lower 32 bits of its number.
    pub number: u32,
    /// Index of the part in its datagram.
    pub part: u8,
    /// Index of the datagram's last part: 0 for a datagram in one part.
    pub last_part: u8,
    /// Arrival of the datagram by the sender's clock, in whole microseconds.
    pub stamp: Time,
    /// The datagram's frame; if several frames begin in it, the last.
    pub frame: u32,
    /// Whether that frame begins in it.
    pub begins_frame: bool,
    /// The datagram's bytes in this part.
    pub payload: &'m [u8],
}

/// A run of requested numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackRange {
    /// The lower 32 bits of the first number.
    pub first: u32,
    /// Number of further numbers in the run.
    pub more: u8,
    /// Number of this attempt, from 1. If a request with the same attempt arrives twice, the numbers are repeated once.
    pub attempt: u8,
}

/// A decoded message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MediaMessage<'m> {
    /// A part of a datagram, from sender to receiver.
    Data(DataPart<'m>),
    /// A request for repeats, from receiver to sender.
    Ask(Vec<NackRange>),
}

impl DataPart<'_> {
    /// Encodes the message.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.payload.len());
        bytes.extend([DATA, u8::from(self.begins_frame) * BEGINS_FRAME, self.part, self.last_part]);
        bytes.extend(self.number.to_be_bytes());
        let stamp = (self.stamp.as_nanos() / 1000).min(MAX_STAMP).to_be_bytes();
        bytes.extend(stamp.iter().skip(2));
        bytes.extend(self.frame.to_be_bytes());
        bytes.extend(self.payload);
        bytes
    }
}

/// Encodes a request; runs beyond [`MAX_RUNS`] are left out.
pub fn ask(runs: &[NackRange]) -> Vec<u8> {
    let runs = runs.get(..runs.len().min(MAX_RUNS)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(2 + RUN * runs.len());
    bytes.extend([ASK, runs.len() as u8]);
    for run in runs {
        bytes.extend(run.first.to_be_bytes());
        bytes.extend([run.more, run.attempt]);
    }
    bytes
}

/// Marks a message with its layer.
pub fn of_layer(layer: usize, mut message: Vec<u8>) -> Vec<u8> {
    if let Some(first) = message.first_mut() {
        *first |= (layer as u8) << LAYER_SHIFT;
    }
    message
}

/// Reads and removes a message's layer mark; `None` if the layer is out of range.
pub fn take_layer(message: &mut [u8]) -> Option<usize> {
    let first = message.first_mut()?;
    let layer = usize::from(*first >> LAYER_SHIFT);
    *first &= (1 << LAYER_SHIFT) - 1;
    (layer < MAX_LAYERS).then_some(layer)
}

/// Reads a message; `None` if it is invalid.
pub fn read(bytes: &[u8]) -> Option<MediaMessage<'_>> {
    match *bytes.first()? {
        DATA => data(bytes).map(MediaMessage::Data),
        ASK => asked(bytes).map(MediaMessage::Ask),
        _ => None,
    }
}

fn data(bytes: &[u8]) -> Option<DataPart<'_>> {
    let (head, payload) = bytes.split_first_chunk::<HEAD>()?;
    let [_, flags, part, last_part, n0, n1, n2, n3, stamp @ .., f0, f1, f2, f3] = *head;
    let stamp = stamp.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let is_possible =
        flags & !BEGINS_FRAME == 0 && part <= last_part && usize::from(last_part) < MAX_PARTS;
    is_possible.then_some(DataPart {
        number: u32::from_be_bytes([n0, n1, n2, n3]),
        part,
        last_part,
        stamp: Time::ZERO + Duration::from_micros(stamp),
        frame: u32::from_be_bytes([f0, f1, f2, f3]),
        begins_frame: flags & BEGINS_FRAME != 0,
        payload,
    })
}

fn asked(bytes: &[u8]) -> Option<Vec<NackRange>> {
    let (&[_, count], runs) = bytes.split_first_chunk::<2>()?;
    let is_possible = usize::from(count) <= MAX_RUNS && runs.len() == RUN * usize::from(count);
    let run = |run: &[u8]| match *run {
        [n0, n1, n2, n3, more, attempt] => {
            Some(NackRange { first: u32::from_be_bytes([n0, n1, n2, n3]), more, attempt })
        }
        _ => None,
    };
    is_possible.then(|| runs.chunks(RUN).filter_map(run).collect())
}

/// Extends the lower 32 bits of a number to the value nearest to `near`.
pub fn extended(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(i64::from(ahead)).unwrap_or(u64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Reading arbitrary bytes does not panic, and each message read is written identically.
        #[test]
        fn messages_are_read_as_they_are_written(mut bytes: Vec<u8>, kind in 0u8..4) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            match read(&bytes) {
                Some(MediaMessage::Data(data)) => prop_assert_eq!(data.bytes(), bytes),
                Some(MediaMessage::Ask(runs)) => prop_assert_eq!(ask(&runs), bytes),
                None => {}
            }
        }

        #[test]
        fn a_layer_is_marked_and_taken_off(layer in 0..MAX_LAYERS, rest: Vec<u8>) {
            let message = [vec![1], rest].concat();
            let mut marked = of_layer(layer, message.clone());
            prop_assert_eq!(take_layer(&mut marked), Some(layer));
            prop_assert_eq!(marked, message);
        }

        #[test]
        fn numbers_are_extended_to_the_nearest(near in 0u64..1 << 40, off in -(1i64 << 30)..1 << 30) {
            let number = near.saturating_add_signed(off);
            prop_assert_eq!(extended(number as u32, near), number);
        }
    }

    #[test]
    fn a_part_says_where_it_belongs() {
        let data = DataPart {
            number: 7,
            part: 1,
            last_part: 2,
            stamp: Time::ZERO + Duration::from_micros(1 << 40),
            frame: 9,
            begins_frame: true,
            payload: b"abc",
        };
        let bytes = data.bytes();
        assert_eq!((bytes.len(), read(&bytes)), (HEAD + 3, Some(MediaMessage::Data(data))));
        // A part beyond the last, an unknown flag, and a truncated request.
        assert_eq!(read(&DataPart { part: 3, ..data }.bytes()), None);
        assert_eq!(read(&[&[1, 2], &bytes[2..]].concat()), None);
        assert_eq!(read(&[2, 2, 0, 0, 0, 1, 0, 1]), None);
    }
}
