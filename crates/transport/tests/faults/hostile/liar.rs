//! A receiver that lies to the sender about what came, when, and what it means.

use super::{Behaviour, Said, Traffic, bound_of_a_receiver, requests};
use narrows_base::{Time, luck::Stream};
use narrows_wire::Frame;
use narrows_wire::hostile::Peer;

/// One sort of lie for each connection, in the upper half of what [`Peer::report`] takes; the lower one is drawn.
pub struct Liar(u8);

impl Liar {
    pub fn new(dice: &mut Stream) -> Liar {
        Liar((dice.bits() % 12) as u8)
    }
}

impl Behaviour for Liar {
    fn opened(&mut self, now: Time, peer: &mut Peer, dice: &mut Stream) -> Said {
        self.0 = (dice.bits() % 12) as u8;
        requests(now, peer)
    }
    fn heard(&mut self, now: Time, peer: &mut Peer, dice: &mut Stream) -> Said {
        vec![peer.report(now, self.0 << 4 | (dice.bits() & 15) as u8)]
    }
    fn turn(&mut self, now: Time, peer: &mut Peer, dice: &mut Stream) -> Said {
        let lie = peer.report(now, self.0 << 4 | (dice.bits() & 15) as u8);
        vec![lie, peer.frame(now, &Frame::Ping)]
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        bound_of_a_receiver(traffic)
    }
}
