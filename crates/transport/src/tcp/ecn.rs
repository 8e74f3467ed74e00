//! Explicit congestion notification: the ECN state of the two ends of a TCP connection (RFC 3168 section 6.1).
//!
//! New data are ECN-capable; retransmissions and the SYN are not (6.1.1, 6.1.5). The receiver echoes a mark on every
//! acknowledgement until the sender says that it has reduced its window (6.1.3). The sender reacts at most once per
//! window (6.1.2): after a reduction for whatever reason, not before the first new packet behind it, which carries the
//! notice, is acknowledged. A recovery that left the window as it was is no reduction: marks during it count.

use narrows_base::{Packet, Time};

/// The sender's side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderEcn {
    on: bool,
    /// Next segment to be sent for the first time when the window was last reduced.
    cut_at: u64,
    /// The next new packet says that the window was reduced.
    notice: bool,
    /// Nothing leaves before: a mark came at a window of one, which cannot be reduced.
    pub pause: Time,
}

impl SenderEcn {
    pub fn new(on: bool) -> SenderEcn {
        SenderEcn { on, cut_at: 0, notice: false, pause: Time::ZERO }
    }
    /// Flags of a new data packet.
    #[inline]
    pub fn data_flags(&mut self) -> u8 {
        if !self.on {
            return 0;
        }
        Packet::ECT | if std::mem::take(&mut self.notice) { Packet::CWR } else { 0 }
    }
    /// Whether an acknowledgement echoes a mark.
    #[inline]
    pub fn echoed(&self, ack: &Packet) -> bool {
        self.on && ack.has(Packet::ECE)
    }
    /// Whether an echo calls for a reaction when everything below `una` is acknowledged.
    pub fn may_react(&self, una: u64) -> bool {
        una > self.cut_at
    }
    /// The window was reduced when `next` was the next segment to be sent for the first time.
    pub fn reduced(&mut self, next: u64) {
        (self.cut_at, self.notice) = (next, true);
    }
}

/// The receiver's side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverEcn {
    on: bool,
    echo: bool,
}

impl ReceiverEcn {
    pub fn new(on: bool) -> ReceiverEcn {
        ReceiverEcn { on, echo: false }
    }
    /// A packet arrived that is not below what is expected (6.1.5): a notice ends the echo, a mark
    /// on the same packet begins it anew.
    #[inline]
    pub fn arrived(&mut self, p: &Packet) {
        if self.on && p.flags & (Packet::CE | Packet::CWR) != 0 {
            self.echo = p.has(Packet::CE);
        }
    }
    /// Flags of an acknowledgement.
    #[inline]
    pub fn ack_flags(&self) -> u8 {
        if self.echo { Packet::ECE } else { 0 }
    }
}
