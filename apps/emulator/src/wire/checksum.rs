//! Completes checksums that the kernel left to the network card, for readers other than a kernel.

use super::frame::{HEADER, NEEDS_CHECKSUM, VnetHeader};
use super::ip::{fold, put, sum};

/// Completes the checksum of a packet, in place.
pub fn complete(frame: &mut [u8]) {
    let Some((header, packet)) = VnetHeader::read(frame) else { return };
    if !header.needs_checksum() {
        return;
    }
    let start = usize::from(header.checksum_start);
    // The field holds the sum over the pseudo header, so the sum over all bytes is the complete one.
    let checksum = match !fold(sum(packet.get(start..).unwrap_or_default())) {
        0 => u16::MAX,
        checksum => checksum,
    };
    let at = HEADER + start + usize::from(header.checksum_offset);
    put(frame, at, checksum);
    if let Some(flags) = frame.first_mut() {
        *flags &= !NEEDS_CHECKSUM;
    }
}
