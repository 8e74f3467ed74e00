//! The header fields of an IP packet that decide whether and where it may go, and ICMP errors for its sender.

pub mod too_big;

use std::net::IpAddr;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// ICMP's protocol number in IPv4.
pub const ICMP: u8 = 1;
/// ICMP's protocol number in IPv6.
pub const ICMP6: u8 = 58;
const HEADER4: usize = 20;
const HEADER6: usize = 40;

/// The relevant header fields of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpPacket {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Destination port of TCP or UDP. Zero if it is not visible: other protocols, IPv6 extension headers, and all
    /// fragments but the first.
    pub port: u16,
    /// Protocol and both ports, if visible. Together with the addresses they identify the packet's flow.
    pub inside: (u8, u32),
    /// Its ECN field.
    pub ecn: u8,
    /// Routers may fragment it: IPv4 without "don't fragment".
    pub may_be_split: bool,
    /// It is a fragment, but not the first.
    pub is_later_fragment: bool,
    /// An ICMP error; any router on the path may send it.
    pub is_error: bool,
}

impl IpPacket {
    /// `None` if it is not an IP packet of exactly this length.
    pub fn read(bytes: &[u8]) -> Option<IpPacket> {
        match bytes.first()? >> 4 {
            4 => four(bytes),
            6 => six(bytes),
            _ => None,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn four(bytes: &[u8]) -> Option<IpPacket> {
    let header = usize::from(bytes.first()? & 0xf) * 4;
    let length = usize::from(number(bytes, 2)?);
    if header < HEADER4 || length != bytes.len() || length < header {
        return None;
    }
    let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let fragment = number(bytes, 6)?;
    let is_later_fragment = fragment & 0x1fff != 0;
    let protocol = *bytes.get(9)?;
    let inside = bytes.get(header..).filter(|_| !is_later_fragment).unwrap_or_default();
    Some(IpPacket {
        source: address(12)?,
        destination: address(16)?,
        port: port(protocol, inside),
        inside: (protocol, ports(protocol, inside)),
        ecn: bytes.get(1)? & 3,
        may_be_split: fragment & 0x4000 == 0,
        is_later_fragment,
        is_error: protocol == ICMP && matches!(inside.first(), Some(3 | 11 | 12)),
    })
}

fn six(bytes: &[u8]) -> Option<IpPacket> {
    if bytes.len() < HEADER6 || HEADER6 + usize::from(number(bytes, 4)?) != bytes.len() {
        return None;
    }
    let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<16>()?));
    let protocol = *bytes.get(6)?;
    let inside = bytes.get(HEADER6..)?;
    Some(IpPacket {
        source: address(8)?,
        destination: address(24)?,
        port: port(protocol, inside),
        inside: (protocol, ports(protocol, inside)),
        ecn: bytes.get(1)? >> 4 & 3,
        may_be_split: false,
        is_later_fragment: false,
        is_error: protocol == ICMP6 && inside.first().is_some_and(|kind| *kind < 128),
    })
}

fn ports(protocol: u8, inside: &[u8]) -> u32 {
    let has_ports = protocol == TCP || protocol == UDP;
    let both = inside.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    both.filter(|_| has_ports).unwrap_or(0)
}

/// Sets the ECN field of a packet to CE (RFC 3168 section 5).
pub fn mark(bytes: &mut [u8]) {
    let version = bytes.first().map(|byte| byte >> 4);
    let header = bytes.first().map_or(0, |byte| usize::from(byte & 0xf) * 4);
    match (version, bytes.get_mut(1)) {
        (Some(4), Some(field)) => *field |= 3,
        (Some(6), Some(field)) => *field |= 3 << 4,
        _ => return,
    }
    if version == Some(4)
        && let Some(header) = bytes.get_mut(..header)
        && let Some(place) = header.get_mut(10..12)
    {
        place.fill(0);
        let sum = checksum(header);
        if let Some(place) = header.get_mut(10..12) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// The Internet checksum (RFC 1071).
pub fn checksum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    sum += rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// A packet with these bytes after its header, DF set, TTL 64; `None` if the addresses are of two families, or the packet
/// would exceed 65,535 bytes. The header checksum of IPv4 is written.
pub fn build(source: IpAddr, destination: IpAddr, protocol: u8, inside: &[u8]) -> Option<Vec<u8>> {
    let length = |bytes: usize| u16::try_from(bytes).ok().map(u16::to_be_bytes);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = vec![0x45, 0];
            header.extend(length(HEADER4 + inside.len())?);
            header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            header.extend([source.octets(), destination.octets()].concat());
            let sum = checksum(&header).to_be_bytes();
            header.get_mut(10..12)?.copy_from_slice(&sum);
            Some([&header, inside].concat())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend(length(inside.len())?);
            header.extend([protocol, 64]);
            Some([&header[..], &source.octets(), &destination.octets(), inside].concat())
        }
        _ => None,
    }
}

fn port(protocol: u8, inside: &[u8]) -> u16 {
    let has_ports = protocol == TCP || protocol == UDP;
    number(inside, 2).filter(|_| has_ports).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
        let four = any::<[[u8; 4]; 2]>().prop_map(|[a, b]| (a.into(), b.into()));
        let six = any::<[[u8; 16]; 2]>().prop_map(|[a, b]| (a.into(), b.into()));
        prop_oneof![four, six]
    }

