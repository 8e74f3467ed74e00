//! Joins packets that leave the link together into super-frames if they are consecutive, as a network card's driver
//! does (GRO). One system call then writes many packets; the receiver's stack sees the same bytes and the same marks.

use super::frame::{
    GSO_ECN, GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_UDP, HEADER, NEEDS_CHECKSUM, VnetHeader,
};
use super::ip::{Layout, TCP, UDP, put};
use super::split::sequence;

/// Maximum size of an IP packet in bytes.
const MAX_BYTES: usize = 65_535;
/// Maximum segments of a super-frame (the limit of older kernels for UDP).
const MAX_SEGMENTS: usize = 64;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const URG: u8 = 0x20;
const CWR: u8 = 0x80;

/// Collects packets into a super-frame until it is written.
#[derive(Debug)]
pub struct Joiner {
    frame: Vec<u8>,
    open: Option<Open>,
    /// Whether the kernel accepts super-frames of UDP.
    udp: bool,
}

/// State of the super-frame under construction.
#[derive(Clone, Copy, Debug)]
struct Open {
    layout: Layout,
    header: VnetHeader,
    /// Total length of all headers in bytes.
    headers: usize,
    /// Payload bytes of the first packet.
    size: usize,
    segments: usize,
    /// No packet may be added any more.
    closed: bool,
    next_sequence: u32,
    /// TCP flags of the last packet.
    flags: u8,
}

impl Joiner {
    /// An empty joiner.
    pub fn new(udp: bool) -> Joiner {
        Joiner { frame: Vec::with_capacity(HEADER + MAX_BYTES), open: None, udp }
    }

    /// Adds the next packet, with its header. If it cannot be joined, writes the current super-frame first.
    pub fn push(&mut self, packet: &[u8], write: impl FnMut(&[u8])) {
        if self.joined(packet) {
            return;
        }
        self.flush(write);
        self.frame.clear();
        self.frame.extend_from_slice(packet);
        self.open = self.opened(packet);
    }

    /// Writes the current super-frame, if any.
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

    /// The state of a super-frame that begins with this packet; `None` if no packet can be joined to it.
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

    /// Adds the packet to the frame if it is the next one.
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

    /// Writes the headers of the super-frame.
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

/// Whether two packets differ only in the fields that vary from segment to segment: length, identification, checksums,
/// sequence number, flags.
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
