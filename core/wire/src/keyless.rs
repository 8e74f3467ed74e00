//! An attacker without a private key, for tests: one of its keys is a point of low order, so that its shared secrets are
//! zero, which it need not compute.

use crate::cookie::Cookie;
use crate::keys::Suite;
use crate::noise::{CryptoProvider, PublicKey, hello_bytes};
use crate::packet::{self, MAX_LONG_BYTES, Nonce, StartEcho};
use crate::params::Hello;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};

/// The key of the attacker that has low order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeakKey {
    /// That which identifies it.
    Static,
    /// That of this handshake.
    Ephemeral,
}

struct WeakDh {
    inner: Box<dyn Dh>,
    weak: WeakKey,
    point: PublicKey,
    is_weak: bool,
}

impl Dh for WeakDh {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn pub_len(&self) -> usize {
        self.inner.pub_len()
    }
    fn priv_len(&self) -> usize {
        self.inner.priv_len()
    }
    fn set(&mut self, private: &[u8]) {
        self.is_weak = self.weak == WeakKey::Static;
        self.inner.set(private);
    }
    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        self.is_weak = self.weak == WeakKey::Ephemeral;
        self.inner.generate(random)
    }
    fn pubkey(&self) -> &[u8] {
        if self.is_weak { &self.point } else { self.inner.pubkey() }
    }
    fn privkey(&self) -> &[u8] {
        self.inner.privkey()
    }
    fn dh(&self, public: &[u8], secret: &mut [u8]) -> Result<(), snow::Error> {
        if self.is_weak {
            secret.fill(0);
            return Ok(());
        }
        self.inner.dh(public, secret)
    }
}

struct WeakProvider {
    weak: WeakKey,
    point: PublicKey,
}

impl CryptoResolver for WeakProvider {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        CryptoProvider([5; 32]).resolve_rng()
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let inner = DefaultResolver.resolve_dh(choice)?;
        Some(Box::new(WeakDh { inner, weak: self.weak, point: self.point, is_weak: false }))
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        CryptoProvider([5; 32]).resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        CryptoProvider([5; 32]).resolve_cipher(choice)
    }
}

/// A handshake of the attacker, whose weak key is `point`.
pub fn builder<'k>(
    suite: Suite,
    prologue: &'k [u8],
    weak: WeakKey,
    point: PublicKey,
) -> Option<Builder<'k>> {
    let params = suite.noise().parse().ok()?;
    Builder::with_resolver(params, Box::new(WeakProvider { weak, point }))
        .local_private_key(&[9; 32])
        .and_then(|b| b.prologue(prologue))
        .ok()
}

/// An rrtp client of the attacker.
pub struct KeylessClient {
    state: HandshakeState,
    start: Vec<u8>,
}

impl KeylessClient {
    /// Makes a START with the cookie of a SYN-ECHO.
    pub fn new(
        nonce: Nonce,
        cookie: &Cookie,
        weak: WeakKey,
        point: PublicKey,
    ) -> Option<KeylessClient> {
        let suite = Suite::Aes256Gcm;
        let clear = packet::start_clear(suite, &nonce, cookie);
        let mut state = builder(suite, &clear, weak, point)?.build_initiator().ok()?;
        let mut message = [0; MAX_LONG_BYTES];
        let length = state.write_message(&[], &mut message).ok()?;
        let start = [&clear[..], message.get(..length)?].concat();
        Some(KeylessClient { state, start })
    }

    /// The client's first packet for this cookie.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The FINISH for a START-ECHO.
    pub fn finish(&mut self, echo: &StartEcho<'_>, hello: &Hello) -> Option<Vec<u8>> {
        let mut buffer = [0; MAX_LONG_BYTES];
        let length = self.state.read_message(echo.noise, &mut buffer).ok()?;
        let peer = Hello::read(buffer.get(..length)?).ok()?;
        let hello = hello_bytes(hello).ok()?;
        let length = self.state.write_message(&hello, &mut buffer).ok()?;
        Some(packet::finish(peer.connection, buffer.get(..length)?))
    }
}
