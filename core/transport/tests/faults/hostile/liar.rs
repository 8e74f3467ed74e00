//! A receiver that sends false reports: of arrivals, of times, and of causes.

use super::{Behaviour, Said, Traffic, bound_of_a_receiver, requests};
use narrows_base::{Time, random::RandomStream};
use narrows_wire::Frame;
use narrows_wire::hostile::{HostilePeer, Lie};

/// One kind of [`Lie`] per connection, the upper half of its byte; its value, the lower half, is random.
pub struct Liar(u8);

impl Liar {
    pub fn new(random: &mut RandomStream) -> Liar {
        Liar((random.bits() % 12) as u8)
    }

    fn lie(&self, random: &mut RandomStream) -> Lie {
        Lie::from(self.0 << 4 | (random.bits() & 15) as u8)
    }
}

impl Behaviour for Liar {
    fn opened(&mut self, now: Time, peer: &mut HostilePeer, random: &mut RandomStream) -> Said {
        self.0 = (random.bits() % 12) as u8;
        requests(now, peer)
    }
    fn heard(&mut self, now: Time, peer: &mut HostilePeer, random: &mut RandomStream) -> Said {
        vec![peer.report(now, self.lie(random))]
    }
    fn turn(&mut self, now: Time, peer: &mut HostilePeer, random: &mut RandomStream) -> Said {
        let lie = peer.report(now, self.lie(random));
        vec![lie, peer.frame(now, &Frame::Ping)]
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        bound_of_a_receiver(traffic)
    }
}
