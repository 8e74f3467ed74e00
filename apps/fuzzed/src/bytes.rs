//! Reads an input in pieces.

/// The rest of the input.
pub struct FuzzInput<'a>(&'a [u8]);

impl<'a> FuzzInput<'a> {
    pub fn new(bytes: &'a [u8]) -> FuzzInput<'a> {
        FuzzInput(bytes)
    }
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
    /// At most `n` bytes.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        front
    }
    /// A number of any size up to 2^62 - 1, near a power of two.
    pub fn lie(&mut self) -> u64 {
        let shift = self.byte().unwrap_or(0);
        let low = self.byte().unwrap_or(0);
        ((1u64 << (shift % 62)) - 1).wrapping_add(u64::from(low)).min((1 << 62) - 1)
    }
}
