//! Static keys, and `snow`'s sources of ciphers, hashes, X25519 and randomness.

use super::HandshakeError;
use snow::Builder;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use std::fmt;

/// An X25519 public key, which identifies an endpoint.
pub type PublicKey = [u8; 32];

/// An X25519 private key. A server keeps it for years; a client without an identity makes a new one
/// for each connection.
#[derive(Clone)]
pub struct StaticKey {
    private: [u8; 32],
    public: PublicKey,
}

impl StaticKey {
    /// From 32 bytes of a cryptographic random source.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn new(private: [u8; 32]) -> Result<StaticKey, HandshakeError> {
        let mut dh = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .ok_or(HandshakeError::Library("X25519 is missing"))?;
        dh.set(&private);
        let public = dh.pubkey().try_into().map_err(|_| HandshakeError::Library("key length"))?;
        Ok(StaticKey { private, public })
    }

    pub(crate) fn private(&self) -> &[u8; 32] {
        &self.private
    }
    /// The public key, which peers pin.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticKey({:02x?}…)", self.public.get(..4).unwrap_or_default())
    }
}

/// Passes the caller's random bytes to `snow`, once.
struct Drawn(Option<[u8; 32]>);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), snow::Error> {
        let seed = self.0.take().ok_or(snow::Error::Rng)?;
        if to.len() != seed.len() {
            return Err(snow::Error::Rng);
        }
        to.copy_from_slice(&seed);
        Ok(())
    }
}

/// Ciphers and hashes by ring, X25519 by curve25519-dalek, randomness by the caller.
struct CryptoProvider([u8; 32]);

impl CryptoResolver for CryptoProvider {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(Some(self.0))))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

pub(super) fn library(_: snow::Error) -> HandshakeError {
    HandshakeError::Library("the handshake library refused our own message")
}

pub(super) fn builder<'k>(
    protocol: &str,
    prologue: &'k [u8],
    key: &'k StaticKey,
    seed: &[u8; 32],
) -> Result<Builder<'k>, HandshakeError> {
    let params = protocol.parse().map_err(library)?;
    Builder::with_resolver(params, Box::new(CryptoProvider(*seed)))
        .local_private_key(&key.private)
        .and_then(|b| b.prologue(prologue))
        .map_err(library)
}
