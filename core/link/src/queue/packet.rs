//! A packet as a queue discipline sees it.

/// A waiting packet. The link stores the packet itself; this identifies it and has the fields that disciplines use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuedPacket {
    /// The link's slot for the packet.
    pub(crate) slot: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Identifies its flow and direction.
    pub flow: u64,
    /// Whether its sender is ECN-capable, so that it may be marked (RFC 3168: ECT).
    pub ect: bool,
    /// Whether its sender uses a scalable controller (RFC 9331: ECT(1)).
    pub l4s: bool,
    /// Whether CE is set, by an earlier queue or by this one.
    pub marked: bool,
}

impl QueuedPacket {
    /// A packet that belongs to no link, for testing a discipline alone; `number` identifies it.
    pub const fn new(number: u32, size: u32, flow: u64) -> QueuedPacket {
        QueuedPacket { slot: number, size, flow, ect: false, l4s: false, marked: false }
    }
    /// The number given to [`new`](QueuedPacket::new), or the link's slot.
    pub const fn number(&self) -> u32 {
        self.slot
    }
}
