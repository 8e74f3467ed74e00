//! Bytes of the service's messages: numbers in network byte order, texts preceded by their length. Reading never panics
//! and allocates no more than the message holds.

use narrows_peers::error::Error;

/// Reads the fields of a message, front to back.
pub struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    /// Starts at the message's first byte.
    pub fn new(bytes: &'b [u8]) -> Fields<'b> {
        Fields { rest: bytes }
    }
    fn take(&mut self, n: usize) -> Result<&'b [u8], Error> {
        let (field, rest) =
            self.rest.split_at_checked(n).ok_or_else(|| Error::protocol("a message too short"))?;
        self.rest = rest;
        Ok(field)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::protocol("a message too short"))
    }
    /// Reads one byte.
    ///
    /// # Errors
    /// The message is too short.
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(u8::from_be_bytes(self.array()?))
    }
    /// Reads two bytes.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_be_bytes(self.array()?))
    }
    /// Reads eight bytes.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_be_bytes(self.array()?))
    }
    /// Reads eight bytes with a sign.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn i64(&mut self) -> Result<i64, Error> {
        Ok(i64::from_be_bytes(self.array()?))
    }
    /// Reads a hash of 32 bytes.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn hash(&mut self) -> Result<[u8; 32], Error> {
        self.array()
    }
    /// Reads a text with its length.
    ///
    /// # Errors
    /// As [`Fields::u8`]; also if it is not UTF-8.
    pub fn text(&mut self) -> Result<&'b str, Error> {
        let n = usize::from(self.u16()?);
        std::str::from_utf8(self.take(n)?).map_err(|_| Error::protocol("a text is not UTF-8"))
    }
    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
    /// Checks that no bytes follow the last field.
    ///
    /// # Errors
    /// There are further bytes.
    pub fn end(&self) -> Result<(), Error> {
        if self.is_empty() { Ok(()) } else { Err(Error::protocol("a message too long")) }
    }
}

/// Appends a text with its length; truncated after 65535 bytes, which no caller exceeds.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut n = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(n) {
        n -= 1;
    }
    out.extend((n as u16).to_be_bytes());
    out.extend(text.as_bytes().iter().take(n));
}
