//! The stateless part of the server's handshake: cookies for SYN, checks of cookies and address tokens, and the limit
//! on handshakes per second.

use super::accepting::StartProof;
use super::handshake_rate::{HandshakeRate, HandshakeRateLimit};
use super::source::ClientNetwork;
use super::used_tokens::UsedTokens;
use super::{EndpointLimits, Entropy};
use narrows_base::{Duration, Time};
use narrows_wire::cookie::MAX_COOKIE_LIFE;
use narrows_wire::packet::{self, Nonce, Start};
use narrows_wire::token::{MAX_TOKEN_LIFE, TokenName};
use narrows_wire::{Cookie, CookieSecrets, Token, TokenSecrets, VERSION};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

const SECOND: u64 = 1_000_000_000;
/// STARTs accepted in this time are remembered.
const REMEMBERED: Duration = Duration::from_secs(20);
/// Part of the handshakes per second, and of those that wait for FINISH, that may have an unproven address.
const UNPROVEN_PART: usize = 4;

/// How a START validates its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AddressProof {
    Cookie,
    /// A valid token, which may have been used before.
    Token(TokenName),
    /// A token of another server, too old, or for another address.
    BadToken,
    /// Neither a cookie nor a token.
    Absent,
    /// Not a cookie of this server.
    Invalid,
}

/// Cookies, tokens, recently accepted STARTs, and limits.
pub(super) struct HandshakeGate {
    secrets: CookieSecrets,
    /// When the present secret was first used.
    since: Option<Time>,
    token_secrets: TokenSecrets,
    /// Whether new tokens permit early data.
    early_data: bool,
    tokens_since: Option<Time>,
    used_tokens: UsedTokens,
    /// Until this time no handshake gives way by its age.
    pub(super) claims_end: Time,
    half_open: usize,
    /// Those of `half_open` whose client's address is not proven, and their limit.
    unproven: usize,
    most_unproven: usize,
    rate: HandshakeRate,
    /// Limit for handshakes with an unproven address, which has no network to count.
    unproven_rate: HandshakeRateLimit,
    /// Limit for handshakes after a forged FINISH: each further one may cost five X25519 operations.
    finishes: HandshakeRateLimit,
    /// STARTs accepted within a cookie's lifetime, and their slots. `ages` has the same, the oldest first.
    recent: BTreeMap<(SocketAddr, Nonce), u32>,
    ages: VecDeque<(Time, (SocketAddr, Nonce))>,
    /// Upper limit on `recent`: the handshakes that can begin within `REMEMBERED`. At a lower rate a START is remembered
    /// for a cookie's lifetime.
    remembered: usize,
}

impl HandshakeGate {
    pub(super) fn new(
        secrets: [&[u8; 32]; 2],
        limits: &EndpointLimits,
        early_data: bool,
    ) -> HandshakeGate {
        let rate = limits.handshake_rate;
        let of_source = limits.handshake_rate_of_source;
        let unproven_rate = rate / UNPROVEN_PART as u32;
        HandshakeGate {
            secrets: CookieSecrets::new(secrets[0]),
            since: None,
            token_secrets: TokenSecrets::new(secrets[1]),
            early_data,
            tokens_since: None,
            used_tokens: UsedTokens::new(limits.used_tokens),
            claims_end: Time::ZERO,
            half_open: 0,
            unproven: 0,
            most_unproven: limits.handshakes / UNPROVEN_PART,
            rate: HandshakeRate::new(rate, of_source),
            unproven_rate: HandshakeRateLimit::new(unproven_rate),
            finishes: HandshakeRateLimit::new(of_source),
            recent: BTreeMap::new(),
            ages: VecDeque::new(),
            // One more second, because the lifetime may begin within a second.
            remembered: (rate + unproven_rate) as usize
                * (REMEMBERED.as_nanos() / SECOND + 1) as usize,
        }
    }

    /// The reply to a SYN, for which no state is kept.
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

