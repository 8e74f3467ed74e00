//! Static keys, and `snow`'s sources of ciphers, hashes, X25519 and randomness.

use super::error::HandshakeError;
use crate::keys::PublicKey;
use snow::Builder;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use std::fmt;

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

/// The u-coordinates of low order, little-endian: 0, 1, two of order 8, p - 1, and p and p + 1 for 0 and 1.
const LOW_ORDER: [PublicKey; 7] = [
    [0; 32],
    small(1),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ],
    near_p(0xec),
    near_p(0xed),
    near_p(0xee),
];

const fn small(u: u8) -> PublicKey {
    let mut key = [0; 32];
    key[0] = u;
    key
}

/// p = 2^255 - 19 with another lowest byte.
const fn near_p(lowest: u8) -> PublicKey {
    let mut key = [0xff; 32];
    key[0] = lowest;
    key[31] = 0x7f;
    key
}

/// Whether every shared secret with this public key is zero, in any encoding of it: no private key is needed to
/// compute it (RFC 7748, section 6.1).
pub fn is_low_order(key: &PublicKey) -> bool {
    let mut point = *key;
    // X25519 ignores the highest bit.
    point[31] &= 0x7f;
    LOW_ORDER.contains(&point)
}

/// X25519 that refuses a shared secret of zeros (RFC 7748, section 6.1).
struct ContributoryDh(Box<dyn Dh>);

impl Dh for ContributoryDh {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }
    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }
    fn set(&mut self, private: &[u8]) {
        self.0.set(private);
    }
    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        self.0.generate(random)
    }
    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }
    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }
    fn dh(&self, public: &[u8], secret: &mut [u8]) -> Result<(), snow::Error> {
        self.0.dh(public, secret)?;
        // Of all bytes, whatever the first ones are: the time says nothing about a secret.
        let all = secret.iter().take(self.0.dh_len()).fold(0, |all, byte| all | byte);
        if all == 0 { Err(snow::Error::Dh) } else { Ok(()) }
    }
}

/// Ciphers and hashes by ring, X25519 by curve25519-dalek, randomness by the caller.
pub(crate) struct CryptoProvider(pub(crate) [u8; 32]);

impl CryptoResolver for CryptoProvider {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(Some(self.0))))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(ContributoryDh(DefaultResolver.resolve_dh(choice)?)))
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

pub(super) fn library(e: snow::Error) -> HandshakeError {
    match e {
        snow::Error::Dh => HandshakeError::LowOrderKey,
        _ => HandshakeError::Library("the handshake library refused our own message"),
    }
}

/// The peer's message does not open.
pub(super) fn refused(e: snow::Error) -> HandshakeError {
    match e {
        snow::Error::Dh => HandshakeError::LowOrderKey,
        _ => HandshakeError::Forged,
    }
}

/// A handshake of this Noise protocol: with the private key of this end, the bytes in the clear before it, and 32 bytes
/// of a cryptographic random source, never used again. It fails if a shared secret is zero.
///
/// # Errors
/// Only if the cryptographic library fails.
pub fn builder<'k>(
    protocol: &str,
    prologue: &'k [u8],
    private: &'k [u8; 32],
    seed: &[u8; 32],
) -> Result<Builder<'k>, HandshakeError> {
    let params = protocol.parse().map_err(library)?;
    Builder::with_resolver(params, Box::new(CryptoProvider(*seed)))
        .local_private_key(private)
        .and_then(|b| b.prologue(prologue))
        .map_err(library)
}
