//! The header of a data packet (a *short* packet): eight or nine bytes in the clear.
//!
//! ```text
//! | 0 P W R R R R R | connection id (4) | packet number, lowest 3 (W = 0) or 4 (W = 1) bytes |
//! ```
//!
//! R are random bits that the receiver ignores. They make the tag unpredictable without the packet, even if the rest of
//! its content is known.
//!
//! Packet numbers are truncated and recovered as in RFC 9000 appendix A.2 and A.3.

use crate::bytes::{ByteReader, MAX_VARINT, Malformed};

pub use narrows_base::replay::MAX_PACKET_NUMBER;

const _: () = assert!(MAX_PACKET_NUMBER == MAX_VARINT);

/// Bit of the first byte that distinguishes long packets from short ones.
pub const LONG: u8 = 0x80;
const PHASE: u8 = 0x40;
const WIDE: u8 = 0x20;
/// The random bits of the first byte.
pub const RANDOM: u8 = 0x1f;

/// Connection id, chosen by the endpoint that receives packets with it. Big-endian on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u32);

/// A short packet's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortHeader {
    /// The receiver's id of the connection.
    pub connection: ConnectionId,
    /// The sender's key phase.
    pub phase: bool,
    /// Whether the packet number has 4 bytes instead of 3.
    pub wide: bool,
    /// Five random bits.
    pub random: u8,
    /// The packet number's lowest 24 or 32 bits.
    pub number: u32,
}

impl ShortHeader {
    /// The header of packet `number`. `acked` is the highest acknowledged packet number, if any. Its random bits are
    /// zero.
    pub fn new(
        connection: ConnectionId,
        phase: bool,
        number: u64,
        acked: Option<u64>,
    ) -> ShortHeader {
        let wide = is_wide(number, acked);
        let mask = if wide { u32::MAX } else { 0x00ff_ffff };
        ShortHeader { connection, phase, wide, random: 0, number: number as u32 & mask }
    }

    /// Bytes on the wire: 8 or 9.
    #[inline]
    pub const fn len(&self) -> usize {
        if self.wide { 9 } else { 8 }
    }

    /// Always false: a header has at least eight bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The first [`len`](ShortHeader::len) bytes of the array.
    #[inline]
    pub fn bytes(&self) -> [u8; 9] {
        let [a, b, c, d] = self.connection.0.to_be_bytes();
        let bits = if self.phase { PHASE } else { 0 } | if self.wide { WIDE } else { 0 };
        let first = bits | self.random & RANDOM;
        let [w, x, y, z] = self.number.to_be_bytes();
        if self.wide { [first, a, b, c, d, w, x, y, z] } else { [first, a, b, c, d, x, y, z, 0] }
    }

    /// From the front of a datagram.
    ///
    /// # Errors
    /// Truncated, or a long packet.
    #[inline]
    pub fn read(datagram: &[u8]) -> Result<ShortHeader, Malformed> {
        let mut source = ByteReader::new(datagram);
        let first = source.byte()?;
        if first & LONG != 0 {
            return Err(Malformed::new("a long packet in place of a data packet"));
        }
        let connection = ConnectionId(source.u32()?);
        let wide = first & WIDE != 0;
        let number = source.number(if wide { 4 } else { 3 })? as u32;
        Ok(ShortHeader {
            connection,
            phase: first & PHASE != 0,
            wide,
            random: first & RANDOM,
            number,
        })
    }

    /// The full packet number, if the highest authenticated number is `highest` (RFC 9000 appendix
    /// A.3).
    #[inline]
    pub fn complete(&self, highest: Option<u64>) -> u64 {
        let expected = highest.map_or(0, |h| h.saturating_add(1));
        let window = if self.wide { 1u64 << 32 } else { 1 << 24 };
        let half = window / 2;
        let near = (expected & !(window - 1)) | u64::from(self.number);
        if near.saturating_add(half) <= expected && near + window <= MAX_PACKET_NUMBER {
            near + window
        } else if near > expected.saturating_add(half) && near >= window {
            near - window
        } else {
            near
        }
    }
}

/// Whether a packet number needs four bytes. Three suffice while fewer than 2^23 numbers are
/// unacknowledged.
pub fn is_wide(number: u64, acked: Option<u64>) -> bool {
    let unacked = acked.map_or(number.saturating_add(1), |a| number.saturating_sub(a));
    unacked >= 1 << 23
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 appendix A.3's example, with a window of 24 bits instead of 16.
    #[test]
    fn the_nearest_number_is_meant() {
        let header = ShortHeader::new(ConnectionId(1), false, 0x9b32, None);
        assert_eq!(header.complete(Some(0xa82f_30ea)), 0xa800_9b32);
        assert_eq!(header.complete(None), 0x9b32);
        assert_eq!(header.complete(Some(0xffff_fff0)), 0x1_0000_9b32);
    }

    proptest! {
        /// The number is recovered if the receiver's highest number is at least the acknowledged one and at most half a
        /// window above this packet.
        #[test]
        fn numbers_are_completed(
            number in 0..=MAX_PACKET_NUMBER, shift in 0u32..62, back in 0u64..(1 << 31),
            seen in 0.0..1.0f64, above in 0u64..(1 << 22), random in 0..=RANDOM,
        ) {
            let number = number >> shift;
            let acked = number.checked_sub(back + 1);
            let header = ShortHeader { random, ..ShortHeader::new(ConnectionId(7), true, number, acked) };
            prop_assert_eq!(ShortHeader::read(&header.bytes()[..header.len()]), Ok(header));
            // The receiver has at least the acknowledged packet.
            let lowest = acked.map_or(0, |a| a + 1);
            let highest = lowest + ((number - lowest) as f64 * seen) as u64;
            if number - lowest < 1 << 31 {
                prop_assert_eq!(header.complete(highest.checked_sub(1)), number);
            }
            prop_assert_eq!(header.complete(Some((number + above).min(MAX_PACKET_NUMBER))), number);
        }

        #[test]
        fn anything_is_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..12), highest in any::<u64>()) {
            if let Ok(header) = ShortHeader::read(&bytes) {
                let _ = header.complete(Some(highest));
                prop_assert_eq!(&header.bytes()[..header.len()], &bytes[..header.len()]);
            }
        }
    }
}
