//! It opens as many streams as permitted, resets them at once, and stops the responses.

use super::{Behaviour, MUCH, Said, Traffic, bound_of_a_receiver};
use narrows_base::{Time, random::RandomStream};
use narrows_wire::Frame;
use narrows_wire::hostile::{HostilePeer, Lie};

#[derive(Default)]
pub struct Churner {
    /// The next stream.
    id: u64,
}

impl Behaviour for Churner {
    fn opened(&mut self, _now: Time, _peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        self.id = 0;
        Said::new()
    }
    fn heard(&mut self, now: Time, peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        vec![peer.report(now, Lie::None)]
    }
    fn turn(&mut self, now: Time, peer: &mut HostilePeer, random: &mut RandomStream) -> Said {
        let mut said = Said::new();
        for _ in 0..1 + random.bits() % 8 {
            let id = self.id;
            let data = MUCH.to_be_bytes();
            self.id += 4;
            if random.chance(0.5) {
                said.push(
                    peer.frame(now, &Frame::Stream { id, offset: 0, fin: false, data: &data }),
                );
            }
            said.push(peer.frame(now, &Frame::ResetStream { id, code: 256, size: 8 }));
            said.push(peer.frame(now, &Frame::Stop { id, code: 256 }));
        }
        said
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        bound_of_a_receiver(traffic)
    }
}
