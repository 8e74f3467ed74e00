//! The peer's address. A change is validated before it takes effect (RFC 9000 section 8.2).

use narrows_base::{Duration, Time};
use narrows_wire::ConnectionId;
use narrows_wire::reset::{ResetKey, is_token};
use std::net::SocketAddr;

/// Bytes sent to an unvalidated address per byte received from it.
const AMPLIFICATION: u64 = 3;
/// Limit on challenges to one address.
const TRIES: u32 = 3;
/// Longest time between challenges of a client that opens a path.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Bytes that count as received from the address to which a client opens a path. The user has chosen it.
const CHOSEN: u64 = u64::MAX / AMPLIFICATION;

/// An unvalidated address from which authentic packets arrive.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    challenge: [u8; 8],
    came: u64,
    went: u64,
    /// Time of the last challenge, and time to send the next or to give up.
    asked: Time,
    next: Time,
    tries: u32,
}

/// The validated address, and the candidate for a new one.
#[derive(Debug)]
pub struct PeerAddress {
    remote: SocketAddr,
    /// Whether `remote` was validated. If it was not, it is the candidate.
    is_validated: bool,
    /// Whether this end opens the path, and so repeats its challenge until the response.
    is_opener: bool,
    /// A new address that was not yet reported.
    moved: Option<SocketAddr>,
    candidate: Option<Box<Candidate>>,
    /// A received challenge and its source address, to which the response goes.
    response: Option<(SocketAddr, [u8; 8])>,
    /// Makes challenges unpredictable.
    secret: [u8; 32],
    challenges: u32,
}

/// A path frame, sent alone in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathFrame {
    Challenge([u8; 8]),
    Response([u8; 8]),
}

/// A path frame and its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathFrameTo {
    pub to: SocketAddr,
    pub frame: PathFrame,
}

impl PeerAddress {
    pub fn new(remote: SocketAddr, seed: &[u8; 32]) -> PeerAddress {
        PeerAddress {
            remote,
            is_validated: true,
            is_opener: false,
            moved: None,
            candidate: None,
            response: None,
            secret: *seed,
            challenges: 0,
        }
    }
    /// The address of a further path, which is not validated yet. A client opens the path to it; at a server, a packet
    /// came from there.
    pub fn unvalidated(
        now: Time,
        remote: SocketAddr,
        seed: &[u8; 32],
        is_opener: bool,
    ) -> PeerAddress {
        let mut address = PeerAddress::new(remote, seed);
        address.is_validated = false;
        address.is_opener = is_opener;
        if is_opener {
            address.challenge(now, remote, CHOSEN);
        }
        address
    }
    /// Whether anything but path frames may be sent to the address.
    #[inline]
    pub fn is_validated(&self) -> bool {
        self.is_validated
    }
    #[inline]
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The new address, once after a change.
    pub fn moved(&mut self) -> Option<SocketAddr> {
        self.moved.take()
    }

    /// Handles an authentic packet of `bytes` bytes; `newest` if its number is the highest so far.
    #[inline]
    pub fn on_packet(&mut self, now: Time, from: SocketAddr, bytes: usize, newest: bool) {
        if from != self.remote || !self.is_validated {
            self.on_other(now, from, bytes as u64, newest);
        } else if newest {
            // The peer's address has not changed.
            self.candidate = None;
        }
    }

    fn on_other(&mut self, now: Time, from: SocketAddr, bytes: u64, newest: bool) {
        match &mut self.candidate {
            Some(c) if c.address == from => c.came = c.came.saturating_add(bytes),
            // The address to which this end opens the path does not change before it is validated.
            _ if newest && (self.is_validated || !self.is_opener) => {
                self.challenge(now, from, bytes);
            }
            _ => {}
        }
    }

    /// Makes an address the candidate, from which `came` bytes came.
    fn challenge(&mut self, now: Time, address: SocketAddr, came: u64) {
        self.challenges = self.challenges.wrapping_add(1);
        let token = ResetKey::new(&self.secret).token(ConnectionId(self.challenges), address);
        let mut challenge = [0; 8];
        challenge.iter_mut().zip(token).for_each(|(c, t)| *c = t);
        let went = 0;
        self.candidate = Some(Box::new(Candidate {
            address,
            challenge,
            came,
            went,
            asked: now,
            next: now,
            tries: 0,
        }));
        if !self.is_validated {
            self.remote = address;
        }
    }

    pub fn on_challenge(&mut self, from: SocketAddr, data: [u8; 8]) {
        self.response = Some((from, data));
    }

    /// If `data` match the challenge, makes the candidate the peer's address. Returns the RTT of
    /// the new path, if it was measured.
    pub fn on_response(&mut self, now: Time, data: &[u8; 8]) -> Option<Option<Duration>> {
        let c = self.candidate.as_ref()?;
        let mut padded = ([0; 16], [0; 16]);
        padded.0.iter_mut().zip(c.challenge).for_each(|(p, b)| *p = b);
        padded.1.iter_mut().zip(data).for_each(|(p, b)| *p = *b);
        if c.tries == 0 || !is_token(&padded.0, &padded.1) {
            return None;
        }
        self.moved = (self.remote != c.address).then_some(c.address);
        self.remote = c.address;
        self.is_validated = true;
        // After two challenges the response is ambiguous, so it gives no RTT.
        let rtt = (c.tries == 1).then(|| now.since(c.asked));
        self.candidate = None;
        Some(rtt)
    }

    /// The path frame that must be sent now in a packet of `size` bytes, and its destination.
    pub fn path_frame(&mut self, now: Time, size: usize, timeout: Duration) -> Option<PathFrameTo> {
        let size = size as u64;
        let validated = self.is_validated.then_some(self.remote);
        let candidate = &mut self.candidate;
        let mut may_go = |to: SocketAddr| match candidate {
            _ if Some(to) == validated => true,
            Some(c) if c.address == to && c.went + size <= c.came.saturating_mul(AMPLIFICATION) => {
                c.went += size;
                true
            }
            _ => false,
        };
        if let Some((to, data)) = self.response.take()
            && may_go(to)
        {
            return Some(PathFrameTo { to, frame: PathFrame::Response(data) });
        }
        let c = self.candidate.as_mut()?;
        if now < c.next {
            return None;
        }
        let is_opening = self.is_opener && !self.is_validated;
        let is_bounded = c.went + size > c.came.saturating_mul(AMPLIFICATION);
        if c.tries >= TRIES && !is_opening || is_bounded {
            self.candidate = None;
            return None;
        }
        c.tries += 1;
        c.went += size;
        c.asked = now;
        let backed_off = timeout.saturating_mul(1 << c.tries.min(4)).min(timeout.max(MAX_PAUSE));
        c.next = now + if is_opening { backed_off } else { timeout };
        Some(PathFrameTo { to: c.address, frame: PathFrame::Challenge(c.challenge) })
    }

    pub fn next_timeout(&self) -> Time {
        self.candidate.as_ref().map_or(Time::NEVER, |c| c.next)
    }
}
