//! The simulated packet: at most 56 bytes, moved by value.

use crate::time::Time;

/// A packet of a simulated flow, in either direction.
///
/// Together with its arrival time it fills exactly one cache line in a link's ring; this is why
/// SACK blocks are 32-bit offsets from the cumulative acknowledgement.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Data: the segment's number (0 is the SYN). ACK: the next segment expected (cumulative
    /// acknowledgement).
    pub seq: u64,
    /// Data: when this copy was sent. ACK: the echoed send time.
    pub stamp: Time,
    /// Data: packet number within the flow, from 0, modulo 2^32. ACK: the echoed packet number.
    pub number: u32,
    /// Random bits derived from the flow and the packet number, for losses that are drawn per
    /// packet.
    pub random_key: u32,
    /// ACK: up to three SACK blocks `[from, to)` as offsets from `seq`; `(0, 0)` is no block.
    /// The first holds the segment that triggered this ACK (RFC 2018 section 4). If this segment
    /// had arrived before, the first has only this, modulo 2^32 (RFC 2883). Data: the low 16 bits of the first number are the count of application bytes, see [`Packet::payload`].
    pub sack: [(u32, u32); 3],
    /// Index of the flow.
    pub flow: u32,
    /// Size on the wire in bytes, headers included.
    pub size: u16,
    /// Number of links of its route that it has passed.
    pub hop: u8,
    /// A combination of [`Packet::ACK`] and the other flags.
    pub flags: u8,
}

const _: () = assert!(size_of::<Packet>() <= 56);

impl Packet {
    /// An acknowledgement (otherwise data).
    pub const ACK: u8 = 1;
    /// Data: this segment has been sent before.
    pub const RETRANSMISSION: u8 = 2;
    /// Opens the connection.
    pub const SYN: u8 = 4;
    /// Corrupted on a link; the receiver discards it.
    pub const CORRUPT: u8 = 8;
    /// The sender is ECN-capable (RFC 3168 ECT).
    pub const ECT: u8 = 16;
    /// Congestion experienced: marked by a queue (RFC 3168 CE).
    pub const CE: u8 = 32;
    /// ACK: echo of a CE mark (RFC 3168 ECE).
    pub const ECE: u8 = 64;
    /// Data: ECT(1), the sender uses a scalable controller (RFC 9331). Shares its bit with ECE,
    /// which only ACKs have.
    pub const ECT1: u8 = 64;
    /// Data: the sender has reduced its window (RFC 3168 CWR).
    pub const CWR: u8 = 128;

    /// Bytes of TCP and IP headers that a packet's size includes.
    pub const HEADER: u32 = 40;

    /// Application bytes of a data packet.
    #[inline]
    pub const fn payload(&self) -> u32 {
        self.sack[0].0 & 0xFFFF
    }

    /// ACK: the arrival time by the receiver's clock, stored in place of the third SACK block.
    #[inline]
    pub const fn arrived(&self) -> Time {
        Time::from_nanos(((self.sack[2].0 as u64) << 32) | self.sack[2].1 as u64)
    }
    /// Stores an arrival time in place of the third SACK block.
    #[inline]
    pub const fn set_arrived(&mut self, at: Time) {
        let ns = at.as_nanos();
        self.sack[2] = ((ns >> 32) as u32, ns as u32);
    }

    /// Whether all bits of `flag` are set.
    #[inline]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }
}
