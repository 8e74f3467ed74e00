//! Splits super-frames into the packets that would be on a wire.

use super::frame::{GSO_NONE, GSO_UDP, HEADER, VnetHeader};
use super::ip::{Layout, TCP, UDP, number, put};

/// TCP flags that only the last segment has: FIN, PSH.
const LAST: u8 = 0x09;
/// TCP flag that only the first segment has: CWR.
const CWR: u8 = 0x80;

/// Calls `each` with the packets of a frame, in order, each with a header of its own; `room` is a buffer for reuse.
/// Returns false if the frame is invalid.
pub fn split(frame: &[u8], room: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> bool {
    let Some((header, packet)) = VnetHeader::read(frame) else { return false };
    if header.gso_type == GSO_NONE {
        each(frame);
        return true;
    }
    let Some(layout) = Layout::of(packet) else { return false };
    // After IPv6 extension headers, use the kernel's offset of the transport header.
    let transport = usize::from(header.checksum_start).max(layout.transport);
    let protocol = if header.gso_type == GSO_UDP { UDP } else { TCP };
    let layout = Layout { transport, protocol, ..layout };
    let all = transport + layout.transport_header(packet);
    let size = usize::from(header.gso_size);
    let (Some(headers), Some(payload)) = (packet.get(..all), packet.get(all..)) else {
        return false;
    };
    if size == 0 || payload.is_empty() {
        return false;
    }
    let single = VnetHeader { gso_type: GSO_NONE, gso_size: 0, header_length: 0, ..header };
    let first_sequence = sequence(packet, transport);
    let count = payload.len().div_ceil(size);
    for (n, segment) in payload.chunks(size).enumerate() {
        room.clear();
        room.extend_from_slice(&single.bytes());
        room.extend_from_slice(headers);
        room.extend_from_slice(segment);
        let Some(out) = room.get_mut(HEADER..) else { return false };
        if !layout.six {
            let identification = number(out, 4).wrapping_add(n as u16);
            put(out, 4, identification);
        }
        if protocol == TCP {
            let own = first_sequence.wrapping_add((n * size) as u32);
            set_sequence(out, transport, own);
            if let Some(flags) = out.get_mut(transport + 13) {
                *flags &= if n + 1 == count { 0xff } else { !LAST };
                *flags &= if n == 0 { 0xff } else { !CWR };
            }
        } else {
            put(out, transport + 4, (segment.len() + 8) as u16);
        }
        layout.set_length(out);
        let pseudo = layout.pseudo_header(out, out.len() - transport);
        put(out, transport + usize::from(header.checksum_offset), pseudo);
        each(room);
    }
    true
}

/// The sequence number of a TCP segment.
pub fn sequence(packet: &[u8], transport: usize) -> u32 {
    u32::from(number(packet, transport + 4)) << 16 | u32::from(number(packet, transport + 6))
}

fn set_sequence(packet: &mut [u8], transport: usize, value: u32) {
    put(packet, transport + 4, (value >> 16) as u16);
    put(packet, transport + 6, value as u16);
}