    #[test]
    fn a_mark_leaves_the_rest_as_it_is() {
        let a = [10, 0, 0, 1].into();
        let b = [10, 0, 0, 2].into();
        let before = build(a, b, UDP, &[0, 9, 0, 22, 0, 0]).unwrap();
        let mut marked = before.clone();
        mark(&mut marked);
        assert_eq!((IpPacket::read(&marked).unwrap().ecn, checksum(&marked[..20])), (3, 0));
        assert!(before[2..10] == marked[2..10] && before[12..] == marked[12..]);
        let before = build(
            std::net::Ipv6Addr::LOCALHOST.into(),
            std::net::Ipv6Addr::LOCALHOST.into(),
            UDP,
            &[1; 9],
        )
        .unwrap();
        let mut marked = before.clone();
        mark(&mut marked);
        assert_eq!(IpPacket::read(&marked).unwrap().ecn, 3);
        assert!(before[0] == marked[0] && before[2..] == marked[2..]);
        for strange in [&[][..], &[0x4f], &[0x4f, 0, 0], &[0x60]] {
            mark(&mut strange.to_vec());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            mark(&mut bytes.clone());
            if let Some(packet) = IpPacket::read(&bytes) {
                prop_assert_eq!(packet.source.is_ipv4(), bytes[0] >> 4 == 4);
                prop_assert_eq!(packet.source.is_ipv4(), packet.destination.is_ipv4());
                let min = if packet.source.is_ipv4() { HEADER4 } else { HEADER6 };
                prop_assert!(bytes.len() >= min);
            }
        }

        #[test]
        fn written_packet_is_read_back((source, destination) in addresses(), port: u16, rest in prop::collection::vec(any::<u8>(), 0..60)) {
            let udp = [&[1, 2][..], &port.to_be_bytes(), &rest].concat();
            let bytes = build(source, destination, UDP, &udp).unwrap();
            let read = IpPacket::read(&bytes).unwrap();
            prop_assert_eq!((read.source, read.destination, read.port), (source, destination, port));
            prop_assert!(!read.is_error && !read.may_be_split);
            // One byte more or less contradicts the header's length.
            prop_assert_eq!(IpPacket::read(&bytes[..bytes.len() - 1]), None);
            prop_assert_eq!(IpPacket::read(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn ports_are_read_of_first_fragments_only() {
        let a = [10, 0, 0, 1].into();
        let b = [10, 0, 0, 2].into();
        let mut bytes = build(a, b, TCP, &[0, 9, 0, 22, 0, 0]).unwrap();
        assert_eq!(IpPacket::read(&bytes).unwrap().port, 22);
        bytes[6] = 0x20;
        bytes[7] = 0;
        assert_eq!(IpPacket::read(&bytes).unwrap().port, 22, "the first of several");
        bytes[6] = 0x20;
        bytes[7] = 1;
        let later = IpPacket::read(&bytes).unwrap();
        assert!(later.port == 0 && later.is_later_fragment && later.may_be_split);
        let unreachable = build(a, b, ICMP, &[3, 4, 0, 0]).unwrap();
        assert!(IpPacket::read(&unreachable).unwrap().is_error);
        let ping = build(a, b, ICMP, &[8, 0, 0, 0]).unwrap();
        assert!(!IpPacket::read(&ping).unwrap().is_error);
    }
}
