//! The peer's address: a change is validated before it takes effect.

use narrows_base::{Duration, Time};
use narrows_wire::ConnectionId;
use narrows_wire::reset::{ResetKey, is_token};
use std::net::SocketAddr;

/// Bytes sent to an address that is not validated, for each that came from it.
const AMPLIFICATION: u64 = 3;
/// Challenges to one address at most.
const TRIES: u32 = 3;

/// An address from which the peer seems to send now.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    challenge: [u8; 8],
    came: u64,
    went: u64,
    /// When the last challenge left; when the next leaves, or it is given up.
    asked: Time,
    next: Time,
    tries: u32,
}

/// The path, and the one that it may become.
#[derive(Debug)]
pub(super) struct PeerPath {
    remote: SocketAddr,
    candidate: Option<Box<Candidate>>,
    /// A challenge came: to be returned where it came from.
    response: Option<(SocketAddr, [u8; 8])>,
    /// Makes challenges that nobody can guess.
    secret: [u8; 32],
    challenges: u32,
}

/// What must leave for a path, alone in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathFrame {
    Challenge([u8; 8]),
    Response([u8; 8]),
}

impl PeerPath {
    pub fn new(remote: SocketAddr, seed: &[u8; 32]) -> PeerPath {
        PeerPath { remote, candidate: None, response: None, secret: *seed, challenges: 0 }
    }
    #[inline]
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// An authentic packet of `bytes` bytes arrived; `newest` if its number is the highest so far.
    #[inline]
    pub fn on_packet(&mut self, now: Time, from: SocketAddr, bytes: usize, newest: bool) {
        if from != self.remote {
            self.on_other(now, from, bytes as u64, newest);
        } else if newest {
            // It is still where it was.
            self.candidate = None;
        }
    }

    fn on_other(&mut self, now: Time, from: SocketAddr, bytes: u64, newest: bool) {
        match &mut self.candidate {
            Some(c) if c.address == from => c.came += bytes,
            _ if newest => {
                self.challenges = self.challenges.wrapping_add(1);
                let token = ResetKey::new(&self.secret).token(ConnectionId(self.challenges), from);
                let mut challenge = [0; 8];
                challenge.iter_mut().zip(token).for_each(|(c, t)| *c = t);
                let (came, went) = (bytes, 0);
                self.candidate = Some(Box::new(Candidate {
                    address: from,
                    challenge,
                    came,
                    went,
                    asked: now,
                    next: now,
                    tries: 0,
                }));
            }
            _ => {}
        }
    }

    pub fn on_challenge(&mut self, from: SocketAddr, data: [u8; 8]) {
        self.response = Some((from, data));
    }

    /// A challenge was returned, and packets now go to that address. Returns what is known of its
    /// round-trip time.
    pub fn on_response(&mut self, now: Time, data: &[u8; 8]) -> Option<Option<Duration>> {
        let c = self.candidate.as_ref()?;
        let mut padded = ([0; 16], [0; 16]);
        padded.0.iter_mut().zip(c.challenge).for_each(|(p, b)| *p = b);
        padded.1.iter_mut().zip(data).for_each(|(p, b)| *p = *b);
        if c.tries == 0 || !is_token(&padded.0, &padded.1) {
            return None;
        }
        self.remote = c.address;
        // One that was sent twice may be answered by either.
        let rtt = (c.tries == 1).then(|| now.since(c.asked));
        self.candidate = None;
        Some(rtt)
    }

    /// The path frame that must be sent now in a packet of `size` bytes, and its destination.
    pub fn path_frame(
        &mut self,
        now: Time,
        size: usize,
        timeout: Duration,
    ) -> Option<(SocketAddr, PathFrame)> {
        let size = size as u64;
        let (remote, candidate) = (self.remote, &mut self.candidate);
        let mut may_go = |to: SocketAddr| match candidate {
            _ if to == remote => true,
            Some(c) if c.address == to && c.went + size <= AMPLIFICATION * c.came => {
                c.went += size;
                true
            }
            _ => false,
        };
        if let Some((to, data)) = self.response.take()
            && may_go(to)
        {
            return Some((to, PathFrame::Response(data)));
        }
        let c = self.candidate.as_mut()?;
        if now < c.next {
            return None;
        }
        if c.tries >= TRIES || c.went + size > AMPLIFICATION * c.came {
            self.candidate = None;
            return None;
        }
        c.tries += 1;
        c.went += size;
        (c.asked, c.next) = (now, now + timeout);
        Some((c.address, PathFrame::Challenge(c.challenge)))
    }

    pub fn next_timeout(&self) -> Time {
        self.candidate.as_ref().map_or(Time::NEVER, |c| c.next)
    }
}
