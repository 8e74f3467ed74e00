//! Packets of a layered stream that is sent to multicast groups.
//!
//! ```text
//! | "NWM" (3) | 1 (1) | session (8) | layers (1) | rates, kbit/s (4 each) | data message |
//! ```
//!
//! The data message is that of [`crate::packet`], marked with its layer. Packets of the base layer contain the rates of
//! all layers; other packets contain no rates (0 layers). The session is random for each start of a sender. Packets are
//! not sealed: any host in the network can read and forge them.

use crate::packet::{DataPart, MediaMessage, read, take_layer};
use narrows_congestion::layers::MAX_LAYERS;

const MAGIC: [u8; 4] = *b"NWM\x01";
/// Bytes before the rates.
const HEAD: usize = 13;
/// Bytes before the message in a packet of the base layer, for this number of layers.
pub const fn head(layers: usize) -> usize {
    HEAD + 4 * layers
}

/// Header of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Random number of the sender's start.
    pub session: u64,
    /// The packet's layer, 0 for the base layer.
    pub layer: usize,
    /// The rates of all layers in kbit/s; empty unless the packet is of the base layer.
    pub rates: Vec<u32>,
}

/// Encodes a packet; `message` is a data message without a layer mark.
pub fn write(head: &Head, message: Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(self::head(head.rates.len()) + message.len());
    bytes.extend(MAGIC);
    bytes.extend(head.session.to_be_bytes());
    bytes.push(head.rates.len() as u8);
    head.rates.iter().for_each(|rate| bytes.extend(rate.to_be_bytes()));
    bytes.extend(crate::packet::of_layer(head.layer, message));
    bytes
}

/// Reads a packet and removes its layer mark; `None` if it is invalid. The returned message is a data message.
pub fn read_packet(bytes: &mut [u8]) -> Option<(Head, &[u8])> {
    let (begin, rest) = bytes.split_first_chunk_mut::<HEAD>()?;
    let [m0, m1, m2, m3, session @ .., count] = *begin;
    let count = usize::from(count);
    if [m0, m1, m2, m3] != MAGIC || count > MAX_LAYERS {
        return None;
    }
    let (rates, message) = rest.split_at_mut_checked(4 * count)?;
    let rates = rates.chunks(4).map(|rate| rate.iter().fold(0, |sum, b| sum << 8 | u32::from(*b)));
    let rates: Vec<u32> = rates.collect();
    let layer = take_layer(message)?;
    // Only packets of the base layer contain rates, and all of them are positive.
    let is_possible = (layer == 0) == (count > 0) && rates.iter().all(|rate| *rate > 0);
    let head = Head { session: u64::from_be_bytes(session), layer, rates };
    let is_data = matches!(read(message), Some(MediaMessage::Data(_)));
    (is_possible && is_data).then_some((head, &*message))
}

/// Reads the data message of a packet.
pub fn data(message: &[u8]) -> Option<DataPart<'_>> {
    match read(message)? {
        MediaMessage::Data(data) => Some(data),
        MediaMessage::Ask(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Time;
    use proptest::prelude::*;

    fn message(number: u32) -> Vec<u8> {
        let part = 0;
        let last_part = 0;
        let frame = 1;
        let begins_frame = true;
        let stamp = Time::ZERO;
        DataPart { number, part, last_part, stamp, frame, begins_frame, payload: b"media" }.bytes()
    }

    proptest! {
        /// Reading arbitrary bytes does not panic, and each packet read is written identically.
        #[test]
        fn packets_are_read_as_they_are_written(rest: Vec<u8>, count in 0u8..10, kind in 0u8..64) {
            let mut bytes = [&MAGIC[..], &[7; 8], &[count], &rest].concat();
            if let Some(first) = bytes.get_mut(HEAD + 4 * usize::from(count)) {
                *first = kind;
            }
            let before = bytes.clone();
            if let Some((head, message)) = read_packet(&mut bytes) {
                prop_assert_eq!(write(&head, message.to_vec()), before);
            }
        }

        #[test]
        fn group_packet_reads_back_as_written(session: u64, rates in proptest::collection::vec(1u32.., 1..=8)) {
            let head = Head { session, layer: 0, rates };
            let mut bytes = write(&head, message(7));
            prop_assert_eq!(read_packet(&mut bytes), Some((head, &message(7)[..])));
            let upper = Head { session, layer: 3, rates: Vec::new() };
            let mut bytes = write(&upper, message(8));
            prop_assert_eq!(read_packet(&mut bytes), Some((upper, &message(8)[..])));
        }
    }

    #[test]
    fn impossible_group_packets_are_refused() {
        let good = Head { session: 1, layer: 0, rates: vec![500, 1000] };
        for head in [
            Head { rates: Vec::new(), ..good.clone() },
            Head { rates: vec![500, 0], ..good.clone() },
            Head { layer: 1, ..good.clone() },
            Head { layer: 9, rates: Vec::new(), ..good.clone() },
        ] {
            assert_eq!(read_packet(&mut write(&head, message(0))), None, "{head:?}");
        }
        assert_eq!(read_packet(&mut write(&good, crate::packet::ask(&[]))), None);
        assert_eq!(read_packet(&mut write(&good, Vec::new())), None);
    }
}
