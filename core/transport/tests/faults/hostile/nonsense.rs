//! Arbitrary content, properly sealed: frames with false values, invalid payloads, old packets, CLOSE and packets after
//! it.

use super::{Behaviour, Said, Traffic, bound_of_a_receiver, requests};
use narrows_base::{Time, random::RandomStream};
use narrows_wire::Frame;
use narrows_wire::hostile::{HostilePeer, Lie};

pub struct Nonsense;

impl Behaviour for Nonsense {
    fn opened(&mut self, now: Time, peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        requests(now, peer)
    }
    fn heard(&mut self, now: Time, peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        vec![peer.report(now, Lie::None)]
    }
    fn turn(&mut self, now: Time, peer: &mut HostilePeer, random: &mut RandomStream) -> Said {
        let mut said = Said::new();
        for _ in 0..random.bits() % 8 {
            let arg = random.bits() as u8;
            let lie = match random.bits() % 4 {
                0 => u64::from(random.bits() as u8),
                1 => (1 << 62) - 1,
                2 => random.bits() >> 40,
                _ => random.bits() >> 2,
            };
            said.push(match random.bits() % 32 {
                0 => {
                    let payload: Vec<u8> = (0..arg).map(|_| random.bits() as u8).collect();
                    peer.raw(now, &payload)
                }
                1 => peer.frame(now, &Frame::Close { code: lie, reason: b"enough" }),
                2 => {
                    peer.skip(u64::from(arg));
                    peer.frame(now, &Frame::Ping)
                }
                3..8 => peer.again(),
                8..14 => peer.report(now, Lie::from(arg)),
                14..20 => peer.stream(now, usize::from(arg) * 5),
                20 => peer.challenged(now, arg),
                // Most of these end the connection.
                21..25 => peer.arbitrary_frame(now, arg, lie),
                _ => peer.frame(now, &Frame::Ping),
            });
        }
        said
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        bound_of_a_receiver(traffic)
    }
}
