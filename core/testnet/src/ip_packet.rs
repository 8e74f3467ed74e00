//! Whole IP packets as the payload of datagrams.

use crate::{Datagram, Ecn};
use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// The fields of an IP packet that a network reads and changes. Ports are 0 if the packet has none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Header {
    source: SocketAddr,
    destination: SocketAddr,
    ecn: Ecn,
}

/// A datagram that carries this packet; `None` if it is no IP packet.
pub(crate) fn to_datagram(packet: Vec<u8>) -> Option<Datagram> {
    let header = read(&packet)?;
    let datagram = Datagram::udp(header.source, header.destination, packet);
    Some(Datagram { header_bytes: 0, ..datagram.with_ecn(header.ecn) })
}

/// The packet that a datagram carries, with the addresses, ports and ECN field that the network gave the datagram.
/// `None` for a datagram of another kind.
pub(crate) fn of_datagram(datagram: &Datagram) -> Option<Cow<'_, [u8]>> {
    if datagram.header_bytes != 0 {
        return None;
    }
    let source = datagram.source;
    let destination = datagram.destination;
    let changed = Header { source, destination, ecn: datagram.ecn };
    if read(&datagram.payload)? == changed {
        return Some(Cow::Borrowed(&datagram.payload));
    }
    let mut packet = datagram.payload.clone();
    write(&mut packet, changed)?;
    Some(Cow::Owned(packet))
}

fn read(packet: &[u8]) -> Option<Header> {
    let with = |source: IpAddr, destination: IpAddr, ecn, ports: Option<[u16; 2]>| {
        let [from, to] = ports.unwrap_or_default();
        let source = SocketAddr::new(source, from);
        let destination = SocketAddr::new(destination, to);
        Header { source, destination, ecn: Ecn::from_bits(ecn) }
    };
    match packet.first()? >> 4 {
        4 => {
            let ip = Ipv4Packet::new_checked(packet).ok()?;
            let is_first = ip.frag_offset() == 0;
            let ports = ports(ip.next_header(), ip.payload()).filter(|_| is_first);
            Some(with(ip.src_addr().into(), ip.dst_addr().into(), ip.ecn(), ports))
        }
        6 => {
            let ip = Ipv6Packet::new_checked(packet).ok()?;
            let ports = ports(ip.next_header(), ip.payload());
            Some(with(ip.src_addr().into(), ip.dst_addr().into(), ip.traffic_class(), ports))
        }
        _ => None,
    }
}

/// The first two fields of TCP and UDP.
fn ports(protocol: IpProtocol, payload: &[u8]) -> Option<[u16; 2]> {
    let is_known = matches!(protocol, IpProtocol::Tcp | IpProtocol::Udp);
    let bytes: [u8; 4] = payload.first_chunk().copied().filter(|_| is_known)?;
    Some([u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]])])
}

/// Changes a packet and its checksums. `None` if these were wrong before, or if the versions of IP differ.
fn write(packet: &mut [u8], header: Header) -> Option<()> {
    match (header.source.ip(), header.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut ip = Ipv4Packet::new_checked(packet).ok().filter(|ip| ip.verify_checksum())?;
            let before = [ip.src_addr().into(), ip.dst_addr().into()];
            ip.set_src_addr(source);
            ip.set_dst_addr(destination);
            ip.set_ecn(header.ecn.bits());
            ip.fill_checksum();
            if ip.frag_offset() > 0 || ip.more_frags() {
                return Some(());
            }
            write_ports(ip.next_header(), ip.payload_mut(), before, header)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut ip = Ipv6Packet::new_checked(packet).ok()?;
            let before = [ip.src_addr().into(), ip.dst_addr().into()];
            ip.set_src_addr(source);
            ip.set_dst_addr(destination);
            ip.set_traffic_class(ip.traffic_class() & !3 | header.ecn.bits());
            write_ports(ip.next_header(), ip.payload_mut(), before, header)
        }
        _ => None,
    }
}

fn write_ports(
    protocol: IpProtocol,
    payload: &mut [u8],
    before: [IpAddress; 2],
    header: Header,
) -> Option<()> {
    let source = header.source.ip().into();
    let destination = header.destination.ip().into();
    let [from, to] = before;
    match protocol {
        IpProtocol::Tcp => {
            let tcp = TcpPacket::new_checked(payload).ok();
            let mut tcp = tcp.filter(|tcp| tcp.verify_checksum(&from, &to))?;
            tcp.set_src_port(header.source.port());
            tcp.set_dst_port(header.destination.port());
            tcp.fill_checksum(&source, &destination);
        }
        IpProtocol::Udp => {
            let udp = UdpPacket::new_checked(payload).ok();
            let mut udp = udp.filter(|udp| udp.verify_checksum(&from, &to))?;
            udp.set_src_port(header.source.port());
            udp.set_dst_port(header.destination.port());
            udp.fill_checksum(&source, &destination);
        }
        _ => {}
    }
    Some(())
}
