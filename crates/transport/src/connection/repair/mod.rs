//! Repair packets: behind the tail of what is sent on a path that loses much leave packets from which the peer rebuilds
//! lost ones, within a budget of the loss rate and a margin.
//!
//! The code is an XOR over interleaved packets ([`narrows_wire::repair`]): of n repair packets each repairs one loss
//! among every n-th packet. They obey window, pacer and limiter, are acknowledged and count as losses as any packet, and
//! are never sent again.
//!
//! A packet that was rebuilt is not reported: the receiver does not know its nonce, and the sender's controller must
//! learn of the loss (RFC 9265 section 4). So a repair gives a receiver nothing to lie with, and what it rebuilt may be
//! sent again for nothing.

mod incoming;
mod kept;
mod loss_share;
mod outgoing;

use incoming::Incoming;
use outgoing::Outgoing;

/// Packets from which one is rebuilt at most, and numbers that these span.
pub(super) const MAX_GROUP: u64 = 128;

/// Of a connection whose ends both take repair packets.
#[derive(Debug)]
pub(super) struct Repairs {
    pub outgoing: Outgoing,
    pub incoming: Incoming,
}

impl Repairs {
    /// The numbers of packets that both ends keep, as said in the handshake. `None` if either keeps none.
    pub fn new(ours: u64, theirs: u64) -> Option<Box<Repairs>> {
        let both = ours > 0 && theirs > 0;
        both.then(|| {
            Box::new(Repairs {
                outgoing: Outgoing::new(theirs.min(MAX_GROUP)),
                incoming: Incoming::default(),
            })
        })
    }
    /// Bytes of the heap.
    pub fn memory(&self) -> usize {
        size_of::<Repairs>() + self.outgoing.memory() + self.incoming.memory()
    }
    /// Gives back what is of no use after a pause.
    pub fn release_memory(&mut self) {
        self.outgoing.release_memory();
        self.incoming.release_memory();
    }
}

#[cfg(test)]
mod tests;
