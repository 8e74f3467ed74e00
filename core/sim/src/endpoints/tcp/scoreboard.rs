//! The scoreboard: all segments that were sent and are not cumulatively acknowledged.

use narrows_base::Time;

/// The sender's record of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentSegment {
    /// When its last copy was sent.
    pub sent: Time,
    /// State of the rate sampler at that moment: segments delivered, when the last of them was, and when the first
    /// packet of the sample was sent.
    pub delivered: u64,
    pub delivered_time: Time,
    pub first_sent: Time,
    /// Application bytes.
    pub bytes: u16,
    /// Number of times it was sent.
    pub transmissions: u16,
    /// Copies that count as outstanding (RFC 6675 pipe).
    pub copies: u8,
    pub sacked: bool,
    pub lost: bool,
    pub app_limited: bool,
}

/// Segments `una..max` in a ring with a power of two as size.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    ring: Box<[SentSegment]>,
    /// Oldest segment not cumulatively acknowledged.
    pub una: u64,
    /// The highest segment ever sent, plus one.
    pub max: u64,
}

impl Scoreboard {
    pub fn new() -> Scoreboard {
        Scoreboard { ring: Box::default(), una: 0, max: 0 }
    }
    #[inline]
    fn slot(&self, seq: u64) -> usize {
        (seq as usize) & (self.ring.len() - 1)
    }
    /// A segment in `una..max`.
    #[inline]
    pub fn get(&self, seq: u64) -> &SentSegment {
        debug_assert!((self.una..self.max).contains(&seq));
        &self.ring[self.slot(seq)]
    }
    #[inline]
    pub fn get_mut(&mut self, seq: u64) -> &mut SentSegment {
        debug_assert!((self.una..self.max).contains(&seq));
        let slot = self.slot(seq);
        &mut self.ring[slot]
    }
    /// Appends segment `max`.
    #[inline]
    pub fn push(&mut self, segment: SentSegment) {
        if (self.max - self.una) as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot(self.max);
        self.ring[slot] = segment;
        self.max += 1;
    }
    /// Reads all records; see [`TcpSender::fetch`](super::TcpSender::fetch).
    pub fn fetch(&self) -> u64 {
        self.ring.iter().fold(0, |sum, segment| sum ^ segment.sent.as_nanos())
    }
    #[cold]
    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(8);
        let mut bigger = vec![SentSegment::default(); size].into_boxed_slice();
        for seq in self.una..self.max {
            bigger[(seq as usize) & (size - 1)] = self.ring[self.slot(seq)];
        }
        self.ring = bigger;
    }
}
