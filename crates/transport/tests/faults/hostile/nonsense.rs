//! Anything at all, properly sealed: frames that lie, payloads that are none, old packets, an end and what comes
//! behind it.

use super::{Behaviour, Said, Traffic, bound_of_a_receiver, requests};
use narrows_base::{Time, luck::Stream};
use narrows_wire::Frame;
use narrows_wire::hostile::Peer;

pub struct Nonsense;

impl Behaviour for Nonsense {
    fn opened(&mut self, now: Time, peer: &mut Peer, _dice: &mut Stream) -> Said {
        requests(now, peer)
    }
    fn heard(&mut self, now: Time, peer: &mut Peer, _dice: &mut Stream) -> Said {
        vec![peer.report(now, 0)]
    }
    fn turn(&mut self, now: Time, peer: &mut Peer, dice: &mut Stream) -> Said {
        let mut said = Said::new();
        for _ in 0..dice.bits() % 8 {
            let arg = dice.bits() as u8;
            let lie = match dice.bits() % 4 {
                0 => u64::from(dice.bits() as u8),
                1 => (1 << 62) - 1,
                2 => dice.bits() >> 40,
                _ => dice.bits() >> 2,
            };
            said.push(match dice.bits() % 32 {
                0 => {
                    let payload: Vec<u8> = (0..arg).map(|_| dice.bits() as u8).collect();
                    peer.raw(now, &payload)
                }
                1 => peer.frame(now, &Frame::Close { code: lie, reason: b"enough" }),
                2 => {
                    peer.skip(u64::from(arg));
                    peer.frame(now, &Frame::Ping)
                }
                3..8 => peer.again(),
                8..14 => peer.report(now, arg),
                14..20 => peer.stream(now, usize::from(arg) * 5),
                20 => peer.challenged(now, arg),
                // Most of these end the connection.
                21..25 => peer.liar(now, arg, lie),
                _ => peer.frame(now, &Frame::Ping),
            });
        }
        said
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        bound_of_a_receiver(traffic)
    }
}
