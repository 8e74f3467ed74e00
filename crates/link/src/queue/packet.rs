//! A packet as a queue sees it.

/// A packet that waits, whatever it is: the link keeps the packet itself, and knows it by this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuedPacket {
    /// Where the link keeps it.
    pub(crate) slot: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Its flow and direction.
    pub flow: u64,
    /// Whether its sender understands ECN, so that it may be marked (RFC 3168: ECT).
    pub ect: bool,
    /// Whether its sender is scalable (RFC 9331: ECT(1)).
    pub l4s: bool,
    /// Whether it is marked (CE), by an earlier queue or this one.
    pub marked: bool,
}

impl QueuedPacket {
    /// A packet of no link, for tests of a discipline alone; `number` tells it from others.
    pub const fn new(number: u32, size: u32, flow: u64) -> QueuedPacket {
        QueuedPacket { slot: number, size, flow, ect: false, l4s: false, marked: false }
    }
    /// The number that [`new`](QueuedPacket::new) was given, or the link's own.
    pub const fn number(&self) -> u32 {
        self.slot
    }
}
