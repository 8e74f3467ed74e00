//! Frames of a TUN device: a header with the offloads that the kernel left undone, and an IP packet or a super-frame of
//! many packets.

/// Bytes of the header (`struct virtio_net_hdr`) before the packet.
pub const HEADER: usize = 10;

/// The checksum is incomplete: its field holds the sum over the pseudo header.
pub const NEEDS_CHECKSUM: u8 = 1;
/// Kinds of super-frames.
pub const GSO_NONE: u8 = 0;
/// TCP over IPv4.
pub const GSO_TCP4: u8 = 1;
/// TCP over IPv6.
pub const GSO_TCP6: u8 = 4;
/// UDP datagrams of equal size.
pub const GSO_UDP: u8 = 5;
/// Flag added to a TCP kind: CWR belongs to the first segment only.
pub const GSO_ECN: u8 = 0x80;

/// The header, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VnetHeader {
    /// [`NEEDS_CHECKSUM`].
    pub flags: u8,
    /// [`GSO_NONE`] or another kind, perhaps with [`GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of all headers of a super-frame.
    pub header_length: u16,
    /// Payload bytes of each segment; the last may have fewer.
    pub gso_size: u16,
    /// Offset in the packet at which the checksummed bytes begin.
    pub checksum_start: u16,
    /// Offset of the checksum field, relative to `checksum_start`.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// Splits a frame into header and packet.
    pub fn read(frame: &[u8]) -> Option<(VnetHeader, &[u8])> {
        let (header, packet) = frame.split_first_chunk::<HEADER>()?;
        let [flags, gso_type, a, b, c, d, e, f, g, h] = *header;
        let header = VnetHeader {
            flags,
            gso_type,
            header_length: u16::from_ne_bytes([a, b]),
            gso_size: u16::from_ne_bytes([c, d]),
            checksum_start: u16::from_ne_bytes([e, f]),
            checksum_offset: u16::from_ne_bytes([g, h]),
        };
        Some((header, packet))
    }

    /// Encodes the header in the machine's byte order.
    pub fn bytes(self) -> [u8; HEADER] {
        let [a, b] = self.header_length.to_ne_bytes();
        let [c, d] = self.gso_size.to_ne_bytes();
        let [e, f] = self.checksum_start.to_ne_bytes();
        let [g, h] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.gso_type, a, b, c, d, e, f, g, h]
    }

    /// Whether the kernel left the checksum to the receiver of the frame.
    pub fn needs_checksum(self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }
}
