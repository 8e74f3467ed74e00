//! Repair packets: redundancy after the last waiting data, on a path with a high loss rate. The peer rebuilds lost
//! packets from them. Their budget is the loss rate and a margin.
//!
//! The code is an XOR over interleaved packets ([`narrows_wire::repair`]): each of n repair packets repairs one loss
//! among every n-th packet. Repair packets obey window, pacer and limiter, are acknowledged and count as losses like
//! any packet. They are never retransmitted.
//!
//! A rebuilt packet is not reported: the receiver lacks its nonce, and the sender's controller must detect the loss
//! (RFC 9265 section 4). So repair gives a misbehaving receiver no advantage. Rebuilt data may be retransmitted
//! needlessly.

mod incoming;
mod kept;
mod loss_share;
mod outgoing;
mod rebuild;
mod transmit;

use incoming::RepairDecoder;
use outgoing::RepairEncoder;

pub(super) use kept::MAX_GROUP;

/// Repair state of a connection, if both ends support repair.
#[derive(Debug)]
pub(super) struct Repairs {
    pub outgoing: RepairEncoder,
    pub incoming: RepairDecoder,
}

impl Repairs {
    /// Takes the numbers of packets that both ends keep, as announced in the handshake. `None` if either is 0.
    pub fn new(ours: u64, theirs: u64) -> Option<Box<Repairs>> {
        let both = ours > 0 && theirs > 0;
        both.then(|| {
            Box::new(Repairs {
                outgoing: RepairEncoder::new(theirs.min(MAX_GROUP)),
                incoming: RepairDecoder::default(),
            })
        })
    }
    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        size_of::<Repairs>() + self.outgoing.memory() + self.incoming.memory()
    }
    /// Releases memory after a pause.
    pub fn release_memory(&mut self) {
        self.outgoing.release_memory();
        self.incoming.release_memory();
    }
}

#[cfg(test)]
mod tests;
