//! The server's side of an opening: who gets a cookie, who gets a handshake, and how many.

use super::Entropy;
use narrows_base::{Duration, Time};
use narrows_wire::packet::{self, Finish, Nonce, Start, TAG_BYTES};
use narrows_wire::{
    CookieSecrets, Established, Frame, FrameWriter, HandshakeError, Params, Prelude, Sealer,
    ServerHandshake, VERSION,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A cookie is worth something for so long at most, and so is a copied START.
const COOKIE_LIFE: Duration = Duration::from_secs(20);
/// A handshake waits for its FINISH so long at most.
const HANDSHAKE_LIFE: Duration = Duration::from_secs(10);
/// Packets that overtook FINISH, kept for each handshake.
const EARLY: usize = 4;
/// Longest of them, bytes.
const EARLY_BYTES: usize = 2048;
/// A repeated START or FINISH is answered no oftener than this.
const ANSWER_EVERY: Duration = Duration::from_millis(50);

/// At most so many per second.
#[derive(Debug)]
pub(super) struct Limiter {
    since: Time,
    used: u32,
    most: u32,
}

impl Limiter {
    pub(super) fn new(most: u32) -> Limiter {
        Limiter { since: Time::ZERO, used: 0, most }
    }
    /// Whether one more is permitted; it then counts.
    pub(super) fn permits(&mut self, now: Time) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.since, self.used) = (now, 0);
        }
        self.used += u32::from(self.used < self.most + 1);
        self.used <= self.most
    }
}

/// Whom handshakes are counted for: an IPv4 address, or an IPv6 network of 64 bits, since whoever
/// has one IPv6 address usually has all of those.
fn household(from: SocketAddr) -> IpAddr {
    match from.ip().to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

/// Cookies, STARTs that were accepted lately, and the bounds.
pub(super) struct Door {
    secrets: CookieSecrets,
    /// When the present secret was first used.
    since: Option<Time>,
    most: (usize, usize),
    open: usize,
    households: BTreeMap<IpAddr, usize>,
    /// Accepted STARTs of a cookie's lifetime and the slots they got, the oldest first.
    recent: BTreeMap<(SocketAddr, Nonce), u32>,
    ages: VecDeque<(Time, (SocketAddr, Nonce))>,
    remembered: usize,
}

impl Door {
    /// `most` handshakes in all and from one place; STARTs of `remembered` connections are known
    /// again.
    pub(super) fn new(secret: &[u8; 32], most: (usize, usize), remembered: usize) -> Door {
        Door {
            secrets: CookieSecrets::new(secret),
            since: None,
            most,
            open: 0,
            households: BTreeMap::new(),
            recent: BTreeMap::new(),
            ages: VecDeque::new(),
            remembered,
        }
    }

    /// The answer to a SYN, of which nothing is kept.
    pub(super) fn on_syn(
        &mut self,
        now: Time,
        from: SocketAddr,
        version: u32,
        nonce: &Nonce,
        entropy: &mut dyn Entropy,
    ) -> Vec<u8> {
        if version != VERSION {
            return packet::version(version, nonce, &[VERSION]);
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= COOKIE_LIFE {
            let mut secret = [0; 32];
            entropy.fill(&mut secret);
            self.secrets.rotate(&secret);
            self.since = Some(now);
        }
        packet::syn_echo(nonce, &self.secrets.bake(now, from, nonce, VERSION))
    }

    /// Whether a START has a good cookie.
    pub(super) fn is_invited(&self, now: Time, from: SocketAddr, start: &Start<'_>) -> bool {
        self.secrets.is_valid(now, from, &start.nonce, VERSION, &start.cookie)
    }

    /// The slot that a START with this nonce was given within a cookie's lifetime.
    pub(super) fn known(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> Option<u32> {
        while let Some((age, key)) = self.ages.front() {
            // A START is accepted after its cookie was made: this long after, the cookie is worthless.
            if now.since(*age) <= COOKIE_LIFE && self.ages.len() <= self.remembered {
                break;
            }
            self.recent.remove(key);
            self.ages.pop_front();
        }
        self.recent.get(&(from, *nonce)).copied()
    }

    /// Whether one more handshake is permitted from there.
    pub(super) fn has_room(&self, from: SocketAddr) -> bool {
        let here = self.households.get(&household(from)).copied().unwrap_or(0);
        self.open < self.most.0 && here < self.most.1
    }
    /// A handshake began.
    pub(super) fn enter(&mut self, now: Time, from: SocketAddr, nonce: Nonce, slot: u32) {
        self.open += 1;
        *self.households.entry(household(from)).or_default() += 1;
        self.recent.insert((from, nonce), slot);
        self.ages.push_back((now, (from, nonce)));
    }
    /// A handshake is over, whatever became of it.
    pub(super) fn leave(&mut self, from: SocketAddr) {
        self.open = self.open.saturating_sub(1);
        let here = household(from);
        if let Some(count) = self.households.get_mut(&here) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.households.remove(&here);
            }
        }
    }

    /// Bytes of the heap that it holds, about.
    pub(super) fn memory(&self) -> usize {
        const KEY: usize = size_of::<(SocketAddr, Nonce)>();
        self.households.len() * size_of::<IpAddr>() + (self.recent.len() + self.ages.len()) * KEY
    }

    /// Sizes of all that it keeps.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [usize; 4] {
        [self.open, self.households.len(), self.recent.len(), self.ages.len()]
    }
}