    /// How a START validates its address.
    pub(super) fn address_proof(
        &self,
        now: Time,
        from: SocketAddr,
        start: &Start<'_>,
    ) -> AddressProof {
        if let Some(token) = Token::of(&start.cookie) {
            let named = self.token_secrets.verify(now, from.ip(), &token);
            return named.map_or(AddressProof::BadToken, AddressProof::Token);
        }
        if start.cookie == Cookie::NONE {
            return AddressProof::Absent;
        }
        match self.secrets.is_valid(now, from, &start.nonce, VERSION, &start.cookie) {
            true => AddressProof::Cookie,
            false => AddressProof::Invalid,
        }
    }

    /// Whether a valid token is certainly unused.
    pub(super) fn is_unused(&self, from: IpAddr, token: &TokenName) -> bool {
        !self.used_tokens.may_have(ClientNetwork::of(from), token)
    }
    /// Marks a token as used.
    pub(super) fn use_up(&mut self, now: Time, from: IpAddr, token: &TokenName) {
        self.used_tokens.insert(now, ClientNetwork::of(from), token);
    }

    /// A token for a client with a complete handshake from this address.
    pub(super) fn token(&mut self, now: Time, to: IpAddr, entropy: &mut dyn Entropy) -> Token {
        let since = *self.tokens_since.get_or_insert(now);
        if now.since(since) >= MAX_TOKEN_LIFE {
            let mut secret = [0; 32];
            entropy.fill(&mut secret);
            self.token_secrets.rotate(&secret);
            self.tokens_since = Some(now);
        }
        let mut id = [0; 12];
        entropy.fill(&mut id);
        self.token_secrets.create(now, to, id, self.early_data)
    }

    /// The slot of a START with this nonce, accepted within a cookie's lifetime.
    pub(super) fn known(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> Option<u32> {
        while let Some((age, key)) = self.ages.front() {
            // The cookie is older than its START, so after this time it has expired.
            if now.since(*age) <= MAX_COOKIE_LIFE && self.ages.len() <= self.remembered {
                break;
            }
            self.recent.remove(key);
            self.ages.pop_front();
        }
        self.recent.get(&(from, *nonce)).copied()
    }

    /// Whether one more handshake may begin now. If so, it is counted.
    pub(super) fn permits(&mut self, now: Time, from: SocketAddr) -> bool {
        self.rate.permits(now, ClientNetwork::of(from.ip()))
    }
    /// Whether one more FINISH may be read after a forged one. If so, it is counted.
    pub(super) fn permits_finish(&mut self, now: Time) -> bool {
        self.finishes.permits(now)
    }
    /// Whether no place for a handshake with an unproven address is free.
    pub(super) fn is_full_of_unproven(&self) -> bool {
        self.unproven >= self.most_unproven
    }
    /// Whether one more handshake with an unproven address may begin now. If so, it is counted.
    pub(super) fn permits_unproven(&mut self, now: Time) -> bool {
        !self.is_full_of_unproven() && self.unproven_rate.permits(now)
    }
    /// Counts a new handshake.
    pub(super) fn enter(
        &mut self,
        now: Time,
        from: SocketAddr,
        nonce: Nonce,
        slot: u32,
        proof: StartProof,
    ) {
        self.half_open += 1;
        self.unproven += usize::from(proof == StartProof::None);
        self.remember(now, from, nonce, slot);
    }
    /// Remembers the slot of an accepted START.
    pub(super) fn remember(&mut self, now: Time, from: SocketAddr, nonce: Nonce, slot: u32) {
        self.recent.insert((from, nonce), slot);
        self.ages.push_back((now, (from, nonce)));
    }
    /// Counts the end of a handshake, successful or not.
    pub(super) fn leave(&mut self, proof: StartProof) {
        self.half_open = self.half_open.saturating_sub(1);
        self.unproven = self.unproven.saturating_sub(usize::from(proof == StartProof::None));
    }
    /// Number of present handshakes.
    pub(super) fn half_open(&self) -> usize {
        self.half_open
    }

    /// Approximate bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        const KEY: usize = size_of::<(SocketAddr, Nonce)>();
        (self.recent.len() + self.ages.len()) * KEY + self.used_tokens.memory()
    }

    /// Number of used tokens in memory.
    #[cfg(test)]
    pub(super) fn used_tokens(&self) -> usize {
        self.used_tokens.len()
    }

    /// Sizes of the collections.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.half_open, self.recent.len(), self.ages.len()]
    }
}
