//! Explicit congestion notification: the ECN state of the two ends of a TCP connection (RFC 3168 section 6.1).
//!
//! New data are ECN-capable; retransmissions and the SYN are not (6.1.1, 6.1.5). The receiver echoes a mark on every
//! acknowledgement until the sender signals that it has reduced its window (6.1.3). The sender reacts at most once per
//! window (6.1.2): after any reduction, it ignores marks until the first new packet behind it, which has CWR set, is
//! acknowledged. A recovery that left the window as it was is no reduction: marks during it count.

use narrows_base::{Packet, Time};

/// ECN state of the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderEcn {
    on: bool,
    /// Next segment to be sent for the first time when the window was last reduced.
    cut_at: u64,
    /// Whether the next new packet has CWR set.
    notice: bool,
    /// No packets leave before this time: a mark arrived at a window of one, which cannot be reduced.
    pub pause: Time,
}

impl SenderEcn {
    pub fn new(on: bool) -> SenderEcn {
        SenderEcn { on, cut_at: 0, notice: false, pause: Time::ZERO }
    }
    #[inline]
    pub fn data_flags(&mut self) -> u8 {
        if !self.on {
            return 0;
        }
        Packet::ECT | if std::mem::take(&mut self.notice) { Packet::CWR } else { 0 }
    }
    /// Whether an acknowledgement has ECE set.
    #[inline]
    pub fn echoed(&self, ack: &Packet) -> bool {
        self.on && ack.has(Packet::ECE)
    }
    /// Whether ECE causes a reaction once everything below `una` is acknowledged.
    pub fn may_react(&self, una: u64) -> bool {
        una > self.cut_at
    }
    /// The window was reduced; `next` is the next segment to be sent for the first time.
    pub fn reduced(&mut self, next: u64) {
        self.cut_at = next;
        self.notice = true;
    }
}

/// ECN state of the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverEcn {
    on: bool,
    echo: bool,
}

impl ReceiverEcn {
    pub fn new(on: bool) -> ReceiverEcn {
        ReceiverEcn { on, echo: false }
    }
    /// A packet arrived at or above the next expected number (6.1.5). CWR ends the echo; a mark on the same packet
    /// restarts it.
    #[inline]
    pub fn arrived(&mut self, p: &Packet) {
        if self.on && p.flags & (Packet::CE | Packet::CWR) != 0 {
            self.echo = p.has(Packet::CE);
        }
    }
    #[inline]
    pub fn ack_flags(&self) -> u8 {
        if self.echo { Packet::ECE } else { 0 }
    }
}
