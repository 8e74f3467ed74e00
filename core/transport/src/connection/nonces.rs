//! Proof of receipt: a receiver cannot acknowledge packets that it did not receive.
//!
//! Each packet has a nonce that only its receiver can compute. A report contains the sum of the nonces of all packets
//! that it acknowledges (Savage et al. 1999; the nonce sum of RFC 3540). So a receiver cannot conceal a loss, not even
//! of one packet between two that arrived.
//!
//! The nonce costs no bytes on the wire: it is one byte of the tag
//! ([`receipt_nonce`](narrows_wire::seal::receipt_nonce)). A receiver that guesses a packet's content could compute its
//! tag with the keys. Therefore five bits of the header are random. The sum is an XOR.
//!
//! A report covers no number below the least unacked number in the newest packet that its sender had received. This
//! bounds the memory for the nonces of sent packets.

use narrows_recovery::packet_receiver::ReceivedNumbers;
use narrows_recovery::packet_sender::MAX_SENT_PACKETS;
use narrows_recovery::ranges::Ranges;
use narrows_wire::prf::Prf;
use std::collections::VecDeque;

/// Upper limit on the numbers kept for untracked (ACK-only) packets.
const MAX_MUTE: u64 = 1024;
/// Upper limit on the numbers for which a sender keeps nonces. At most [`MAX_SENT_PACKETS`] and one have an unknown
/// outcome, and a report of one of these reaches as far below it.
const MAX_SENT: usize = 2 * (MAX_SENT_PACKETS + 2);
/// Upper limit on the packets for which a receiver keeps nonces: more than a sender of this implementation leaves open.
const MAX_RECEIVED: usize = MAX_SENT_PACKETS + 2;
/// Capacity above this many bytes is released if less than an eighth of it is used.
const MIN_CAPACITY: usize = 256;

fn give_back(bytes: &mut VecDeque<u8>) {
    if bytes.capacity() > MIN_CAPACITY && bytes.len() < bytes.capacity() / 8 {
        bytes.shrink_to((2 * bytes.len()).max(MIN_CAPACITY));
    }
}

/// Outcome of the check of a report's nonce sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Proof {
    /// The sum is right: the report's sender received the packets, or guessed.
    Right,
    Wrong,
    /// The report covers numbers with dropped nonces. A relevant report of a conforming receiver never does.
    Forgotten,
}

/// Nonces of the packets that this end sent.
pub(super) struct SentNonces {
    /// Random header bits, drawn in advance.
    draws: Prf,
    drawn: [u8; 32],
    left: usize,
    /// `sums[i]` is the sum of the nonces of all numbers below `start + i`. Skipped numbers have no nonce.
    start: u64,
    sums: VecDeque<u8>,
    /// A report of a packet numbered at least `.0` covers no number below `.1`.
    checkpoint: (u64, u64),
}

impl SentNonces {
    /// `secret` is unknown to the peer; the random bits are derived from it.
    pub fn new(secret: &[u8; 32]) -> SentNonces {
        SentNonces {
            draws: Prf::new(secret, "rrtp header bits"),
            drawn: [0; 32],
            left: 0,
            start: 0,
            sums: VecDeque::from([0]),
            checkpoint: (0, 0),
        }
    }

    /// Random bits for the next packet's header.
    #[inline]
    pub fn header_bits(&mut self) -> u8 {
        if self.left == 0 {
            self.drawn = self.draws.block();
            self.left = self.drawn.len();
        }
        self.left -= 1;
        self.drawn.get(self.left).copied().unwrap_or_default()
    }

    /// Records the nonce of a sealed packet. Numbers ascend.
    #[inline]
    pub fn on_sealed(&mut self, number: u64, nonce: u8) {
        let sum = self.sums.back().copied().unwrap_or_default();
        for _ in self.end()..number {
            self.sums.push_back(sum);
        }
        self.sums.push_back(sum ^ nonce);
    }
    /// One above the highest sealed number.
    fn end(&self) -> u64 {
        self.start + self.sums.len() as u64 - 1
    }

