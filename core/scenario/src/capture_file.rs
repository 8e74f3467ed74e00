//! The datagrams of one end as in a packet capture (pcapng). One interface per file, since libpcap reads no file
//! with two of `LINKTYPE_RAW`, and since a packet that passes two ends is no repeat. Payloads are as on the wire, sealed; the IP and UDP headers
//! are reconstructed with correct lengths, checksums and ECN bits, because a socket does not see them.

use crate::pcapng::{self, BlockWriter};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes of the file at most.
const MAX_BYTES: u64 = 1 << 30;
const HOPS: u8 = 64;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;

/// One datagram of UDP.
#[derive(Clone, Copy, Debug)]
pub struct CapturedDatagram<'a> {
    /// Nanoseconds since 1970.
    pub at: u64,
    /// Source.
    pub from: SocketAddr,
    /// Destination.
    pub to: SocketAddr,
    /// The two bits of the ECN field.
    pub ecn: u8,
    /// Contents.
    pub payload: &'a [u8],
}

/// Writes datagrams as pcapng, up to 1 GiB.
#[derive(Debug)]
pub struct CaptureFile<W: Write> {
    sink: W,
    /// Datagrams that are in it.
    pub written: u64,
    /// Datagrams that were left out because the file was full.
    pub beyond: u64,
    bytes: u64,
    max: u64,
    packet: Vec<u8>,
    block: BlockWriter,
}

impl<W: Write> CaptureFile<W> {
    /// Of the end of that name: packets begin with an IP header, times are nanoseconds.
    ///
    /// # Errors
    /// Those of the sink, as of the other methods.
    pub fn new(mut sink: W, name: &str) -> io::Result<CaptureFile<W>> {
        let mut block = BlockWriter::default();
        sink.write_all(block.section())?;
        sink.write_all(block.interface(pcapng::LINKTYPE_RAW, name))?;
        let written = 0;
        let beyond = 0;
        let bytes = 0;
        Ok(CaptureFile { sink, written, beyond, bytes, max: MAX_BYTES, packet: Vec::new(), block })
    }

    /// Adds a datagram, unless the file is full or the datagram longer than UDP allows.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn add(&mut self, d: CapturedDatagram<'_>) -> io::Result<()> {
        let mut packet = std::mem::take(&mut self.packet);
        packet.clear();
        let done = if headers(&d, &mut packet) {
            packet.extend_from_slice(d.payload);
            self.add_packet(d.at, &packet)
        } else {
            Ok(())
        };
        self.packet = packet;
        done
    }

    /// Adds a packet that has its headers, unless the file is full; `at` is in nanoseconds since 1970.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn add_packet(&mut self, at: u64, packet: &[u8]) -> io::Result<()> {
        if self.bytes >= self.max {
            self.beyond += 1;
            return Ok(());
        }
        let block = self.block.packet(at, packet);
        self.sink.write_all(block)?;
        self.written += 1;
        self.bytes += block.len() as u64;
        Ok(())
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// The underlying writer.
    pub fn into_inner(self) -> W {
        self.sink
    }
}

/// Puts IP and UDP headers (RFC 791, 8200, 768) into the buffer; false if the payload is too long for a datagram.
fn headers(d: &CapturedDatagram<'_>, buffer: &mut Vec<u8>) -> bool {
    let Ok(length) = u16::try_from(d.payload.len() + UDP_HEADER) else { return false };
    // Of both versions of IP: addresses, protocol and length go into UDP's checksum.
    let mut pseudo = Sum::default();
    pseudo.word(length);
    pseudo.word(u16::from(UDP));
    match (d.from.ip(), d.to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let Some(total) = length.checked_add(IPV4_HEADER as u16) else { return false };
            buffer.extend([0x45, d.ecn & 3]);
            buffer.extend(total.to_be_bytes());
            // Identification 0, and "don't fragment".
            buffer.extend([0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
            buffer.extend(source.octets());
            buffer.extend(target.octets());
            let mut header = Sum::default();
            header.bytes(buffer);
            if let Some(field) = buffer.get_mut(10..12) {
                field.copy_from_slice(&header.checksum().to_be_bytes());
            }
            pseudo.bytes(&source.octets());
            pseudo.bytes(&target.octets());
        }
        (source, target) => {
            let source = six(source).octets();
            let target = six(target).octets();
            buffer.extend([0x60, (d.ecn & 3) << 4, 0, 0]);
            buffer.extend(length.to_be_bytes());
            buffer.extend([UDP, HOPS]);
            buffer.extend(source);
            buffer.extend(target);
            pseudo.bytes(&source);
            pseudo.bytes(&target);
        }
    }
    let ports = [d.from.port(), d.to.port()];
    pseudo.word(length);
    ports.into_iter().for_each(|p| pseudo.word(p));
    pseudo.bytes(d.payload);
    // Zero would mean "no checksum".
    let checksum = match pseudo.checksum() {
        0 => u16::MAX,
        sum => sum,
    };
    for word in [ports[0], ports[1], length, checksum] {
        buffer.extend(word.to_be_bytes());
    }
    true
}

/// The Internet checksum (RFC 1071).
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn word(&mut self, word: u16) {
        self.0 += u64::from(word);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (pairs, last) = bytes.as_chunks::<2>();
        pairs.iter().for_each(|pair| self.word(u16::from_be_bytes(*pair)));
        last.iter().for_each(|byte| self.word(u16::from(*byte) << 8));
    }

    fn checksum(&self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

fn six(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(six) => six,
        IpAddr::V4(four) => four.to_ipv6_mapped(),
    }
}

#[cfg(test)]
#[path = "capture_file_tests.rs"]
mod tests;
