//! `packets.pcapng`: the datagrams as a capture would have them. Payloads are what was on the wire,
//! sealed; the IP and UDP headers are made here, with right lengths, checksums and ECN bits, because
//! a socket never sees them.

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, UdpHeader};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Bytes of the file at most.
const BYTES_MOST: u64 = 1 << 30;
/// Peers whose way is remembered at most.
const PEERS_MOST: usize = 4096;
/// What a block adds to its packet at most.
const BLOCK: u64 = 35;
const HOPS: u8 = 64;

/// One datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// As the interfaces were added.
    pub interface: usize,
    /// Nanoseconds since 1970.
    pub at: u64,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub ecn: u8,
    pub payload: &'a [u8],
}

/// The file.
pub struct Packets<W: Write> {
    writer: PcapNgWriter<W>,
    /// Datagrams that are in it.
    pub written: u64,
    /// Datagrams that came when it was full.
    pub beyond: u64,
    bytes: u64,
    most: u64,
    buffer: Vec<u8>,
}

fn io_error(e: PcapError) -> io::Error {
    match e {
        PcapError::IoError(e) => e,
        other => io::Error::other(other.to_string()),
    }
}

impl<W: Write> Packets<W> {
    pub fn new(sink: W) -> io::Result<Packets<W>> {
        let writer = PcapNgWriter::new(sink).map_err(io_error)?;
        let (written, beyond, bytes) = (0, 0, 0);
        Ok(Packets { writer, written, beyond, bytes, most: BYTES_MOST, buffer: Vec::new() })
    }

    /// An endpoint: packets begin with an IP header (LINKTYPE_RAW), times are nanoseconds.
    pub fn interface(&mut self, name: &str) -> io::Result<()> {
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(9),
        ];
        let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
        self.writer.write_pcapng_block(block).map(drop).map_err(io_error)
    }

    /// Adds a datagram, unless the file is full.
    pub fn add(&mut self, d: Datagram<'_>) -> io::Result<()> {
        if self.bytes >= self.most {
            self.beyond += 1;
            return Ok(());
        }
        self.buffer.clear();
        if !headers(&d, &mut self.buffer) {
            return Ok(());
        }
        self.buffer.extend_from_slice(d.payload);
        let block = EnhancedPacketBlock {
            interface_id: d.interface as u32,
            timestamp: Duration::from_nanos(d.at),
            original_len: self.buffer.len() as u32,
            data: Cow::Borrowed(&self.buffer),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map_err(io_error)?;
        self.written += 1;
        self.bytes += self.buffer.len() as u64 + BLOCK;
        Ok(())
    }

    /// What it was written to.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

/// Puts IP and UDP headers into the buffer; false for what no datagram can be.
fn headers(d: &Datagram<'_>, buffer: &mut Vec<u8>) -> bool {
    let (from, to) = (d.from.port(), d.to.port());
    let Ok(length) = u16::try_from(d.payload.len() + UdpHeader::LEN) else { return false };
    match (d.from.ip(), d.to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let made =
                Ipv4Header::new(length, HOPS, IpNumber::UDP, source.octets(), target.octets());
            let Ok(mut ip) = made else { return false };
            ip.ecn = IpEcn::try_new(d.ecn & 3).unwrap_or_default();
            ip.dont_fragment = true;
            ip.header_checksum = ip.calc_header_checksum();
            let Ok(udp) = UdpHeader::with_ipv4_checksum(from, to, &ip, d.payload) else {
                return false;
            };
            buffer.extend_from_slice(&ip.to_bytes());
            buffer.extend_from_slice(&udp.to_bytes());
        }
        (source, target) => {
            let ip = Ipv6Header {
                traffic_class: d.ecn & 3,
                flow_label: Ipv6FlowLabel::default(),
                payload_length: length,
                next_header: IpNumber::UDP,
                hop_limit: HOPS,
                source: six(source).octets(),
                destination: six(target).octets(),
            };
            let Ok(udp) = UdpHeader::with_ipv6_checksum(from, to, &ip, d.payload) else {
                return false;
            };
            buffer.extend_from_slice(&ip.to_bytes());
            buffer.extend_from_slice(&udp.to_bytes());
        }
    }
    true
}

fn six(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(six) => six,
        IpAddr::V4(four) => four.to_ipv6_mapped(),
    }
}

/// From which of its addresses an endpoint bound to all of them reaches each peer.
#[derive(Debug, Default)]
pub struct Ways(BTreeMap<SocketAddr, IpAddr>);

impl Ways {
    /// The endpoint's own address towards `peer`.
    pub fn local(&mut self, bound: SocketAddr, peer: SocketAddr) -> SocketAddr {
        if !bound.ip().is_unspecified() {
            return bound;
        }
        let found = match self.0.get(&peer) {
            Some(found) => *found,
            None => {
                let found = ask(peer).unwrap_or(match peer {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                });
                if self.0.len() < PEERS_MOST {
                    self.0.insert(peer, found);
                }
                found
            }
        };
        SocketAddr::new(found, bound.port())
    }
}

/// The system's routing table knows: a socket that is connected has an address, and nothing is sent.
fn ask(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    socket.local_addr().ok().map(|a| a.ip())
}

#[cfg(test)]
#[path = "packets_tests.rs"]
mod tests;
