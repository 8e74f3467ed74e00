//! ICMP errors for packets that are too long for the path: "fragmentation needed" (RFC 1191 section 4), "packet too
//! big" (RFC 4443 section 3.2).

use super::{ICMP, ICMP6, IpPacket, build, checksum};
use std::net::IpAddr;

/// Maximum size of such an error in bytes (RFC 1812 section 4.3.2.3, RFC 4443 section 2.4).
const MAX4: usize = 576;
const MAX6: usize = 1280;

/// The error, with the source address `from`; `None` if no error may be sent (RFC 1812 section 4.3.2.7).
pub fn answer(packet: &IpPacket, bytes: &[u8], mtu: usize, from: IpAddr) -> Option<Vec<u8>> {
    if packet.is_error || packet.is_later_fragment || packet.destination.is_multicast() {
        return None;
    }
    let mtu = u32::try_from(mtu).ok()?;
    let short = u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes();
    let (head, max, protocol) = match from {
        IpAddr::V4(_) => ([&[3, 4, 0, 0, 0, 0], &short[..]].concat(), MAX4 - 28, ICMP),
        IpAddr::V6(_) => ([&[2, 0, 0, 0], &mtu.to_be_bytes()[..]].concat(), MAX6 - 48, ICMP6),
    };
    let mut icmp = head;
    icmp.extend(bytes.get(..bytes.len().min(max))?);
    let sum = match (from, packet.source) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = u32::try_from(icmp.len()).ok()?.to_be_bytes();
            let ends = [from.octets(), to.octets()].concat();
            checksum(&[&ends, &length[..], &[0, 0, 0, ICMP6], &icmp].concat())
        }
        _ => checksum(&icmp),
    };
    icmp.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
    build(from, packet.source, protocol, &icmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_sender_is_told_once_and_correctly() {
        let a = Ipv4Addr::new(10, 0, 0, 1);
        let b = Ipv4Addr::new(10, 0, 0, 2);
        let router = IpAddr::from([10, 0, 0, 3]);
        let long = build(a.into(), b.into(), 17, &[0; 1400]).unwrap();
        let read = IpPacket::read(&long).unwrap();
        let error = answer(&read, &long, 1300, router).unwrap();
        let header = IpPacket::read(&error).unwrap();
        assert!(header.is_error && error.len() == MAX4);
        assert_eq!((header.source, header.destination), (router, a.into()));
        assert_eq!((checksum(&error[..20]), checksum(&error[20..])), (0, 0));
        assert_eq!(error[26..28], 1300u16.to_be_bytes());
        assert_eq!(answer(&header, &error, 1300, router), None, "no error for an error");

        let a = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
        let b = Ipv6Addr::LOCALHOST;
        let long = build(a.into(), b.into(), 6, &[0; 1400]).unwrap();
        let read = IpPacket::read(&long).unwrap();
        let error = answer(&read, &long, 1280, b.into()).unwrap();
        assert!(IpPacket::read(&error).unwrap().is_error && error.len() == MAX6);
        assert_eq!(error[44..48], 1280u32.to_be_bytes());
        let length = (error.len() as u32 - 40).to_be_bytes();
        let summed = [&error[8..40], &length[..], &[0, 0, 0, 58], &error[40..]].concat();
        assert_eq!(checksum(&summed), 0);
        assert_eq!(answer(&read, &long, 1280, router), None, "of another family");
    }
}
