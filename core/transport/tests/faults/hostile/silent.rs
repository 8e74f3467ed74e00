//! It requests much data and acknowledges none. The bytes that it gets follow its own.

use super::{Behaviour, Said, Traffic, requests};
use narrows_base::{Time, random::RandomStream};
use narrows_wire::Frame;
use narrows_wire::hostile::HostilePeer;

/// Bytes sent per byte received (docs/security.md).
const MAX_AMPLIFICATION: u64 = 40;

pub struct Silent;

impl Behaviour for Silent {
    fn opened(&mut self, now: Time, peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        requests(now, peer)
    }
    fn turn(&mut self, now: Time, peer: &mut HostilePeer, random: &mut RandomStream) -> Said {
        match random.bits() % 20 {
            0 => vec![peer.frame(now, &Frame::Ping)],
            1 => vec![peer.frame(now, &Frame::MaxData(1 << 41))],
            _ => Said::new(),
        }
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        MAX_AMPLIFICATION * traffic.came_from
    }
}
