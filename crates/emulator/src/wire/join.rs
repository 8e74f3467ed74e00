//! Packets that leave the link together, joined to super-frames where they follow each other: what a network
//! card's driver does (GRO). A system call for many packets instead of one each; the receiver's
//! stack sees the same bytes, and the same marks.

use super::frame::{
    GSO_ECN, GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_UDP, HEADER, NEEDS_CHECKSUM, VnetHeader,
};
use super::ip::{Layout, TCP, UDP, put};
use super::split::sequence;

/// Bytes of an IP packet at most.
const MAX_BYTES: usize = 65_535;
/// Segments of a super-frame at most (what older kernels take for UDP).
const MAX_SEGMENTS: usize = 64;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const URG: u8 = 0x20;
const CWR: u8 = 0x80;

/// Packets that wait to be written.
#[derive(Debug)]
pub struct Joiner {
    frame: Vec<u8>,
    open: Option<Open>,
    /// Whether the kernel takes super-frames of UDP.
    udp: bool,
}

/// What is known of the frame that grows.
#[derive(Clone, Copy, Debug)]
struct Open {
    layout: Layout,
    header: VnetHeader,
    /// All headers' bytes.
    headers: usize,
    /// Payload of the first packet.
    size: usize,
    segments: usize,
    /// Nothing may follow.
    closed: bool,
    next_sequence: u32,
    /// TCP flags of the last.
    flags: u8,
}

impl Joiner {
    /// Without any.
    pub fn new(udp: bool) -> Joiner {
        Joiner { frame: Vec::with_capacity(HEADER + MAX_BYTES), open: None, udp }
    }

    /// The next packet, with its header. Writes what it cannot be joined to.
    pub fn push(&mut self, packet: &[u8], write: impl FnMut(&[u8])) {
        if self.joined(packet) {
            return;
        }
        self.flush(write);
        self.frame.clear();
        self.frame.extend_from_slice(packet);
        self.open = self.opened(packet);
    }

    /// Writes what waits.
    pub fn flush(&mut self, mut write: impl FnMut(&[u8])) {
        if self.frame.is_empty() {
            return;
        }
        if let Some(open) = self.open.take().filter(|o| o.segments > 1) {
            self.finish(&open);
        }
        write(&self.frame);
        self.frame.clear();
    }

    /// Whether something could follow this packet, and what.
    fn opened(&self, frame: &[u8]) -> Option<Open> {
        let (header, packet) = VnetHeader::read(frame)?;
        let layout = Layout::of(packet)?;
        let headers = layout.transport + layout.transport_header(packet);
        let size = packet.len().checked_sub(headers).filter(|size| *size > 0)?;
        let usual = header.flags == NEEDS_CHECKSUM
            && header.gso_type == GSO_NONE
            && usize::from(header.checksum_start) == layout.transport;
        let (flags, next_sequence) = match layout.protocol {
            TCP => {
                let next = sequence(packet, layout.transport).wrapping_add(size as u32);
                (packet.get(layout.transport + 13).copied()?, next)
            }
            UDP if self.udp => (0, 0),
            _ => return None,
        };
        let closed = flags & (FIN | SYN | RST | PSH | URG) != 0;
        let open =
            Open { layout, header, headers, size, segments: 1, closed, next_sequence, flags };
        (usual && !closed).then_some(open)
    }

    /// Adds the packet to the frame if it follows.
    fn joined(&mut self, frame: &[u8]) -> bool {
        let Some(open) = &self.open else { return false };
        if open.closed || open.segments >= MAX_SEGMENTS {
            return false;
        }
        let Some((header, packet)) = VnetHeader::read(frame) else { return false };
        let Some(size) = packet.len().checked_sub(open.headers) else { return false };
        let first = self.frame.get(HEADER..).unwrap_or_default();
        let fits = size > 0 && size <= open.size && first.len() + size <= MAX_BYTES;
        if !fits || header != open.header || !same_headers(open, first, packet) {
            return false;
        }
        let mut open = *open;
        if open.layout.protocol == TCP {
            let flags = packet.get(open.layout.transport + 13).copied().unwrap_or(0);
            if sequence(packet, open.layout.transport) != open.next_sequence
                || flags & (SYN | RST | URG | CWR) != 0
                || (flags ^ open.flags) & !(FIN | PSH | CWR) != 0
            {
                return false;
            }
            open.flags = flags;
            open.closed = flags & (FIN | PSH) != 0;
        }
        open.closed |= size < open.size;
        open.segments += 1;
        open.next_sequence = open.next_sequence.wrapping_add(size as u32);
        self.frame.extend_from_slice(packet.get(open.headers..).unwrap_or_default());
        self.open = Some(open);
        true
    }

    /// The headers of a super-frame.
    fn finish(&mut self, open: &Open) {
        let Open { layout, .. } = *open;
        let kind = match (layout.protocol, layout.six) {
            (UDP, _) => GSO_UDP,
            (_, false) => GSO_TCP4,
            (_, true) => GSO_TCP6,
        };
        let Some(packet) = self.frame.get_mut(HEADER..) else { return };
        let mut ecn = 0;
        if layout.protocol == TCP {
            if let Some(flags) = packet.get_mut(layout.transport + 13) {
                ecn = if *flags & CWR != 0 { GSO_ECN } else { 0 };
                *flags |= open.flags & (FIN | PSH);
            }
        } else {
            let length = packet.len() - layout.transport;
            put(packet, layout.transport + 4, length as u16);
        }
        layout.set_length(packet);
        let pseudo = layout.pseudo_header(packet, packet.len() - layout.transport);
        put(packet, layout.transport + usize::from(open.header.checksum_offset), pseudo);
        let header = VnetHeader {
            gso_type: kind | ecn,
            gso_size: open.size as u16,
            header_length: open.headers as u16,
            ..open.header
        };
        if let Some(place) = self.frame.get_mut(..HEADER) {
            place.copy_from_slice(&header.bytes());
        }
    }
}

/// Whether two packets differ only in what differs from segment to segment: length, identification,
/// checksums, sequence number, flags.
fn same_headers(open: &Open, a: &[u8], b: &[u8]) -> bool {
    let t = open.layout.transport;
    let same = |range: std::ops::Range<usize>| a.get(range.clone()) == b.get(range);
    let ip = if open.layout.six {
        same(0..4) && same(6..t)
    } else {
        same(0..2) && same(6..10) && same(12..t)
    };
    ip && match open.layout.protocol {
        // Ports; acknowledgement and data offset; window; urgent pointer and options.
        TCP => {
            same(t..t + 4)
                && same(t + 8..t + 13)
                && same(t + 14..t + 16)
                && same(t + 18..open.headers)
        }
        _ => same(t..t + 4),
    }
}