enum Stage {
    /// For FINISH.
    Waiting(Box<ServerHandshake>),
    /// The client was refused, by this sealed CLOSE.
    Refused(Vec<u8>),
}

/// A handshake with a good cookie.
pub(super) struct Answering {
    pub(super) from: SocketAddr,
    nonce: Nonce,
    born: Time,
    /// What the client is told of us.
    pub(super) hello: Params,
    stage: Stage,
    /// Packets that overtook FINISH, with their ECN bits.
    pub(super) early: Vec<(u8, Vec<u8>)>,
    /// Whether the answer is to be sent.
    is_wanted: bool,
    answered: Option<Time>,
    echoes: u32,
}

impl Answering {
    pub(super) fn new(
        now: Time,
        from: SocketAddr,
        nonce: Nonce,
        handshake: ServerHandshake,
        hello: Params,
    ) -> Answering {
        Answering {
            from,
            nonce,
            born: now,
            hello,
            stage: Stage::Waiting(Box::new(handshake)),
            early: Vec::new(),
            is_wanted: true,
            answered: None,
            echoes: 0,
        }
    }

    /// Bytes of the heap that it holds, about.
    pub(super) fn memory(&self) -> usize {
        let early: usize = self.early.iter().map(|(_, packet)| packet.len()).sum();
        size_of::<Answering>() + size_of::<ServerHandshake>() + early
    }

    /// When it is forgotten.
    pub(super) fn until(&self) -> Time {
        self.born + HANDSHAKE_LIFE
    }

    /// Wants the answer sent (again); whether it may.
    fn want(&mut self, now: Time) -> bool {
        let is_early = self.answered.is_some_and(|at| now.since(at) < ANSWER_EVERY);
        self.is_wanted |= !is_early;
        self.is_wanted
    }

    /// Its START came again, and its START-ECHO may go.
    pub(super) fn on_start(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> bool {
        self.from == from
            && self.nonce == *nonce
            && matches!(self.stage, Stage::Waiting(_))
            && self.want(now)
    }

    /// A FINISH came for it.
    pub(super) fn on_finish(&mut self, finish: &Finish<'_>) -> Result<Established, HandshakeError> {
        match &mut self.stage {
            Stage::Waiting(handshake) => handshake.on_finish(finish),
            Stage::Refused(_) => Err(HandshakeError::Finished),
        }
    }

    /// What the exchange of START-ECHO and FINISH took. Nothing if START-ECHO went twice, or if
    /// data came first: then this FINISH is perhaps not the first.
    pub(super) fn sample(&self, now: Time) -> Option<Duration> {
        let at = self.answered.filter(|_| self.echoes == 1 && self.early.is_empty())?;
        Some(now.since(at))
    }

    /// Tells the client under seal that it is not wanted; whether there is something to send.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        mut keys: Established,
        code: u64,
        reason: &str,
    ) -> bool {
        let frame = Frame::Close { code, reason: reason.as_bytes() };
        let mut datagram = vec![0; 128];
        let head = Sealer::header_len(0, None);
        let most = datagram.len() - TAG_BYTES;
        let written = datagram.get_mut(head..most).and_then(|payload| {
            let mut writer = FrameWriter::new(payload, Prelude::new(now, 0, 0)).ok()?;
            writer.frame(&frame).ok()?;
            Some(writer.len())
        });
        let Some(length) = written else { return false };
        datagram.truncate(head + length + TAG_BYTES);
        if keys.sealer.seal(0, None, &mut datagram).is_err() {
            return false;
        }
        self.stage = Stage::Refused(datagram);
        self.early = Vec::new();
        self.is_wanted = true;
        true
    }

    /// Something of a client that was refused came again; whether it may be told again.
    pub(super) fn on_again(&mut self, now: Time) -> bool {
        matches!(self.stage, Stage::Refused(_)) && self.want(now)
    }

    /// Keeps a packet that overtook FINISH, or drops it.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if self.early.len() < EARLY
            && datagram.len() <= EARLY_BYTES
            && matches!(self.stage, Stage::Waiting(_))
        {
            self.early.push((ecn, datagram.to_vec()));
        }
    }

    /// The answer, if it is to be sent.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.is_wanted) {
            return None;
        }
        self.answered = Some(now);
        Some(match &self.stage {
            Stage::Waiting(handshake) => {
                self.echoes = self.echoes.saturating_add(1);
                handshake.start_echo().to_vec()
            }
            Stage::Refused(close) => close.clone(),
        })
    }
}
