//! Reading and writing bytes without panics: variable-length integers as in RFC 9000
//! section 16, big-endian numbers, slices.

use std::fmt;

/// Largest value of a variable-length integer: 2^62 - 1.
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// Bytes from a peer that violate the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Malformed {
    /// The fault, in a few words.
    pub what: &'static str,
}

impl Malformed {
    pub(crate) const fn new(what: &'static str) -> Malformed {
        Malformed { what }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed packet: {}", self.what)
    }
}

impl std::error::Error for Malformed {}

/// The buffer is full. No part of the refused item was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferFull;

impl fmt::Display for BufferFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no space left in the packet")
    }
}

impl std::error::Error for BufferFull {}

/// Bytes that [`Sink::varint`] writes for this value: 1, 2, 4 or 8.
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Reads bytes from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a>(&'a [u8]);

const SHORT: Malformed = Malformed::new("it ends too early");

impl<'a> ByteReader<'a> {
    /// Reads from these bytes.
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader(bytes)
    }
    /// The bytes that have not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The next `n` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left; then no byte is consumed. The same holds for the methods below.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(n).ok_or(SHORT)?;
        self.0 = rest;
        Ok(front)
    }
    /// Bytes preceded by their count as a variable-length integer.
    pub fn take_counted(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| SHORT)?)
    }
    /// The next `N` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*front)
    }
    /// One byte.
    ///
    /// # Errors
    /// No byte is left.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[b]| b)
    }
    /// Four bytes, the highest first.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }
    /// A number of `n` bytes (at most 8), the highest first.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn number(&mut self, n: usize) -> Result<u64, Malformed> {
        Ok(self.take(n)?.iter().fold(0, |x, b| (x << 8) | u64::from(*b)))
    }
    /// A variable-length integer, at most [`MAX_VARINT`]. Encodings longer than necessary are
    /// accepted.
    ///
    /// # Errors
    /// The integer is truncated.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let first = *self.0.first().ok_or(SHORT)?;
        let length = 1usize << (first >> 6);
        let number = self.number(length)?;
        Ok(number & (u64::MAX >> (66 - 8 * length)))
    }
}

/// Appends to a caller's buffer.
#[derive(Debug)]
pub struct Sink<'b> {
    buffer: &'b mut [u8],
    used: usize,
}

impl<'b> Sink<'b> {
    /// Writes to this buffer, from its beginning.
    pub fn new(buffer: &'b mut [u8]) -> Sink<'b> {
        Sink { buffer, used: 0 }
    }
    /// Bytes written.
    pub fn used(&self) -> usize {
        self.used
    }
    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.buffer.len() - self.used
    }
    /// The written bytes.
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.used).unwrap_or_default()
    }
    /// Truncates to the length `used`.
    pub(crate) fn back_to(&mut self, used: usize) {
        self.used = self.used.min(used);
    }
    /// Appends these bytes.
    ///
    /// # Errors
    /// They do not fit; then no byte is written. The same holds for the methods below.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        let end = self.used.checked_add(bytes.len()).ok_or(BufferFull)?;
        self.buffer.get_mut(self.used..end).ok_or(BufferFull)?.copy_from_slice(bytes);
        self.used = end;
        Ok(())
    }
    /// Appends one byte.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn byte(&mut self, byte: u8) -> Result<(), BufferFull> {
        self.put(&[byte])
    }
    /// Appends a number in `n` bytes (at most 8), the highest first; higher bytes are discarded.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn number(&mut self, value: u64, n: usize) -> Result<(), BufferFull> {
        self.put(value.to_be_bytes().get(8 - n.min(8)..).unwrap_or_default())
    }
    /// Appends a variable-length integer in its shortest form.
    ///
    /// # Errors
    /// If it does not fit, or is above [`MAX_VARINT`].
    pub fn varint(&mut self, value: u64) -> Result<(), BufferFull> {
        if value > MAX_VARINT {
            return Err(BufferFull);
        }
        let length = varint_len(value);
        let code = length.trailing_zeros() as u64;
        self.number(value | code << (8 * length - 2), length)
    }
    /// Appends a count and that many bytes.
    ///
    /// # Errors
    /// They do not fit; the count may have been written.
    pub fn put_counted(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        self.varint(bytes.len() as u64)?;
        self.put(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn the_rfcs_examples() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(ByteReader::new(bytes).varint(), Ok(value));
        }
        let mut buffer = [0; 8];
        assert_eq!(Sink::new(&mut buffer).varint(MAX_VARINT + 1), Err(BufferFull));
    }

    proptest! {
        #[test]
        fn written_bytes_are_read_back(value in 0..=MAX_VARINT, shift in 0u32..62, room in 0usize..9) {
            let value = value >> shift;
            let mut buffer = [0; 8];
            let mut sink = Sink::new(&mut buffer[..room.min(8)]);
            let length = varint_len(value);
            prop_assert_eq!(sink.varint(value).is_ok(), length <= room);
            prop_assert_eq!(sink.used(), if length <= room { length } else { 0 });
            if length <= room {
                let mut source = ByteReader::new(&buffer[..length]);
                prop_assert_eq!(source.varint(), Ok(value));
                prop_assert!(source.is_empty());
                prop_assert!(ByteReader::new(&buffer[..length - 1]).varint().is_err());
            }
        }
    }
}
