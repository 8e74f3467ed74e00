//! Reads and writes the IP header fields that a link uses: ECN, lengths, checksums, ports.

use narrows_base::random::mix;
use std::ops::Range;

/// IP protocol numbers.
pub const TCP: u8 = 6;
/// See [`TCP`].
pub const UDP: u8 = 17;
/// Congestion experienced: the value of the two ECN bits.
pub const CE: u8 = 3;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// Offsets of the headers in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// True for IPv6, false for IPv4.
    pub six: bool,
    /// Protocol number in the IP header (IPv6 extension headers are not parsed).
    pub protocol: u8,
    /// Offset of the transport header.
    pub transport: usize,
}

impl Layout {
    /// `None` if it is not an IP packet, or is a fragment, whose ports are in another packet.
    pub fn of(packet: &[u8]) -> Option<Layout> {
        match packet.first()? >> 4 {
            4 if packet.len() >= IPV4_HEADER => {
                let transport = usize::from(packet.first()? & 0xf) * 4;
                let fragment = number(packet, 6) & 0x3fff;
                (transport >= IPV4_HEADER && fragment == 0).then_some(Layout {
                    six: false,
                    protocol: *packet.get(9)?,
                    transport,
                })
            }
            6 if packet.len() >= IPV6_HEADER => {
                Some(Layout { six: true, protocol: *packet.get(6)?, transport: IPV6_HEADER })
            }
            _ => None,
        }
    }

    /// Range of the source and destination addresses.
    fn addresses(self) -> Range<usize> {
        if self.six { 8..40 } else { 12..20 }
    }

    /// Length of the transport header in bytes: TCP with options, or UDP; zero for others.
    pub fn transport_header(self, packet: &[u8]) -> usize {
        match self.protocol {
            TCP => packet.get(self.transport + 12).map_or(0, |b| usize::from(b >> 4) * 4).max(20),
            UDP => 8,
            _ => 0,
        }
    }

    /// The checksum's initial sum over addresses, protocol and length (RFC 9293 section 3.1, RFC 8200 section 8.1). A
    /// packet whose checksum is left to a network card holds it in the checksum field.
    pub fn pseudo_header(self, packet: &[u8], length: usize) -> u16 {
        let addresses = packet.get(self.addresses()).unwrap_or_default();
        fold(sum(addresses) + u64::from(self.protocol) + length as u64)
    }

    /// Writes the packet's length into its IP header, and updates an IPv4 header checksum.
    pub fn set_length(self, packet: &mut [u8]) {
        let length = packet.len();
        if self.six {
            put(packet, 4, (length - IPV6_HEADER.min(length)) as u16);
        } else {
            put(packet, 2, length as u16);
            self.set_header_checksum(packet);
        }
    }

    /// Updates the header checksum of IPv4; IPv6 has no such checksum.
    pub fn set_header_checksum(self, packet: &mut [u8]) {
        if !self.six {
            put(packet, 10, 0);
            let header = packet.get(..self.transport).unwrap_or_default();
            let checksum = !fold(sum(header));
            put(packet, 10, checksum);
        }
    }
}

/// The two bits of ECN.
pub fn ecn(packet: &[u8]) -> u8 {
    match packet.first().map(|b| b >> 4) {
        Some(4) => packet.get(1).map_or(0, |b| b & 3),
        Some(6) => packet.get(1).map_or(0, |b| (b >> 4) & 3),
        _ => 0,
    }
}

/// A hash of addresses, protocol and ports.
pub fn flow(packet: &[u8]) -> u32 {
    let Some(layout) = Layout::of(packet) else { return 0 };
    let ports = match layout.protocol {
        TCP | UDP => packet.get(layout.transport..layout.transport + 4),
        _ => None,
    };
    let parts = [packet.get(layout.addresses()), ports];
    let bytes = parts.into_iter().flatten().flat_map(|part| part.chunks(4));
    let word = |chunk: &[u8]| chunk.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    bytes.fold(u64::from(layout.protocol), |hash, chunk| mix(hash ^ word(chunk))) as u32
}

/// The 16-bit number at an offset, in network order; zero beyond the end.
pub fn number(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some([a, b]) => u16::from_be_bytes([*a, *b]),
        _ => 0,
    }
}

/// Writes 16 bits in network order.
pub fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// The sum of 16-bit words of the Internet checksum (RFC 1071), not folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|w| u64::from(u16::from_be_bytes(*w))).sum();
    sum + rest.first().map_or(0, |b| u64::from(*b) << 8)
}

/// A sum in 16 bits, with end-around carry.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
