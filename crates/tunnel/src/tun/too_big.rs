//! ICMP errors for packets that are too long for the path: "fragmentation needed" (RFC 1191 section 4), "packet too
//! big" (RFC 4443 section 3.2).

use super::packet::{Packet, checksum};
use std::net::IpAddr;

/// Maximum size of such an error in bytes (RFC 1812 section 4.3.2.3, RFC 4443 section 2.4).
const MAX4: usize = 576;
const MAX6: usize = 1280;

/// The error, with the source address `from`; `None` if no error may be sent (RFC 1812 section 4.3.2.7).
pub fn answer(packet: &Packet, bytes: &[u8], mtu: usize, from: IpAddr) -> Option<Vec<u8>> {
    if packet.is_error || packet.is_later_fragment || packet.destination.is_multicast() {
        return None;
    }
    let mtu = u32::try_from(mtu).ok()?;
    match (from, packet.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let quoted = bytes.get(..bytes.len().min(MAX4 - 28))?;
            let mut icmp = vec![3, 4, 0, 0, 0, 0];
            icmp.extend(u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
            icmp.extend(quoted);
            let sum = checksum(&icmp);
            put(&mut icmp, 2, sum);
            let mut header = vec![0x45, 0xc0];
            header.extend(u16::try_from(20 + icmp.len()).ok()?.to_be_bytes());
            header.extend([0, 0, 0, 0, 64, 1, 0, 0]);
            header.extend([from.octets(), to.octets()].concat());
            let sum = checksum(&header);
            put(&mut header, 10, sum);
            Some([header, icmp].concat())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let quoted = bytes.get(..bytes.len().min(MAX6 - 48))?;
            let mut icmp = vec![2, 0, 0, 0];
            icmp.extend(mtu.to_be_bytes());
            icmp.extend(quoted);
            let length = u32::try_from(icmp.len()).ok()?.to_be_bytes();
            let ends = [from.octets(), to.octets()].concat();
            let sum = checksum(&[&ends, &length[..], &[0, 0, 0, 58], &icmp].concat());
            put(&mut icmp, 2, sum);
            let mut header = vec![0x60, 0, 0, 0];
            header.extend(u16::try_from(icmp.len()).ok()?.to_be_bytes());
            header.extend([58, 64]);
            Some([header, ends, icmp].concat())
        }
        _ => None,
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::packet;
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_sender_is_told_once_and_correctly() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let router = IpAddr::from([10, 0, 0, 3]);
        let long = packet(a.into(), b.into(), 17, &[0; 1400]);
        let read = Packet::read(&long).unwrap();
        let told = answer(&read, &long, 1300, router).unwrap();
        let header = Packet::read(&told).unwrap();
        assert!(header.is_error && told.len() == MAX4);
        assert_eq!((header.source, header.destination), (router, a.into()));
        assert_eq!((checksum(&told[..20]), checksum(&told[20..])), (0, 0));
        assert_eq!(told[26..28], 1300u16.to_be_bytes());
        assert_eq!(answer(&header, &told, 1300, router), None, "no error for an error");

        let (a, b) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::LOCALHOST);
        let long = packet(a.into(), b.into(), 6, &[0; 1400]);
        let read = Packet::read(&long).unwrap();
        let told = answer(&read, &long, 1280, b.into()).unwrap();
        assert!(Packet::read(&told).unwrap().is_error && told.len() == MAX6);
        assert_eq!(told[44..48], 1280u32.to_be_bytes());
        let length = (told.len() as u32 - 40).to_be_bytes();
        let summed = [&told[8..40], &length[..], &[0, 0, 0, 58], &told[40..]].concat();
        assert_eq!(checksum(&summed), 0);
        assert_eq!(answer(&read, &long, 1280, router), None, "of another family");
    }
}
