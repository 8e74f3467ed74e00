//! The three kinds of blocks that a capture file needs (draft-ietf-opsawg-pcapng), in the order of bytes of
//! little-endian machines.

/// Packets begin with an IP header.
pub const LINKTYPE_RAW: u16 = 101;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const NANOSECONDS: u8 = 9;

/// Builds one block after the other in the same memory.
#[derive(Debug, Default)]
pub struct BlockWriter(Vec<u8>);

impl BlockWriter {
    /// The section header. The section's length is left unspecified.
    pub fn section(&mut self) -> &[u8] {
        self.begin(SECTION_HEADER);
        self.0.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        let major = 1u16;
        let minor = 0u16;
        self.0.extend(major.to_le_bytes());
        self.0.extend(minor.to_le_bytes());
        self.0.extend(u64::MAX.to_le_bytes());
        self.end()
    }

    /// The file's interface, with times in nanoseconds.
    pub fn interface(&mut self, link_type: u16, name: &str) -> &[u8] {
        self.begin(INTERFACE_DESCRIPTION);
        self.0.extend(link_type.to_le_bytes());
        // Reserved, and no limit to a packet's bytes.
        self.0.extend([0; 6]);
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        // The end of options.
        self.0.extend([0; 4]);
        self.end()
    }

    /// A whole packet; `at` is in nanoseconds since 1970.
    pub fn packet(&mut self, at: u64, bytes: &[u8]) -> &[u8] {
        self.begin(ENHANCED_PACKET);
        let length = bytes.len() as u32;
        let only_interface = 0;
        for word in [only_interface, (at >> 32) as u32, at as u32, length, length] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend_from_slice(bytes);
        self.pad();
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.0.clear();
        self.0.extend(kind.to_le_bytes());
        // The length, to be set by `end`.
        self.0.extend([0; 4]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.0.extend(code.to_le_bytes());
        self.0.extend((value.len() as u16).to_le_bytes());
        self.0.extend_from_slice(value);
        self.pad();
    }

    /// Everything begins at a multiple of four bytes.
    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> &[u8] {
        let length = (self.0.len() as u32 + 4).to_le_bytes();
        self.0.extend(length);
        if let Some(field) = self.0.get_mut(4..8) {
            field.copy_from_slice(&length);
        }
        &self.0
    }
}