    /// Drops nonces that no relevant report can cover. A report is relevant if it names a packet from `concern` on.
    /// Every packet from `next` on carries a least unacked number of at least `least_unacked`.
    #[inline]
    pub fn forget(&mut self, concern: u64, next: u64, least_unacked: u64) {
        let concern = least_unacked.min(concern.max(least_unacked.saturating_sub(MAX_MUTE)));
        if concern > self.checkpoint.0 {
            self.forget_below(self.checkpoint.1);
            self.checkpoint = (next, least_unacked);
        } else if self.sums.len() > MAX_SENT {
            self.forget_below(self.end() + 1 - MAX_SENT as u64);
        }
    }
    fn forget_below(&mut self, number: u64) {
        let count = number.min(self.end()).saturating_sub(self.start);
        self.start += count;
        self.sums.drain(..count as usize);
        give_back(&mut self.sums);
    }

    /// Compares `sum` with the nonce sum of the packets in these ranges `[from, to)`.
    #[inline]
    pub fn check(&self, ranges: impl Iterator<Item = (u64, u64)>, sum: u8) -> Proof {
        let below = |number: u64| {
            let place = number.checked_sub(self.start)?;
            self.sums.get(usize::try_from(place).ok()?).copied()
        };
        let mut expected = 0;
        for (from, to) in ranges {
            let (Some(from), Some(to)) = (below(from), below(to)) else { return Proof::Forgotten };
            expected ^= from ^ to;
        }
        if expected == sum { Proof::Right } else { Proof::Wrong }
    }

    /// Releases unused capacity.
    pub fn release_memory(&mut self) {
        self.sums.shrink_to_fit();
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.sums.capacity()
    }
}

/// The received packet numbers and their nonces.
#[derive(Debug, Default)]
pub(super) struct ReceivedNonces {
    seen: Ranges,
    /// Nonces of the packets in `seen`, in ascending order of numbers.
    nonces: VecDeque<u8>,
    /// XOR of all `nonces`.
    sum: u8,
}

impl ReceivedNumbers for ReceivedNonces {
    type Nonce = u8;

    #[inline]
    fn insert(&mut self, number: u64, nonce: u8) {
        let above = self.count_above(number);
        self.seen.insert(number, number + 1, |_, _| ());
        let place = self.nonces.len().saturating_sub(above);
        if above == 0 {
            self.nonces.push_back(nonce);
        } else {
            self.nonces.insert(place, nonce);
        }
        self.sum ^= nonce;
        if self.nonces.len() > MAX_RECEIVED {
            let lowest = self.seen.iter().next().map_or(0, |range| range.0);
            self.forget_below(lowest + 1);
        }
    }

    #[inline]
    fn forget_below(&mut self, number: u64) {
        let below = self.seen.iter().take_while(|(from, _)| *from < number);
        let count: u64 = below.map(|(from, to)| to.min(number) - from).sum();
        if count == 0 {
            return;
        }
        self.seen.trim_below(number);
        self.sum = self.nonces.drain(..count as usize).fold(self.sum, |sum, nonce| sum ^ nonce);
        give_back(&mut self.nonces);
    }

    fn ranges(&self) -> &Ranges {
        &self.seen
    }
}

impl ReceivedNonces {
    /// Number of received packets with higher numbers.
    #[inline]
    fn count_above(&self, number: u64) -> usize {
        let above = self.seen.iter().rev().take_while(|(_, to)| *to > number);
        above.map(|(from, to)| (to - from.max(number + 1)) as usize).sum()
    }

    /// Sum of the nonces of `count` packets, the highest below `end`.
    #[inline]
    pub fn sum_below(&self, end: u64, count: u64) -> u8 {
        let above = self.count_above(end.saturating_sub(1)) as u64;
        let highest = if above == 0 { 0 } else { self.sum_of_highest(above) };
        self.sum_of_highest(above + count) ^ highest
    }
    /// Sum of the nonces of the `count` highest packets.
    #[inline]
    fn sum_of_highest(&self, count: u64) -> u8 {
        let rest = self.nonces.len().saturating_sub(count as usize);
        self.nonces.iter().take(rest).fold(self.sum, |sum, nonce| sum ^ nonce)
    }
    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.seen.len() * 16 + self.nonces.capacity()
    }
}

#[cfg(test)]
#[path = "nonces_tests.rs"]
mod tests;
