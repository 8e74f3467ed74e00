//! The stateless part of the server's handshake: it answers SYN with a cookie, checks cookies, and limits handshakes
//! per second.

use super::handshake_rate::{HandshakeRate, Limiter};
use super::source::Source;
use super::{EndpointLimits, Entropy};
use narrows_base::Time;
use narrows_wire::cookie::MAX_COOKIE_LIFE;
use narrows_wire::packet::{self, Nonce, Start};
use narrows_wire::{CookieSecrets, VERSION};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

const SECOND: u64 = 1_000_000_000;

/// Cookies, STARTs that were accepted lately, and the bounds.
pub(super) struct HandshakeGate {
    secrets: CookieSecrets,
    /// When the present secret was first used.
    since: Option<Time>,
    half_open: usize,
    rate: HandshakeRate,
    /// For handshakes that were sent a false FINISH: each may cost five X25519 operations.
    finishes: Limiter,
    /// Accepted STARTs of a cookie's lifetime and the slots they got, the oldest first.
    recent: BTreeMap<(SocketAddr, Nonce), u32>,
    ages: VecDeque<(Time, (SocketAddr, Nonce))>,
    /// As many as can have begun in that time.
    remembered: usize,
}

impl HandshakeGate {
    pub(super) fn new(secret: &[u8; 32], limits: &EndpointLimits) -> HandshakeGate {
        let (rate, of_source) = (limits.handshake_rate, limits.handshake_rate_of_source);
        HandshakeGate {
            secrets: CookieSecrets::new(secret),
            since: None,
            half_open: 0,
            rate: HandshakeRate::new(rate, of_source),
            finishes: Limiter::new(of_source),
            recent: BTreeMap::new(),
            ages: VecDeque::new(),
            // One more second: a window may begin between two.
            remembered: rate as usize * (MAX_COOKIE_LIFE.as_nanos() / SECOND + 1) as usize,
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
        if now.since(since) >= MAX_COOKIE_LIFE {
            let mut secret = [0; 32];
            entropy.fill(&mut secret);
            self.secrets.rotate(&secret);
            self.since = Some(now);
        }
        packet::syn_echo(nonce, &self.secrets.create(now, from, nonce, VERSION))
    }

    /// Whether a START has a good cookie.
    pub(super) fn has_valid_cookie(&self, now: Time, from: SocketAddr, start: &Start<'_>) -> bool {
        self.secrets.is_valid(now, from, &start.nonce, VERSION, &start.cookie)
    }

    /// The slot that a START with this nonce was given within a cookie's lifetime.
    pub(super) fn known(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> Option<u32> {
        while let Some((age, key)) = self.ages.front() {
            // A START is accepted after its cookie was made: this long after, the cookie is worthless.
            if now.since(*age) <= MAX_COOKIE_LIFE && self.ages.len() <= self.remembered {
                break;
            }
            self.recent.remove(key);
            self.ages.pop_front();
        }
        self.recent.get(&(from, *nonce)).copied()
    }

    /// Whether one more handshake may begin now; it then counts.
    pub(super) fn permits(&mut self, now: Time, from: SocketAddr) -> bool {
        self.rate.permits(now, Source::of(from.ip()))
    }
    /// Whether one more FINISH may be read for a handshake that was sent a false one before.
    pub(super) fn permits_finish(&mut self, now: Time) -> bool {
        self.finishes.permits(now)
    }
    /// A handshake began.
    pub(super) fn enter(&mut self, now: Time, from: SocketAddr, nonce: Nonce, slot: u32) {
        self.half_open += 1;
        self.recent.insert((from, nonce), slot);
        self.ages.push_back((now, (from, nonce)));
    }
    /// A handshake is over, whatever became of it.
    pub(super) fn leave(&mut self) {
        self.half_open = self.half_open.saturating_sub(1);
    }
    /// Handshakes that are kept.
    pub(super) fn half_open(&self) -> usize {
        self.half_open
    }

    /// Bytes of the heap that it holds, about.
    pub(super) fn memory(&self) -> usize {
        const KEY: usize = size_of::<(SocketAddr, Nonce)>();
        (self.recent.len() + self.ages.len()) * KEY
    }

    /// Sizes of all that it keeps.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.half_open, self.recent.len(), self.ages.len()]
    }
}
